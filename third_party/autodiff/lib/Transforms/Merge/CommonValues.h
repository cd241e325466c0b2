//===- CommonValues.h - What neighbours would all compute again -*- C++ -*-===//
//
// Where each element takes what the positions around it contribute, the same
// values of a position are computed for all of its neighbours. What costs more
// to compute so often than to store once and load so often is stored by a
// kernel before.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_COMMONVALUES_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_COMMONVALUES_H

#include "Positions.h"
#include "llvm/ADT/MapVector.h"
#include <set>

namespace mlir::autodiff {

class CommonValues {
public:
  /// Of tiles of `shape` in `kernel`, whose axes are the positions'.
  CommonValues(triton::FuncOp kernel, const Positions &positions,
               ArrayRef<int64_t> shape);

  /// Notes that neighbours computed `value`, and from what.
  void need(Value value, const Neighbors &neighbors);

  /// Chooses what to store by a minimum cut (cost: bytes moved) between memory
  /// and what is needed. Returns the bytes for a tile of positions; none if
  /// nothing is to be stored.
  std::optional<double> choose();

  /// Stores what was chosen where it is computed, in buffers with a place for
  /// each position.
  void store();

  /// Lets neighbours load what is stored, where `b` stands.
  void provide(OpBuilder &b, Neighbors &neighbors) const;

  /// How many places a buffer has. Indices are of 32 bits.
  ExprAttr countPlaces() const;

private:
  void follow(Value value, const Neighbors &neighbors);
  Value pointersOf(OpBuilder &b, Location loc, Value buffer,
                   const Distance *distance) const;

  triton::FuncOp kernel;
  const Positions &positions;
  ArrayRef<int64_t> shape;
  /// The positions' numbers, neighbours in memory first.
  SmallVector<size_t> order;
  /// What is needed in the end.
  llvm::DenseSet<Value> results;
  /// What that is computed from, and at which distances.
  llvm::MapVector<Value, std::set<Distance>> needed;
  SmallVector<std::pair<Value, BlockArgument>> stored;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_COMMONVALUES_H
