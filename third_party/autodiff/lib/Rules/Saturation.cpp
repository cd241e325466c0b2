//===- Saturation.cpp - Tangents of exponentials at their ends ------------===//
#include "autodiff/Rules/Saturation.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Dependents.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Pointers.h"
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
  // A factor in memory may be the lowest number, for what is left out; it is
  // not taken for that in products of tiles.
  auto isModerate = [&](Value value) -> std::optional<bool> {
    Attribute constant;
    if (matchPattern(value, m_Constant(&constant)))
      if (auto number = getNumber(constant);
          number && isNearlyInfinite(*number))
        return false;
    if (value.getDefiningOp<triton::LoadOp>())
      return isa<triton::DotOp>(op);
    return std::nullopt;
  };
  auto movesFinitely = [&](unsigned moving, unsigned factor) {
    return !in.isActive(op->getOperand(moving)) ||
           isFiniteEverywhere(op->getOperand(factor), isModerate);
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

/// Whether a kernel stores active values where `pointer` points to, and loads
/// them again.
static bool isCarried(Value pointer, const Differentiation &in) {
  return llvm::any_of(getBaseArguments(pointer), [&](BlockArgument base) {
    return in.activity.carries(base.getArgNumber());
  });
}

/// Whether the tangent of `value` is finite where those are that a kernel is
/// given in memory.
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
    if (auto load = dyn_cast_or_null<triton::LoadOp>(op)) {
      if (isCarried(load.getPtr(), in))
        return false;
      if (load.getOther())
        pending.push_back(load.getOther());
    } else if (!op || !addLinear(op, in, pending)) {
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Exponentials that are finite, or that nothing limits
//===----------------------------------------------------------------------===//

/// Whether `largest` is a maximum over `value`, among others. It is repeated
/// along `axis`, or along all axes.
static bool isMaximumOver(Value largest, Value value,
                          std::optional<unsigned> axis = std::nullopt,
                          bool isSplat = false) {
  Operation *op = largest.getDefiningOp();
  if (largest == value)
    return true;
  if (isMaximum(op))
    return isMaximumOver(op->getOperand(0), value, axis, isSplat) ||
           isMaximumOver(op->getOperand(1), value, axis, isSplat);
  if (isa_and_present<triton::BroadcastOp, StopGradientOp>(op))
    return isMaximumOver(op->getOperand(0), value, axis, isSplat);
  if (auto splat = dyn_cast_or_null<triton::SplatOp>(op))
    return isMaximumOver(splat.getSrc(), value, axis, /*isSplat=*/true);
  if (auto expand = dyn_cast_or_null<triton::ExpandDimsOp>(op))
    return !axis && isMaximumOver(expand.getSrc(), value, expand.getAxis());
  auto reduce = dyn_cast_or_null<triton::ReduceOp>(op);
  if (!reduce || !isMaximum(reduce.getSingleCombiner()) ||
      (!isSplat && axis != reduce.getAxis()))
    return false;
  return isMaximumOver(reduce.getSrcs()[0], value, std::nullopt, isSplat);
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
  if (isQuotient(user))
    return use.getOperandNumber() == 0;
  return movesElements(user) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::SelectOp, math::AbsFOp, math::FmaOp, math::LogOp,
             math::Log2Op, math::SqrtOp, triton::DotOp>(user);
}

/// Whether anything may be finite although `value` is infinite. (What a
/// selection leaves out has no tangent either.)
static bool mayBeLimited(Value value, const Differentiation &in) {
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      if (isa<arith::CmpFOp>(user))
        continue;
      if (auto store = dyn_cast<triton::StoreOp>(user)) {
        if (isCarried(store.getPtr(), in))
          return true;
        continue;
      }
      bool isCopied = isa<scf::ForOp>(user) ||
                      (isa<scf::YieldOp>(user) &&
                       isa<scf::ForOp, scf::IfOp>(user->getParentOp()));
      if (!isCopied && !handsOnInfinite(use))
        return true;
      llvm::append_range(pending, resultsOf(use));
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
  if (!isNotPositive(exponent) && mayBeLimited(y, in) &&
      !mutation::isMade("saturation:limits"))
    leaveOut(std::numeric_limits<double>::infinity());
  return is ? where(is, tangent.constant(0.0), tangent) : tangent;
}
