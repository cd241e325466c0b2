//===- Infinities.cpp - Infinite factors of cotangents --------------------===//
#include "autodiff/Rules/Infinities.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/LaneBounds.h"
#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Rules/Differentiation.h"
#include "autodiff/Support/Constants.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isQuotient(Operation *op) {
  return isa<arith::DivFOp, triton::ApproxDivFOp, triton::PreciseDivFOp>(op);
}

//===----------------------------------------------------------------------===//
// Finite values
//===----------------------------------------------------------------------===//

/// Operations whose result is finite if their float operands are, and may be
/// infinite if one of these is.
static bool passesInfinite(Operation *op) {
  return movesElements(op) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
             arith::MinNumFOp, math::AbsFOp, math::FmaOp>(op);
}

/// Operations whose result is finite if their float operands are.
static bool keepsFinite(Operation *op) {
  return passesInfinite(op) ||
         isa<arith::SelectOp, math::FloorOp, math::CeilOp, math::SinOp,
             math::CosOp, math::ErfOp, math::TanhOp, triton::ClampFOp,
             triton::DotOp, triton::ReduceOp, triton::ScanOp>(op);
}

bool mlir::autodiff::isFiniteEverywhere(
    Value value, llvm::function_ref<std::optional<bool>(Value)> isFinite) {
  constexpr unsigned kEnough = 256;
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!isFloat(next.getType()) || !seen.insert(next).second)
      continue;
    std::optional<bool> known = isFinite ? isFinite(next) : std::nullopt;
    if (seen.size() > kEnough || known == false)
      return false;
    if (auto load = next.getDefiningOp<triton::LoadOp>()) {
      if (!known)
        return false;
      if (load.getOther())
        pending.push_back(load.getOther());
      continue;
    }
    if (known)
      continue;
    if (auto values = findHandedOn(next)) {
      llvm::append_range(pending, *values);
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op) {
      // Kernels are assumed to be launched with finite scalars.
      if (isa<FloatType>(next.getType()) &&
          isa<FunctionOpInterface>(next.getParentBlock()->getParentOp()))
        continue;
      return false;
    }
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      continue;
    Attribute constant;
    if (matchPattern(op, m_Constant(&constant))) {
      std::optional<APFloat> number = getNumber(constant);
      if (!number || !number->isFinite())
        return false;
      continue;
    }
    if (!keepsFinite(op))
      return false;
    pending.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// The residual of a value, which may be loaded in its place.
static ResidualOp findResidual(Value value) {
  if (auto residual = value.getDefiningOp<ResidualOp>())
    return residual;
  SmallVector<ResidualOp, 1> residuals = findResiduals(value);
  return residuals.empty() ? nullptr : residuals.front();
}

