//===- Pointers.h - Where a pointer comes from ------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_POINTERS_H
#define AUTODIFF_ANALYSIS_POINTERS_H

#include "mlir/IR/Value.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether `type` is a pointer or a tile of pointers.
bool isPointer(Type type);

/// The pointers through which operations in `root` write.
SmallVector<Value> getWrittenPointers(Operation *root);

/// The element type that a pointer or tile of pointers points to.
Type getPointee(Type type);

/// The pointer through which `op`, a load, a store or an atomic operation,
/// accesses memory; null for other operations.
Value getAccessedPointer(Operation *op);

/// The mask of a load, a store, an atomic operation or a contribution; null if
/// it has none, and for other operations.
Value getMask(Operation *op);

/// The kernel arguments that `pointer` may be derived from by pointer
/// arithmetic, shape operations, loops, branches and selects, in order; none
/// if it may also come from somewhere else.
SmallVector<BlockArgument> getBaseArguments(Value pointer);

/// The only kernel argument that `pointer` is derived from; null if there are
/// several or it may come from somewhere else.
BlockArgument getBaseArgument(Value pointer);

/// Whether `pointer` may point into the memory of a kernel argument.
bool mayPointInto(Value pointer, BlockArgument argument);

/// Whether an operation for which `isMeant` holds may access what the argument
/// points to.
bool mayBeAccessed(BlockArgument argument,
                   llvm::function_ref<bool(Operation *)> isMeant);

/// Whether a pointer of `some` and one of `others` may point into the memory of
/// the same kernel argument. A pointer of unknown origin may point anywhere.
bool mayAlias(ArrayRef<Value> some, ArrayRef<Value> others);

/// Whether a store does not change what `pointer` points to. (Outputs that
/// share memory are refused at launch only if they are floats.)
bool isElsewhere(triton::StoreOp store, Value pointer);

/// A value that `pointer` may come from and that is no kernel argument; null
/// if there is none.
Value getUnknownOrigin(Value pointer);

/// The pointer-typed operand that `op`, an operation that computes a pointer
/// from one pointer (addptr, splat, broadcast, …), derives its result from;
/// null for other operations.
OpOperand *getPointerSource(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_POINTERS_H
