//===- LogSum.cpp - The logarithm of a sum, as a loop carries it ----------===//
#include "LogSum.h"

#include "Combination.h"
#include "Maxima.h"
#include "RescaledLoop.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// S and k if `value` is k · log(S).
static std::optional<std::pair<Value, double>> matchLogarithm(Value value) {
  auto [source, scale] = matchMultiple(value);
  Operation *op = source.getDefiningOp();
  if (isa_and_nonnull<math::LogOp>(op))
    return std::pair(op->getOperand(0), scale);
  if (isa_and_nonnull<math::Log2Op>(op))
    return std::pair(op->getOperand(0), scale * M_LOG2E);
  return std::nullopt;
}

/// The exponential and δ if `user` is e^(δ·`exponent`).
static std::optional<std::pair<Operation *, double>>
matchExponential(Operation *user, Value exponent) {
  double scale = 1;
  if (isa<arith::MulFOp>(user) && user->hasOneUse()) {
    auto [source, factor] = matchMultiple(user->getResult(0));
    if (source != exponent)
      return std::nullopt;
    scale = factor;
    user = *user->getUsers().begin();
  }
  if (isa<math::ExpOp>(user))
    return std::pair(user, scale);
  if (isa<math::Exp2Op>(user))
    return std::pair(user, scale * M_LN2);
  return std::nullopt;
}

std::optional<LogSum> LogSum::match(scf::ForOp loop, unsigned index) {
  auto next = loop.getYieldedValues()[index].getDefiningOp<arith::AddFOp>();
  if (!next)
    return std::nullopt;
  LogSum found;
  found.loop = loop;
  found.index = index;
  for (unsigned side : {0, 1}) {
    auto logarithm = matchLogarithm(next->getOperand(side));
    if (!logarithm || logarithm->second == 0)
      continue;
    found.level = next->getOperand(1 - side);
    std::tie(found.terms, found.unit) = *logarithm;
  }
  if (!found.level)
    return std::nullopt;
  Value current = loop.getRegionIterArg(index);
  for (Operation *user : current.getUsers()) {
    auto distance = dyn_cast<arith::SubFOp>(user);
    if (!distance || distance.getLhs() != current ||
        distance.getRhs() != found.level)
      continue;
    for (Operation *use : distance->getUsers())
      if (auto exponential = matchExponential(use, distance))
        if (areClose(exponential->second * found.unit, 1, current.getType()) ||
            mutation::isMade("log-sum:exponentials of any base"))
          found.exponentials.push_back(exponential->first);
  }
  return found.exponentials.empty() ? std::nullopt : std::optional(found);
}

/// Makes the loops that `loop` continues use the same c.
void LogSum::chain(ArrayRef<LogSum> before) {
  auto init = dyn_cast<OpResult>(withoutResidual(loop.getInitArgs()[index]));
  if (!init)
    return;
  const LogSum *previous = llvm::find_if(before, [&](const LogSum &other) {
    return other.loop == init.getOwner() &&
           other.index == init.getResultNumber() && other.unit == unit;
  });
  if (previous == before.end() || !canRunAfter(previous->loop, loop))
    return;
  OpBuilder b(loop);
  IRMapping map;
  map.map(previous->level, level);
  auto again = cast<scf::ForOp>(b.clone(*previous->loop, map));
  for (OpOperand &operand : loop.getInitArgsMutable())
    if (auto result = dyn_cast<OpResult>(withoutResidual(operand.get())))
      if (result.getOwner() == previous->loop)
        operand.set(again.getResult(result.getResultNumber()));
  if (auto found = match(again, previous->index))
    found->chain(before);
}

std::optional<LogSum> LogSum::fixLevel(unsigned id, ArrayRef<LogSum> before) {
  if (level.getParentBlock() != loop.getBody() || !level.getDefiningOp() ||
      !canRunTwice(loop) ||
      (!nothingDependsOn(loop, level) &&
       !mutation::isMade("log-sum:any level")))
    return std::nullopt;
  Value result = loop.getResult(index);
  if (ResidualOp residual = findName(result))
    id = residual.getId();
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  auto last = ResidualOp::create(b, loop.getLoc(), result, id);
  IRMapping map;
  auto again = cast<scf::ForOp>(b.clone(*loop, map));
  map.lookup(level).replaceAllUsesWith(last);
  for (auto [from, to] : llvm::zip_equal(loop.getResults(), again.getResults()))
    from.replaceAllUsesExcept(to, last);
  loop.walk([](triton::StoreOp store) { store.erase(); });
  auto found = match(again, index);
  if (found)
    found->chain(before);
  return found;
}

/// Replaces `sum`, which was ℓ, by c + k·log(sum) in all its uses.
static void useLogarithm(OpBuilder &b, const LogSum &of, Value sum) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : sum.getUses())
    uses.push_back(&use);
  Value logarithm = arith::AddFOp::create(b, sum.getLoc(), of.level,
                                          createLog(b, sum, of.unit));
  for (OpOperand *use : uses)
    use->set(logarithm);
}

/// The initial value of the sum, e^((ℓ₀−c)/k): zero, or the sum of an earlier
/// loop relative to the same c; else null.
Value LogSum::getStart(OpBuilder &b) {
  Value init = loop.getInitArgs()[index];
  APFloat start(0.0);
  if (matchPattern(init, m_ConstantFloat(&start)))
    return start.isInfinity() && start.isNegative()
               ? zeroOf(b, loop.getLoc(), init.getType())
               : Value();
  return Combination::of(init).getSum(level, unit);
}

bool LogSum::carrySum(unsigned id) {
  OpBuilder b(loop);
  Value start = loop.isDefinedOutsideOfLoop(level) ? getStart(b) : Value();
  if (!start)
    return false;
  loop.getInitArgsMutable()[index].set(start);
  Value sum = loop.getRegionIterArg(index);
  b.setInsertionPointToStart(loop.getBody());
  useLogarithm(b, *this, sum);
  for (Operation *exponential : exponentials)
    exponential->getResult(0).replaceAllUsesWith(sum);
  loop.getBody()->getTerminator()->setOperand(index, terms);
  b.setInsertionPointAfter(loop);
  Value result = loop.getResult(index);
  auto residual = ResidualOp::create(b, loop.getLoc(), result, id);
  result.replaceAllUsesExcept(residual, residual);
  useLogarithm(b, *this, residual);
  return true;
}
