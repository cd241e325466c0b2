//===- FreeMaxima.cpp - Maxima that the outputs do not depend on ----------===//
#include "FreeMaxima.h"

#include "AttainedSums.h"
#include "Maxima.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Adds the facts which sums are at least one where `maximum` is finite.
static void seedAttained(ScalingDegrees &degrees, Value maximum,
                         triton::FuncOp kernel) {
  SmallVector<Value> attained;
  // New facts may decide more selections.
  ScalingDegrees before = degrees;
  kernel.walk([&](Operation *op) {
    if (auto reduce = dyn_cast<triton::ReduceOp>(op))
      if (isAttained(reduce.getResult()[0], maximum, maximum, before))
        attained.push_back(reduce.getResult()[0]);
    auto pairs = op->getAttrOfType<DenseI32ArrayAttr>(kAttainedAttr);
    for (unsigned i = 0; pairs && i < pairs.size(); i += 2) {
      Value frame = cast<scf::ForOp>(op).getInitArgs()[pairs[i]];
      std::optional<Degree> degree = before.of(frame);
      if (degree && degree->is(Degree::Special::Finite))
        attained.push_back(op->getResult(pairs[i + 1]));
    }
  });
  for (Value sum : attained)
    if (std::optional<Degree> degree = degrees.of(sum))
      degrees.seed(sum, degree->with(Degree::Special::AtLeastOne));
}

Operation *mlir::autodiff::findScope(Block *block) {
  Operation *parent = block->getParentOp();
  while (!isa<scf::ForOp, scf::WhileOp, triton::FuncOp>(parent))
    parent = parent->getParentOp();
  return parent;
}

bool mlir::autodiff::isUnseen(ScalingDegrees &degrees, Operation *scope,
                              bool orLocal) {
  if (isa<scf::WhileOp>(scope))
    return false;
  if (auto loop = dyn_cast<scf::ForOp>(scope))
    for (Value next : loop.getYieldedValues())
      if (!degrees.isInvariant(next))
        return false;
  return degrees.hasInvariantEffects(scope, orLocal);
}

/// Whether `value` alone can be shifted without changing what `kernel` stores,
/// while the others stay fixed. A maximum may be assumed to be finite.
static bool isFree(Value value, ArrayRef<Value> others, triton::FuncOp kernel,
                   bool isFinite) {
  Operation *scope = findScope(value.getParentBlock());
  ScalingDegrees degrees;
  // Carried values at the start of an iteration are fixed.
  if (auto loop = dyn_cast<scf::ForOp>(scope))
    for (Value carried : loop.getRegionIterArgs())
      degrees.seed(carried, Degree());
  for (Value other : others)
    degrees.seed(other, Degree());
  SmallVector<unsigned, 2> axes = seedAxes(value);
  Degree shifted = Degree::shifted({1, 0}, axes);
  degrees.seed(value, isFinite ? shifted.with(Degree::Special::Finite).at(axes)
                               : shifted);
  if (isFinite)
    seedAttained(degrees, value, kernel);
  return isUnseen(degrees, scope, /*orLocal=*/isFinite);
}

SmallVector<Value> mlir::autodiff::findFree(triton::FuncOp kernel,
                                            SmallVector<Value> values) {
  return keepFree(std::move(values), [&](Value value, ArrayRef<Value> others) {
    return isFree(value, others, kernel, /*isFinite=*/false);
  });
}

/// For each row, a maximum may be assumed to be finite. Where it is −∞, or the
/// constant initial value, it has no derivative.
SmallVector<Value> mlir::autodiff::findFreeMaxima(triton::FuncOp kernel,
                                                  SmallVector<Value> maxima) {
  return keepFree(std::move(maxima), [&](Value value, ArrayRef<Value> others) {
    return isFree(value, others, kernel, /*isFinite=*/false) ||
           isFree(value, others, kernel, /*isFinite=*/true) ||
           mutation::isMade("maxima:dropped without a proof");
  });
}
