//===- RescaledLoop.cpp - Sums relative to a running maximum --------------===//
//
// That the body allows another frame is proved by its scaling degrees in two
// independent shifts, one of m and one of m': A must go in with −δ in the first
// and come out with −δ in the second, and nothing else may move.
//
// A second proof takes m and m' to be finite. It holds row by row, and leaves
// those that have seen nothing to UnseenRows.cpp.
//
//===----------------------------------------------------------------------===//
#include "RescaledLoop.h"

#include "Maxima.h"
#include "UnseenRows.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Support/Elements.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// The operation m' = max(m, r) for a carried m; null if there is none.
static Operation *matchRunningMaximum(scf::ForOp loop, unsigned index) {
  Operation *next = getCarriedMaximum(loop, index);
  Value current = loop.getRegionIterArg(index);
  bool isRunning = next && llvm::is_contained(next->getOperands(), current);
  return isRunning ? next : nullptr;
}

/// What is known of m and m' in the second proof, for the elements of a row.
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

/// The selections of the body that are decided, and what they choose.
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

/// Whether the loop changes frame with this δ; fills in its accumulators.
static bool proveFrame(RescaledLoop &candidate, double delta) {
  scf::ForOp loop = candidate.loop;
  candidate.accumulators.clear();
  unsigned count = loop.getNumResults();
  SmallVector<bool> rescaled(count);
  SmallVector<SmallVector<unsigned, 2>> axes(count);
  // Where m runs along an accumulator's axes is learnt from what is added.
  for (unsigned index = 0; index < count; ++index) {
    Type type = loop.getRegionIterArg(index).getType();
    rescaled[index] = index != candidate.maximum && isFloat(type);
    axes[index] = seedAxes(candidate.getCurrent());
  }
  for (bool changed = true; changed;) {
    changed = false;
    ScalingDegrees degrees = seedShifts(candidate);
    for (unsigned index = 0; index < count; ++index)
      if (rescaled[index])
        degrees.seed(loop.getRegionIterArg(index),
                     guard(candidate, Degree::scaled({-delta, 0}, axes[index]),
                           axes[index]));
    for (unsigned index = 0; index < count; ++index) {
      if (index == candidate.maximum)
        continue;
      std::optional<Degree> next = degrees.of(loop.getYieldedValues()[index]);
      if (rescaled[index]) {
        bool holds = next && next->isScale() &&
                     std::abs(next->scale[0]) < 1e-9 &&
                     std::abs(next->scale[1] + delta) < 1e-9 &&
                     next->axes == axes[index];
        if (!holds && !mutation::isMade("rescale:any accumulator")) {
          rescaled[index] = false;
          changed = true;
        }
      } else if (!next || !next->isInvariant()) {
        return false;
      }
    }
    if (changed)
      continue;
    if (!degrees.hasInvariantEffects(loop))
      return false;
    candidate.decided = findDecided(loop, degrees);
  }
  for (unsigned index = 0; index < count; ++index)
    if (rescaled[index])
      candidate.accumulators[index] = axes[index];
  candidate.delta = delta;
  return !candidate.accumulators.empty();
}

/// Whether the loop can run twice, once for the maximum and once in its frame:
/// it has no effects but stores, which only the second run keeps.
static bool canRunTwice(scf::ForOp loop) {
  WalkResult walk = loop.getBody()->walk([](Operation *op) {
    bool repeatable = op->getNumRegions() != 0 || isMemoryEffectFree(op) ||
                      isa<triton::LoadOp, triton::StoreOp>(op);
    return repeatable ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
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
