//===- Slice.h - What computes a value, once more elsewhere -----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_SLICE_H
#define AUTODIFF_BUILDERS_SLICE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// Of a value that is wanted elsewhere: it is there, or the operation that
/// gives it can be done once more, or it cannot.
enum class Elsewhere { Known, Computed, Never };
using AskElsewhere = llvm::function_ref<Elsewhere(Value)>;

/// Visits each operation that computes `value` elsewhere, behind those that
/// compute what it or its regions use. What is visited has to be known from
/// then on. False if a value cannot be had; others may have been visited.
bool visitSlice(Value value, AskElsewhere ask,
                llvm::function_ref<void(Operation *)> visit);

/// Adds these operations to `slice`; what they compute is known.
bool collectSlice(Value value, SetVector<Operation *> &slice, AskElsewhere ask);

/// Copies them to where `builder` stands, and `map` says what is known, and of
/// what is known besides that it is the same. Null if a value cannot be had.
Value recompute(OpBuilder &builder, Value value, IRMapping &map,
                AskElsewhere ask);

/// Copies `op` with these operands, on tiles of other shapes: `typeFor` makes
/// the types of the results, `map` what its regions use.
Operation *cloneOnto(OpBuilder &builder, Operation *op, ValueRange operands,
                     llvm::function_ref<Type(Type)> typeFor,
                     IRMapping map = {});

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_SLICE_H
