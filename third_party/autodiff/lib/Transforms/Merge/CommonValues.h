//===- CommonValues.h - What neighbours would all compute again -*- C++ -*-===//
//
// If each element adds up what the positions around it contribute
// (GatherWindows.cpp), the values of a position are computed again for each of
// its neighbours. A value for which that costs more than to store it once and
// load it for each neighbour is stored by an earlier kernel.
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
  /// The values are tiles of `shape` in `kernel`, whose axes are the positions'
  /// (Positions.h).
  CommonValues(triton::FuncOp kernel, const Positions &positions,
               ArrayRef<int64_t> shape);

  /// Notes that neighbours computed `value`, and which values they used for it.
  void need(Value value, const Neighbors &neighbors);

  /// Chooses the values to store by a minimum cut between memory and the values
  /// that are needed; the cost is bytes moved. Returns the bytes for a tile of
  /// positions; none if nothing is to be stored.
  std::optional<double> choose();

  /// Stores the chosen values where they are computed, in buffers with an
  /// element for each position.
  void store();

  /// Lets `neighbors` load the stored values, at `b`.
  void provide(OpBuilder &b, Neighbors &neighbors) const;

  /// How many elements a buffer has. Indices have 32 bits.
  ExprAttr countPlaces() const;

private:
  void follow(Value value, const Neighbors &neighbors);
  Value pointersOf(OpBuilder &b, Location loc, Value buffer,
                   const Distance *distance) const;

  triton::FuncOp kernel;
  const Positions &positions;
  ArrayRef<int64_t> shape;
  /// The numbers of the positions, sorted so that neighbours in memory come
  /// first.
  SmallVector<size_t> order;
  /// The values that are needed in the end.
  llvm::DenseSet<Value> results;
  /// The values that these are computed from, and at which distances.
  llvm::MapVector<Value, std::set<Distance>> needed;
  SmallVector<std::pair<Value, BlockArgument>> stored;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_COMMONVALUES_H
