//===- Costs.h - What moving and computing values costs ---------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_COSTS_H
#define AUTODIFF_ANALYSIS_COSTS_H

#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Target.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The fewest warps, of a program that needs so many registers for tiles, whose
/// threads have enough.
int warpsFor(const Target &target, double registers);

/// How many registers those warps have, which are Triton's usual four at least.
double registersOfWarpsFor(const Target &target, double registers);

/// How many such programs a processor should run at a time, at least for its
/// warps to hide what they wait for, and at most for their registers.
struct ProgramRange {
  int64_t least, most;
};
ProgramRange programsFor(const Target &target, double registers);

/// Bytes that might be moved in the time that a product takes.
double bytesOfProduct(triton::DotOp dot);

/// Bytes that might be moved in the time that elementwise arithmetic is felt
/// beside them; nothing for other operations.
double bytesOfArithmetic(Operation *op);

/// What the loops of a kernel that multiply tiles need; the most of any loop.
struct ProductCosts {
  explicit ProductCosts(const Target &target) : target(&target) {}

  /// What the kernel is for.
  const Target *target;
  /// Bytes of tiles that an iteration loads for products, and of those that
  /// products take from before the loop.
  double loaded = 0, kept = 0;
  /// Elements of operands of products that are transposed.
  double transposed = 0;
  /// Elements that matrix instructions read, for each step along the axis that
  /// they sum over.
  double read = 0;
  /// Multiply-adds of an iteration.
  double work = 0;
  /// Elements of sums that the loop carries, and of products between others.
  double carried = 0, between = 0;
  /// The most rows and columns of a product.
  int64_t rows = 0, columns = 0;

  /// Of the loops of `kernel`; no work if there is no product in any.
  static ProductCosts of(triton::FuncOp kernel);

  double getLive() const { return carried + between; }
  /// How many warps have registers for it; none if even eight have not.
  std::optional<int> getWarps() const;
  /// How many stages of loads its shared memory holds, at least one.
  int getStages() const;
  /// Multiply-adds for each byte loaded.
  double getIntensity() const { return work / std::max(loaded, 1.0); }
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_COSTS_H
