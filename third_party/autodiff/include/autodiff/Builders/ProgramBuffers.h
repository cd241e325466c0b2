//===- ProgramBuffers.h - Memory that belongs to one program ----*- C++ -*-===//
//
// Tapes, saved residuals and values that one kernel leaves for another are in
// buffers with a slot for every program of the grid. The layout is
// [entry][program][element of the tile], so that a kernel need not know the
// number of entries.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_BUILDERS_PROGRAMBUFFERS_H
#define AUTODIFF_BUILDERS_PROGRAMBUFFERS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The element type that a value of this type has in memory (a byte for i1).
Type getStoredElement(Type value);

/// The number of this program's slot for `entry` (an integer; null is 0).
Value slotOfProgram(OpBuilder &builder, Location loc, Value entry = {});

/// The same, computed from digits of program ids. Kernels with different grids
/// then find the same slot, if their programs have these digits. It is known
/// that each program has different values of them.
Value slotOfDigits(OpBuilder &builder, Location loc, triton::FuncOp kernel,
                   llvm::ArrayRef<ScalarExpr> digits);

/// Pointers for a value of this type whose elements are contiguous in memory
/// from `base` on.
Value pointersFrom(OpBuilder &builder, Location loc, Value base, Type type);

/// Stores `value`, in the element type of memory.
void storeTo(OpBuilder &builder, Location loc, Value pointers, Value value);

/// Loads a value of this type, where `mask` is true (null: everywhere).
Value loadFrom(OpBuilder &builder, Location loc, Value pointers, Value mask,
               Type type);

/// Stores `value` into a slot.
void storeToSlot(OpBuilder &builder, Location loc, Value buffer, Value slot,
                 Value value);

/// Loads a value of this type from a slot.
Value loadFromSlot(OpBuilder &builder, Location loc, Value buffer, Value slot,
                   Type type);

/// The number of buffer arguments of `kernel`.
unsigned countBuffers(triton::FuncOp kernel);

/// A number that no buffer of the module's derived kernels has.
unsigned nextBuffer(ModuleOp module);

/// An argument of `kernel` for buffer `index`, with slots of a value of this
/// type.
BlockArgument appendBuffer(triton::FuncOp kernel, unsigned index, Type value,
                           BufferAttr description);

/// Names a buffer in printed kernels after its contents: `saved_x`.
void nameBuffer(BlockArgument buffer, BufferKind kind, Value held);

/// A buffer for `elements` elements of values of this type.
BufferAttr describeMemory(BufferKind kind, llvm::StringRef name, Type value,
                          ExprAttr elements);

/// A buffer with `entries` slots of a value of this type for every program.
BufferAttr describeBuffer(BufferKind kind, llvm::StringRef name, Type value,
                          ExprOperand entries);

/// Stores `value` of a forward at `atSave` into a new buffer `name`, and loads
/// it at `atLoad` in the backward.
Value saveForBackward(OpBuilder &atSave, Value value, OpBuilder &atLoad,
                      llvm::StringRef name);

/// Replaces `push` by a store to the buffer `written`, and each of `pops` by a
/// load from `read`, the same buffer in the other kernel.
void lowerRecord(PushOp push, Value written, ArrayRef<PopOp> pops, Value read);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_PROGRAMBUFFERS_H
