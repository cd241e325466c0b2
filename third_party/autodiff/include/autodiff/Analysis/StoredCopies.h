//===- StoredCopies.h - What memory holds of a computed value ---*- C++ -*-===//
//
// A kernel stores many a value that its backward needs: as it was computed, or
// rounded to the type in memory. A backward may read such a copy back in place
// of the value in four cases.
//
//   - It is exact: the type holds the value, or all uses round it to that type
//     anyway.
//   - It is in bfloat16, all gradients are, too, and the value is only a
//     factor. bfloat16 has the range of float32, so that a copy differs by one
//     rounding, relative to the value, and so does what it is multiplied by. A
//     difference or a function of the value may differ by any amount. So may
//     what half precision and 8 bits hold of a value beyond their range.
//   - It is the result of a function, and only the derivative of that function
//     uses it. PyTorch's operation, exp or tanh say, reads its rounded output,
//     too.
//   - It is a weighted mean of numbers of its type (WeightedMeans.h), all
//     gradients have that type, and the copy only multiplies the gradient of
//     that very output, element by element. So do PyTorch's attention and
//     softmax. A mean has the range of its numbers.
//
// Numbers, which a program can save in four bytes, and tiles that are broadcast
// to larger ones, have to be exact.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_STOREDCOPIES_H
#define AUTODIFF_ANALYSIS_STOREDCOPIES_H

#include "autodiff/Analysis/Activity.h"

namespace mlir::autodiff {

/// Which copies may stand in for a value.
class StoredCopies {
public:
  /// Of values in a backward.
  explicit StoredCopies(triton::FuncOp backward);
  /// Of values in a kernel whose backward is not derived yet.
  StoredCopies(triton::FuncOp kernel, const Activity &activity);

  /// Whether a backward may use what `store` leaves in memory in place of
  /// `used`. The value is the forward's `computed`, which is stored there.
  bool mayStandIn(Value computed, Value used, triton::StoreOp store) const;

private:
  friend class CopyUses;

  bool isFactorOfOwn(Value computed, Value used, triton::StoreOp store) const;
  bool isRoundedAnyway(Type stored) const;

  triton::FuncOp kernel;
  /// Null in a backward, which has the cotangents themselves.
  const Activity *activity = nullptr;
  llvm::DenseSet<Value> cotangents;
};

/// Whether all gradients that `backward` adds to are in memory as `element`,
/// and none of them is read again.
bool areAllGradients(triton::FuncOp backward, Type element);

/// Whether every value that `value` may have is one of the type `element`.
bool isExactIn(Value value, Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_STOREDCOPIES_H
