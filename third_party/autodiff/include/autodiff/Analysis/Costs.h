//===- Costs.h - What moving and computing values costs ---------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_COSTS_H
#define AUTODIFF_ANALYSIS_COSTS_H

#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Target.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The fewest warps whose threads have enough registers for a program's tiles,
/// which need `registers` of 32 bits.
int warpsFor(const Target &target, double registers);

/// How many registers these warps have, or Triton's usual four warps, if that
/// is more.
double registersOfWarpsFor(const Target &target, double registers);

/// How many such programs a processor should run at a time: at least enough
/// warps to hide latencies, at most what has registers.
struct ProgramRange {
  int64_t least, most;
};
ProgramRange programsFor(const Target &target, double registers);

/// Cost of a product, as the bytes that memory could move in the same time.
double bytesOfProduct(triton::DotOp dot);

/// The same of elementwise arithmetic that takes noticeable time beside memory;
/// zero for other operations.
double bytesOfArithmetic(Operation *op);

/// What the loops of a kernel that contain matrix products need; for each
/// number, the maximum over loops.
struct ProductCosts {
  explicit ProductCosts(const Target &target) : target(&target) {}

  /// The device that kernels are compiled for.
  const Target *target;
  /// Bytes of operands that an iteration loads, and of operands that are loaded
  /// before the loop.
  double loaded = 0, kept = 0;
  /// Elements of operands of products that are transposed.
  double transposed = 0;
  /// Elements that matrix instructions read, divided by the length of the axis
  /// that they sum over.
  double read = 0;
  /// Multiply-adds of an iteration.
  double work = 0;
  /// Elements of sums that the loop carries, and of products that are operands
  /// of other products.
  double carried = 0, between = 0;
  /// The most rows and columns of a product's result.
  int64_t rows = 0, columns = 0;

  /// The costs of the loops of `kernel`; `work` is zero if there is no product
  /// in any.
  static ProductCosts of(triton::FuncOp kernel);

  double getLive() const { return carried + between; }
  /// How many warps have enough registers; none if eight have not.
  std::optional<int> getWarps() const;
  /// How many pipeline stages fit into shared memory, at least one.
  int getStages() const;
  /// Multiply-adds for each byte loaded.
  double getIntensity() const { return work / std::max(loaded, 1.0); }
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_COSTS_H
