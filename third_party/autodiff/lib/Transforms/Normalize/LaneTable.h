//===- LaneTable.h - Which element each lane of a tile holds ----*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_NORMALIZE_LANETABLE_H
#define AUTODIFF_TRANSFORMS_NORMALIZE_LANETABLE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>
#include <vector>

namespace mlir::autodiff {

/// The numbers of the lanes of a tile, if they are the same in all programs;
/// else null.
DenseElementsAttr findNumbers(Value tile);

/// Which element of `root` each lane of a tile holds.
struct LaneTable {
  static constexpr int64_t kZero = -1;

  Value root;
  std::vector<int64_t> elements;
  /// Whether lanes hold them bit for bit. A sum with products by zero and one
  /// does not if there is a NaN, an infinity or a negative zero.
  bool isExact = true;

  static LaneTable of(Value tile);
};

/// A sum of which each result is one element: those of `tile` in lane `lane` of
/// the axis.
struct PickedLane {
  Value tile;
  int64_t lane;
};
std::optional<PickedLane> findPickedLane(triton::ReduceOp sum);

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_NORMALIZE_LANETABLE_H
