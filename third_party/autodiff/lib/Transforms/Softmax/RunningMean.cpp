//===- RunningMean.cpp - Sums that a loop keeps divided -------------------===//
//
// That A is relative to l is proved by scaling degrees, with factors t and t'
// for l and l' (RelativeValues.h). So A may be relative to any weight that does
// not change, and to one in particular. Before the first term, l may be zero,
// which is no multiple of one: nothing may depend on that.
//
//===----------------------------------------------------------------------===//
#include "RunningMean.h"

#include "Combination.h"
#include "Maxima.h"
#include "autodiff/Analysis/Dependents.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether something is divided by `value`, by a broadcast of it, or by means
/// of its logarithm.
static bool isDivisor(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::DivFOp, triton::PreciseDivFOp>(user))
      return use.getOperandNumber() == 1;
    if (isa<math::LogOp, math::Log2Op>(user))
      return true;
    return triton::isRepetition(user) && isDivisor(user->getResult(0));
  });
}

/// Whether an iteration compares values that depend on these.
static bool isCompared(scf::ForOp loop, ArrayRef<Value> values) {
  return llvm::any_of(
      findDependents(llvm::to_vector(values)), [&](Operation *op) {
        return loop->isProperAncestor(op) &&
               isa<arith::CmpFOp, arith::MaximumFOp, arith::MaxNumFOp,
                   arith::MinimumFOp, arith::MinNumFOp>(op);
      });
}

std::optional<RunningMean> RunningMean::match(scf::ForOp loop,
                                              unsigned weight) {
  Value current = loop.getRegionIterArg(weight);
  Value next = loop.getYieldedValues()[weight];
  if (!isFloat(current.getType()) || next.getParentBlock() != loop.getBody() ||
      !next.getDefiningOp() || !isDivisor(next) ||
      (isCompared(loop, {current, next}) &&
       !mutation::isMade("running-mean:weights that are compared")))
    return std::nullopt;
  ScalingDegrees degrees;
  SmallVector<unsigned, 2> axes = seedAxes(current);
  for (Value carried : loop.getRegionIterArgs())
    degrees.seed(carried, Degree());
  degrees.seed(current, Degree::scaled({1, 0}, axes));
  degrees.seed(next, Degree::scaled({0, 1}, axes));
  RunningMean found;
  found.loop = loop;
  found.weight = weight;
  found.means =
      findRelative(loop, weight, 1, degrees,
                   [](Degree degree, ArrayRef<unsigned>) { return degree; });
  return found.means.empty() ? std::nullopt : std::optional(found);
}

/// The operations of the body that compute the next weight from the current
/// one; none if one of them cannot be cloned.
std::optional<SmallVector<Operation *>> RunningMean::findChain() {
  llvm::SetVector<Value> pending;
  pending.insert(loop.getYieldedValues()[weight]);
  llvm::DenseSet<Operation *> needed;
  for (unsigned next = 0; next < pending.size(); ++next) {
    Operation *op = pending[next].getDefiningOp();
    Operation *outer = op ? loop.getBody()->findAncestorOpInBlock(*op) : op;
    if (!outer || !needed.insert(outer).second)
      continue;
    outer->walk([&](Operation *inner) {
      pending.insert(inner->operand_begin(), inner->operand_end());
    });
  }
  SmallVector<Operation *> chain;
  llvm::DenseSet<Value> moved{loop.getRegionIterArg(weight)};
  for (Operation &op : *loop.getBody()) {
    if (!needed.contains(&op) ||
        !op.walk([&](Operation *inner) {
             bool depends =
                 llvm::any_of(inner->getOperands(), [&](Value value) {
                   return moved.contains(value);
                 });
             return depends ? WalkResult::interrupt() : WalkResult::advance();
           }).wasInterrupted())
      continue;
    if (!isMemoryEffectFree(&op))
      return std::nullopt;
    moved.insert(op.result_begin(), op.result_end());
    chain.push_back(&op);
  }
  return chain;
}

/// The weight as a divisor of a mean; one, if no loop has run.
static Value getDivisor(OpBuilder &b, Value hasRun, Value weight) {
  Location loc = weight.getLoc();
  auto divisor = arith::SelectOp::create(
      b, loc, hasRun, weight, constantOf(b, loc, weight.getType(), 1));
  divisor->setAttr(kIfRunAttr, b.getUnitAttr());
  return divisor;
}

