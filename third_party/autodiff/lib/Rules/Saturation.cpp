//===- Saturation.cpp - Tangents of exponentials at their ends ------------===//
#include "autodiff/Rules/Saturation.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Differentiation.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Support/Constants.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool isMaximum(Operation *op) {
  return isa_and_present<arith::MaximumFOp, arith::MaxNumFOp>(op);
}

//===----------------------------------------------------------------------===//
// Tangents that are finite
//===----------------------------------------------------------------------===//

/// Adds the operands of `op` whose tangents, times finite factors, its result's
/// tangent is a sum of; false if that is not known.
static bool addLinear(Operation *op, const Differentiation &in,
                      SmallVectorImpl<Value> &pending) {
  auto add = [&](unsigned first, unsigned last) {
    pending.append(op->operand_begin() + first, op->operand_begin() + last);
    return true;
  };
  // Memory may hold the lowest number for what is left out. A product of tiles
  // with that is NaN itself.
  auto isLoaded = [&](Value value) -> std::optional<bool> {
    if (value.getDefiningOp<triton::LoadOp>())
      return isa<triton::DotOp>(op);
    return std::nullopt;
  };
  auto movesFinitely = [&](unsigned moving, unsigned factor) {
    return !in.isActive(op->getOperand(moving)) ||
           isFiniteEverywhere(op->getOperand(factor), isLoaded);
  };
  unsigned count = op->getNumOperands();
  if (isa<arith::MulFOp, math::FmaOp, triton::DotOp>(op))
    return add(0, count) && movesFinitely(0, 1) && movesFinitely(1, 0);
  if (isa<arith::SelectOp>(op))
    return add(1, count);
  auto reduce = dyn_cast<triton::ReduceOp>(op);
  Operation *combiner = reduce ? reduce.getSingleCombiner() : nullptr;
  bool isSumOrChoice =
      movesElements(op) || isMaximum(op) || isMaximum(combiner) ||
      isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, math::AbsFOp,
          arith::MinimumFOp, arith::MinNumFOp>(op) ||
      isa_and_present<arith::AddFOp>(combiner);
  return isSumOrChoice && add(0, count);
}

/// Whether the tangent of `value` is finite where tangents in memory are.
static bool hasFiniteTangent(Value value, const Differentiation &in) {
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!isFloat(next.getType()) || !in.isActive(next) ||
        !seen.insert(next).second)
      continue;
    if (auto values = findHandedOn(next)) {
      llvm::append_range(pending, *values);
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op || (!isa<triton::LoadOp>(op) && !addLinear(op, in, pending)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Exponentials that are finite, or that nothing limits
//===----------------------------------------------------------------------===//

/// Whether `largest` is a maximum over `value`, among others.
static bool isMaximumOver(Value largest, Value value) {
  while (true) {
    Operation *op = largest.getDefiningOp();
    if (largest == value)
      return true;
    auto reduce = dyn_cast_or_null<triton::ReduceOp>(op);
    if (isMaximum(op))
      return isMaximumOver(op->getOperand(0), value) ||
             isMaximumOver(op->getOperand(1), value);
    if (!isa_and_present<triton::SplatOp, triton::BroadcastOp,
                         triton::ExpandDimsOp, StopGradientOp>(op) &&
        !(reduce && isMaximum(reduce.getSingleCombiner())))
      return false;
    largest = op->getOperand(0);
  }
}

/// Whether `value` is what is left of a number without a maximum over it.
static bool isNotPositive(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto product = dyn_cast_or_null<arith::MulFOp>(op)) {
    APFloat factor(0.0);
    return matchPattern(product.getRhs(), m_ConstantFloat(&factor)) &&
           !factor.isNegative() && isNotPositive(product.getLhs());
  }
  auto difference = dyn_cast_or_null<arith::SubFOp>(op);
  return difference && isMaximumOver(difference.getRhs(), difference.getLhs());
}

/// Whether a result of the use's owner is infinite, or NaN, where the value is.
static bool handsOnInfinite(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto reduce = dyn_cast<triton::ReduceOp>(user))
    return isa_and_present<arith::AddFOp>(reduce.getSingleCombiner());
  if (isa<arith::DivFOp, triton::ApproxDivFOp, triton::PreciseDivFOp>(user))
    return use.getOperandNumber() == 0;
  return movesElements(user) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::SelectOp, math::AbsFOp, math::FmaOp, math::LogOp,
             math::Log2Op, math::SqrtOp, triton::DotOp>(user);
}

/// Whether anything may be finite although `value` is infinite. (What a
/// selection leaves out has no tangent either.)
static bool mayBeLimited(Value value) {
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (isa<arith::CmpFOp, triton::StoreOp>(user))
        continue;
      if (handsOnInfinite(use)) {
        llvm::append_range(pending, user->getResults());
      } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
        pending.push_back(loop.getTiedLoopRegionIterArg(&use));
        pending.push_back(loop.getTiedLoopResult(&use));
      } else if (auto yield = dyn_cast<scf::YieldOp>(user);
                 yield && isa<scf::ForOp, scf::IfOp>(user->getParentOp())) {
        pending.push_back(user->getParentOp()->getResult(number));
        if (auto around = dyn_cast<scf::ForOp>(user->getParentOp()))
          pending.push_back(around.getRegionIterArg(number));
      } else {
        return true;
      }
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

Tile mlir::autodiff::unlessSaturated(Tile tangent, Tile result, Operation *op,
                                     const Differentiation &in) {
  Value exponent = op->getOperand(0), y = op->getResult(0);
  Value is;
  auto leaveOut = [&](double end) {
    Value here =
        compare(arith::CmpFPredicate::OEQ, result, result.constant(end));
    is = is ? arith::OrIOp::create(tangent.b(), tangent.loc(), is, here) : here;
  };
  if (!hasFiniteTangent(exponent, in) &&
      !mutation::isMade("saturation:a lowest number that moves"))
    leaveOut(0.0);
  if (!isNotPositive(exponent) && mayBeLimited(y) &&
      !mutation::isMade("saturation:limits"))
    leaveOut(std::numeric_limits<double>::infinity());
  return is ? where(is, tangent.constant(0.0), tangent) : tangent;
}