bool mlir::autodiff::isFiniteElsewhere(Value value, LiveLanes &lanes,
                                       SmallVectorImpl<ScalarExpr> *assumed,
                                       Block *in) {
  auto isComplete = [&](triton::LoadOp load) {
    Constraints missing = findMissingBounds(
        load, lanes.without(lanes.of(load.getResult()), load.getMask()),
        assumed, in);
    return missing && missing->empty();
  };
  // A residual is computed by the forward, whose loads have their own masks.
  auto isSavedFinite = [&](Value source) -> std::optional<bool> {
    auto load = source.getDefiningOp<triton::LoadOp>();
    if (!load)
      return std::nullopt;
    return !load->hasAttr(kNarrowedAttr) && isComplete(load);
  };
  return isFiniteEverywhere(value, [&](Value source) -> std::optional<bool> {
    if (auto load = source.getDefiningOp<triton::LoadOp>())
      return isComplete(load);
    if (ResidualOp residual = findResidual(source);
        residual &&
        !mutation::isMade("lanes:a forward that reads as its copy does"))
      return isFiniteEverywhere(residual.getOperand(), isSavedFinite);
    return std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

namespace {
/// Looks for constants that a value may be in some lanes, because of masks or
/// the initial values of loops.
class PaddingSearch {
public:
  enum class Of { Infinities, Zeros };
  explicit PaddingSearch(Of of) : of(of) {}

  void add(Value value) { pending.push_back(value); }
  /// Whether there is one. `follow` may replace a value by another.
  bool find(llvm::function_ref<Value(Value)> follow = {});

private:
  bool isWanted(Attribute constant) const;
  bool isMadeHere(Operation *op) const;
  void addSources(Value value);

  Of of;
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending;
};
} // namespace

bool mlir::autodiff::isNearlyInfinite(const APFloat &number) {
  constexpr int kBitsOfAMultiple = 10;
  return !number.isNaN() &&
         ilogb(number) > APFloat::semanticsMaxExponent(number.getSemantics()) -
                             kBitsOfAMultiple;
}

bool PaddingSearch::isWanted(Attribute constant) const {
  std::optional<APFloat> number = getNumber(constant);
  return number &&
         (of == Of::Zeros ? number->isZero() : isNearlyInfinite(*number));
}

/// Whether `op` makes infinity of a zero (log 0, 1/0).
bool PaddingSearch::isMadeHere(Operation *op) const {
  Value vanishing;
  if (isQuotient(op))
    vanishing = op->getOperand(1);
  else if (isa<math::LogOp, math::Log2Op, math::RsqrtOp>(op))
    vanishing = op->getOperand(0);
  if (of == Of::Zeros || !vanishing)
    return false;
  PaddingSearch zeros(Of::Zeros);
  zeros.add(vanishing);
  return zeros.find();
}

/// Whether `op` limits values by a constant, so that they cannot be infinite: ∞
/// from above, −∞ from below.
static bool isCut(Operation *op) {
  bool isMinimum = isa<arith::MinimumFOp, arith::MinNumFOp>(op);
  Attribute constant;
  if (!(isMinimum || isa<arith::MaximumFOp, arith::MaxNumFOp>(op)) ||
      !matchPattern(op->getOperand(1), m_Constant(&constant)))
    return false;
  std::optional<APFloat> number = getNumber(constant);
  return number && number->isNegative() != isMinimum;
}

/// The values that are infinite, or zero, where this one is. (Exponentials of
/// the padding are finite, and divisors do not count.)
void PaddingSearch::addSources(Value value) {
  if (auto values = findHandedOn(value)) {
    llvm::for_each(*values, [&](Value each) { add(each); });
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  if (auto load = dyn_cast<triton::LoadOp>(op)) {
    if (load.getOther())
      add(load.getOther());
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    add(select.getTrueValue());
    add(select.getFalseValue());
  } else if (isQuotient(op)) {
    add(op->getOperand(0));
  } else if (auto dot = dyn_cast<triton::DotOp>(op);
             dot && of == Of::Infinities) {
    add(dot.getC());
  } else if (isCut(op)) {
    add(op->getOperand(0));
  } else if (of == Of::Infinities
                 ? passesInfinite(op)
                 : movesElements(op) || isa<arith::MulFOp, arith::NegFOp,
                                            math::AbsFOp, math::SqrtOp>(op)) {
    for (Value operand : op->getOperands())
      add(operand);
  }
}

bool PaddingSearch::find(llvm::function_ref<Value(Value)> follow) {
  constexpr unsigned kEnough = 256;
  while (!pending.empty() && seen.size() < kEnough) {
    Value next = pending.pop_back_val();
    if (follow)
      next = follow(next);
    if (!next || !isFloat(next.getType()) || !seen.insert(next).second)
      continue;
    Attribute constant;
    Operation *op = next.getDefiningOp();
    if (op && matchPattern(op, m_Constant(&constant))) {
      if (isWanted(constant))
        return true;
      continue;
    }
    if (op && isMadeHere(op))
      return true;
    // A mask that is converted to a number.
    if (auto cast = dyn_cast_or_null<arith::UIToFPOp>(op);
        cast && of == Of::Zeros &&
        getElementTypeOrSelf(cast.getIn().getType()).isInteger(1))
      return true;
    addSources(next);
  }
  return false;
}

/// Whether the factor of `t` in `contribution`, a partial derivative of `op`,
/// may be infinite because of padding.
static bool multipliesPadding(Tile contribution, Tile t, Operation *op,
                              ArrayRef<Tile> operands, Tile result) {
  // The initial values of loops are found in the forward.
  auto inPrimal = [&](Value value) -> Value {
    if (value == Value(t))
      return {};
    if (value == Value(result))
      return op->getResult(0);
    for (auto [primal, operand] : llvm::zip_equal(op->getOperands(), operands))
      if (value == Value(operand))
        return primal;
    return value;
  };
  PaddingSearch search(PaddingSearch::Of::Infinities);
  search.add(contribution);
  return search.find(inPrimal) &&
         !mutation::isMade("padding:as any other number");
}

Tile mlir::autodiff::besidePadding(Tile contribution, Tile cotangent,
                                   Operation *op, ArrayRef<Tile> operands,
                                   Tile result) {
  if (!multipliesPadding(contribution, cotangent, op, operands, result))
    return contribution;
  return unlessZero(cotangent, contribution, contribution);
}

Tile mlir::autodiff::unlessPadding(Tile contribution, Tile tangent,
                                   Operation *op, ArrayRef<Tile> operands,
                                   Tile result) {
  if (!multipliesPadding(contribution, tangent, op, operands, result))
    return contribution;
  Tile infinity = result.constant(std::numeric_limits<double>::infinity());
  Value isInfinite = compare(arith::CmpFPredicate::OEQ,
                             result.make<math::AbsFOp>(result), infinity);
  return where(isInfinite, contribution.constant(0.0), contribution);
}

//===----------------------------------------------------------------------===//
// Overflow
//===----------------------------------------------------------------------===//

/// Whether everything that depends on `value` may be finite even if that is
/// infinite, because `value` is a divisor. Values proportional to it are
/// infinite, too, and nobody asks for their gradient, unless a selection masks
/// them (DeadLanes.h).
static bool comesToLimit(Value value, unsigned depth) {
  bool isUsed = false;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<arith::CmpFOp>(user))
      continue;
    isUsed = true;
    if (user->getNumResults() != 1 || depth == 0 ||
        isa<triton::DotOp, triton::ScanOp, LoopLikeOpInterface>(user))
      return false;
    if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
            arith::MinNumFOp>(user))
      continue;
    bool isLinear = passesInfinite(user) ||
                    isa<arith::SelectOp, triton::ReduceOp, math::LogOp,
                        math::Log2Op, math::SqrtOp>(user) ||
                    (isQuotient(user) && use.getOperandNumber() == 0);
    if (isLinear && !comesToLimit(user->getResult(0), depth - 1))
      return false;
  }
  return isUsed;
}

Tile mlir::autodiff::beforeOverflow(Tile y, Operation *op) {
  constexpr unsigned kFarEnough = 16;
  if (!comesToLimit(op->getResult(0), kFarEnough) ||
      mutation::isMade("exponential:infinite where it divides"))
    return y;
  auto type = cast<FloatType>(getElementTypeOrSelf(y.type()));
  APFloat largest = APFloat::getLargest(type.getFloatSemantics());
  return y.make<arith::MinimumFOp>(y, y.constant(largest.convertToDouble()));
}