/// Broadcasts `divisor` to the type of a mean.
static Value repeatFor(OpBuilder &b, Value mean, Value divisor,
                       ArrayRef<unsigned> axes) {
  Location loc = mean.getLoc();
  Value by = castFloat(b, loc, divisor, getElementTypeOrSelf(mean.getType()));
  auto tile = dyn_cast<RankedTensorType>(mean.getType());
  return tile ? repeatOver(b, loc, by, axes, tile.getShape()) : by;
}

/// Drops sums that are zero, such as the logarithm of a weight of one.
static void dropZeros(scf::ForOp loop) {
  auto isZero = [](Value value) { return Combination::of(value).size() == 0; };
  loop.getBody()->walk([&](Operation *op) {
    if (!isa<arith::AddFOp, arith::SubFOp>(op))
      return;
    Value result = op->getResult(0);
    if (isZero(result)) {
      OpBuilder b(op);
      result.replaceAllUsesWith(zeroOf(b, op->getLoc(), result.getType()));
    } else if (isZero(op->getOperand(1))) {
      result.replaceAllUsesWith(op->getOperand(0));
    } else if (isa<arith::AddFOp>(op) && isZero(op->getOperand(0))) {
      result.replaceAllUsesWith(op->getOperand(1));
    }
  });
}

/// Carries the weights as before, and uses ones everywhere else in the loop.
void RunningMean::splitWeights(ArrayRef<Operation *> chain) {
  Operation *yield = loop.getBody()->getTerminator();
  Value current = loop.getRegionIterArg(weight);
  Value next = loop.getYieldedValues()[weight];
  OpBuilder b(yield);
  IRMapping again;
  llvm::SmallPtrSet<Operation *, 8> summing{yield};
  for (Operation *op : chain)
    summing.insert(b.clone(*op, again));
  yield->setOperand(weight, again.lookupOrDefault(next));
  b.setInsertionPointToStart(loop.getBody());
  Value one = constantOf(b, loop.getLoc(), current.getType(), 1);
  for (Value value : {current, next})
    value.replaceUsesWithIf(one, [&](OpOperand &use) {
      return !summing.contains(
          loop.getBody()->findAncestorOpInBlock(*use.getOwner()));
    });
  dropZeros(loop);
}

/// The result of a loop, or its residual directly behind the loop.
static Value getNamed(scf::ForOp loop, unsigned index) {
  Value result = loop.getResult(index);
  ResidualOp residual = findName(result);
  if (!residual)
    return result;
  residual->moveAfter(loop);
  return residual.getResult();
}

bool RunningMean::carrySums(Quotients &quotients) {
  auto chain = findChain();
  if (!chain)
    return false;
  splitWeights(*chain);
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  Value init = withoutResidual(loop.getInitArgs()[weight]);
  Value runs =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                            loop.getLowerBound(), loop.getUpperBound());
  for (auto &[index, axes] : means) {
    Value start = withoutResidual(loop.getInitArgs()[index]);
    Value hasRun = runs, sum = start;
    b.setInsertionPoint(loop);
    // Where a loop continues the sums of another one, so do the undivided sums.
    if (auto before = quotients.find(start);
        before != quotients.end() && before->second.weight == init) {
      sum = before->second.sum;
      hasRun = arith::OrIOp::create(b, loc, before->second.hasRun, runs);
    } else if (!matchPattern(start, m_AnyZeroFloat())) {
      Value factor = getDivisor(b, runs, loop.getInitArgs()[weight]);
      sum = arith::MulFOp::create(b, loc, start,
                                  repeatFor(b, start, factor, axes));
    }
    loop.getInitArgsMutable()[index].set(sum);
    Value result = loop.getResult(index), total = getNamed(loop, weight);
    b.setInsertionPointAfterValue(total);
    Value divisor = getDivisor(b, hasRun, total);
    auto mean = arith::DivFOp::create(b, loc, result,
                                      repeatFor(b, result, divisor, axes));
    result.replaceAllUsesExcept(mean, mean);
    quotients[mean] = {result, loop.getResult(weight), hasRun};
  }
  return true;
}
