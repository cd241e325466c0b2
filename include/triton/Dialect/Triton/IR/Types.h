//===- Types.h - the types of the tt dialect --------------------*- C++ -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_DIALECT_TRITON_IR_TYPES_H
#define TRITON_DIALECT_TRITON_IR_TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeSupport.h"
#include "mlir/IR/Types.h"

#define GET_TYPEDEF_CLASSES
#include "triton/Dialect/Triton/IR/Types.h.inc"

namespace mlir {
class Operation;

namespace triton {

/// What a load through `type` gives: the pointee of a pointer, the tensor of
/// the pointees of a tensor of pointers. `none` for any other type, so that
/// parsing goes on to the verifier, which reports it.
Type getPointeeType(Type type);

/// The pointer, or tensor of pointers, through which a value of `type` is
/// accessed.
Type getPointerTypeSameShape(Type type, int addressSpace = 1);

/// A pointer to `type`.
PointerType getPointerType(Type type, int addressSpace = 1);

/// i1, or the tensor of i1 of the same shape, for a value or pointer type; for
/// a block pointer, of the block's shape.
Type getMaskType(Type type);

/// The scalar pointer that a block pointer is made from.
Type getBasePointerType(Type blockPointer);

/// `type` with another element type, tensor or not.
Type replaceElementType(Type type, Type element);

/// Whether `type` is a pointer to a tensor.
bool isTensorPointerType(Type type);

/// Turn pointers to constant memory, which Triton 3.9 marks as such, into
/// ordinary ones everywhere in `root`. For readers that is the same memory.
void makePointersGlobal(Operation *root);

/// Width in bits of a scalar or of a tensor's elements; pointers have 64.
unsigned getElementBitWidth(Type type);

} // namespace triton
} // namespace mlir

#endif // TRITON_DIALECT_TRITON_IR_TYPES_H
