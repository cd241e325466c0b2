//===- RescaledLoop.cpp - Sums relative to a running maximum --------------===//
//
// Scaling degrees (ScalingDegrees.h) prove that the loop may use another number
// than the running maximum. They take two independent shifts, one of m and one
// of m'. A carried sum must have degree −δ in the first before an iteration,
// and −δ in the second after it, and nothing else may change.
//
// A second proof assumes that m and m' are finite. It holds row by row, and
// leaves rows in which everything is masked so far to UnseenRows.cpp.
//
//===----------------------------------------------------------------------===//
#include "RescaledLoop.h"

#include "LogSum.h"
#include "Maxima.h"
#include "UnseenRows.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Sign.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// Whether `value` is at least the maximum so far: m itself, or the logarithm
/// of a sum of everything so far.
static bool isBound(Value value, scf::ForOp loop, unsigned index) {
  if (value == loop.getRegionIterArg(index))
    return true;
  auto carried = dyn_cast<BlockArgument>(value);
  if (!carried || carried.getOwner() != loop.getBody() ||
      carried == loop.getInductionVar())
    return false;
  auto sum = LogSum::match(loop, carried.getArgNumber() - 1);
  return sum && sum->level == loop.getYieldedValues()[index] &&
         Signs().of(sum->terms) == Sign::Positive;
}

/// The operation m' = max(m, r) for a carried m, or for the logarithm of a sum
/// in its place; null if there is none.
static Operation *matchRunningMaximum(scf::ForOp loop, unsigned index) {
  Operation *next = getCarriedMaximum(loop, index);
  bool isRunning = next && llvm::any_of(next->getOperands(), [&](Value value) {
                     return isBound(value, loop, index);
                   });
  return isRunning ? next : nullptr;
}

/// The facts about m and m' in the second proof, for the elements of a row.
static Degree guard(const RescaledLoop &candidate, Degree degree,
                    ArrayRef<unsigned> axes) {
  return candidate.isGuarded ? degree.at(axes) : degree;
}

static ScalingDegrees seedShifts(const RescaledLoop &candidate) {
  ScalingDegrees degrees;
  scf::ForOp loop = candidate.loop;
  Value current = candidate.getCurrent();
  SmallVector<unsigned, 2> axes = seedAxes(current);
  auto seed = [&](Value value, Degree::Vector shift) {
    Degree degree = guard(candidate, Degree::shifted(shift, axes), axes);
    degrees.seed(value, candidate.isGuarded
                            ? degree.with(Degree::Special::Finite)
                            : degree);
  };
  seed(current, {1, 0});
  seed(candidate.next, {0, 1});
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (index != candidate.maximum)
      degrees.seed(loop.getRegionIterArg(index), Degree());
  return degrees;
}

/// The exponents δ of factors e^(δ(m−m')) in the body.
static SmallVector<double> findExponents(const RescaledLoop &candidate) {
  ScalingDegrees degrees = seedShifts(candidate);
  SmallVector<double> found;
  scf::ForOp loop = candidate.loop;
  loop.getBody()->walk([&](Operation *op) {
    if (!isa<math::ExpOp, math::Exp2Op>(op))
      return;
    std::optional<Degree> degree = degrees.of(op->getResult(0));
    if (degree && degree->isScale() && degree->scale[0] != 0 &&
        std::abs(degree->scale[0] + degree->scale[1]) < 1e-9 &&
        !llvm::is_contained(found, degree->scale[0]))
      found.push_back(degree->scale[0]);
  });
  return found;
}

/// The selections of the body whose condition is known, and what they choose.
static SmallVector<std::pair<Value, Value>>
findDecided(scf::ForOp loop, ScalingDegrees &degrees) {
  SmallVector<std::pair<Value, Value>> found;
  loop.getBody()->walk([&](arith::SelectOp select) {
    if (std::optional<bool> choice = degrees.decide(select.getCondition()))
      found.push_back(
          {select, *choice ? select.getTrueValue() : select.getFalseValue()});
  });
  return found;
}

/// Whether the loop's maximum may be replaced, with this δ; fills in its
/// accumulators.
static bool proveFrame(RescaledLoop &candidate, double delta) {
  ScalingDegrees degrees = seedShifts(candidate);
  candidate.accumulators =
      findRelative(candidate.loop, candidate.maximum, delta, degrees,
                   [&](Degree degree, ArrayRef<unsigned> axes) {
                     return guard(candidate, degree, axes);
                   });
  candidate.delta = delta;
  candidate.decided = findDecided(candidate.loop, degrees);
  return !candidate.accumulators.empty();
}

bool mlir::autodiff::canRunTwice(scf::ForOp loop) {
  WalkResult walk = loop.getBody()->walk([](Operation *op) {
    bool repeatable = op->getNumRegions() != 0 || isMemoryEffectFree(op) ||
                      isa<triton::LoadOp, triton::StoreOp>(op);
    return repeatable ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

bool mlir::autodiff::canRunAfter(scf::ForOp loop, Operation *last) {
  if (loop->getBlock() != last->getBlock())
    return false;
  for (Operation *op = loop; op != last->getNextNode(); op = op->getNextNode())
    if (!op || mayWrite(op))
      return false;
  return true;
}

std::optional<RescaledLoop> RescaledLoop::match(scf::ForOp loop,
                                                unsigned from) {
  if (!canRunTwice(loop))
    return std::nullopt;
  for (unsigned index = from; index < loop.getNumResults(); ++index) {
    RescaledLoop candidate;
    candidate.loop = loop;
    candidate.maximum = index;
    candidate.next = loop.getYieldedValues()[index];
    candidate.update = matchRunningMaximum(loop, index);
    if (!candidate.update)
      continue;
    for (bool isGuarded : {false, true}) {
      candidate.isGuarded = isGuarded;
      for (double delta : findExponents(candidate))
        if (proveFrame(candidate, delta) && proveUnseenRows(candidate))
          return candidate;
    }
  }
  return std::nullopt;
}
