//===- StoredStates.h - What a loop stores of what it carries ---*- C++ -*-===//
//
// A recurrence often stores its state in every iteration, before or after the
// update. What one was at the start of an iteration can then be read in a
// backward, from where this iteration, or the one before it, has stored it.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_STOREDSTATES_H
#define AUTODIFF_ANALYSIS_STOREDSTATES_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Marks a store of a state that a backward may read: of the carried value with
/// the number `carried`, given a `check`.
constexpr llvm::StringLiteral kStateAttr = "autodiff.state";

/// A store, in the body of a loop, of a value that it carries.
struct StoredState {
  triton::StoreOp store;
  /// Whether it stores what an iteration starts with, not what it ends with.
  bool isBefore;
};

/// The stores of the carried value `index`, as it is or rounded.
SmallVector<StoredState> findStoredStates(scf::ForOp loop, unsigned index);

/// Lets a backward read the carried value `index` where it is stored. A store
/// may be of several, for which not the same needs be proved.
void markState(StoredState state, unsigned index, CheckAttr check);

/// Where a backward may read the carried value `index`; a null store if
/// nowhere.
StoredState findMarkedState(scf::ForOp loop, unsigned index);

/// The check of a marked store.
CheckAttr getStateCheck(StoredState state);

/// The operations in the body of `loop` that compute `pointer`, in order, if
/// they are about nothing but the number of the iteration: each can be repeated
/// for another one.
std::optional<SmallVector<Operation *>> findPlace(scf::ForOp loop,
                                                  Value pointer);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_STOREDSTATES_H
