//===- Select.cpp - One of two values, and products guarded by a select ---===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Partials.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Support/Leaves.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;
using Tiles = llvm::ArrayRef<Tile>;
using arith::CmpFPredicate;

static Partials partialsOf() {
  return {
      nullptr,
      [](Tile t, Tiles x, Tile) { return where(x[0], t, t.constant(0.0)); },
      [](Tile t, Tiles x, Tile) { return where(x[0], t.constant(0.0), t); }};
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

namespace {
/// A selection of zero where a product is NaN, and one of its factors zero. (A
/// backward has these: a cotangent may be zero, and what it is multiplied by
/// infinite.)
struct Guard {
  /// Whether the selection is zero if its conditions hold, all of them; if not,
  /// it is the product if one of them holds.
  bool isZeroIf;
  Value product;
  SmallVector<Value> factors;
  /// The conditions but for the product's.
  SmallVector<Value> conditions;

  static std::optional<Guard> of(arith::SelectOp select);
  /// How conditions ask for a factor, and for a product that is NaN.
  CmpFPredicate isZero() const {
    return isZeroIf ? CmpFPredicate::OEQ : CmpFPredicate::UNE;
  }
  CmpFPredicate isNaN() const {
    return isZeroIf ? CmpFPredicate::UNE : CmpFPredicate::OEQ;
  }
  /// `t` or zero, as a condition for the product says.
  Tile choose(Value condition, Tile t) const {
    Tile zero = t.constant(0.0);
    return isZeroIf ? where(condition, zero, t) : where(condition, t, zero);
  }
};
} // namespace

std::optional<Guard> Guard::of(arith::SelectOp select) {
  Guard guard;
  guard.isZeroIf = matchPattern(select.getTrueValue(), m_AnyZeroFloat());
  if (!guard.isZeroIf &&
      !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return std::nullopt;
  guard.product =
      guard.isZeroIf ? select.getFalseValue() : select.getTrueValue();
  SmallVector<Value> parts;
  if (guard.isZeroIf)
    collectLeaves<arith::AndIOp>(select.getCondition(), parts);
  else
    collectLeaves<arith::OrIOp>(select.getCondition(), parts);
  bool asksForNaN = false;
  for (Value part : parts) {
    auto compare = part.getDefiningOp<arith::CmpFOp>();
    if (compare && compare.getPredicate() == guard.isNaN() &&
        compare.getLhs() == guard.product &&
        compare.getRhs() == guard.product) {
      asksForNaN = true;
      continue;
    }
    guard.conditions.push_back(part);
    if (compare && compare.getPredicate() == guard.isZero() &&
        matchPattern(compare.getRhs(), m_AnyZeroFloat()))
      guard.factors.push_back(compare.getLhs());
  }
  if (!asksForNaN || guard.factors.empty())
    return std::nullopt;
  return guard;
}

/// The tangent of a product that is guarded, zero where it is NaN and the
/// factors are zero, as their tangents are: t·w for t = 0 does not depend on w.
static Tile guarded(Tile tangent, const Guard &guard, Tangents &tangents) {
  Value condition = compare(guard.isNaN(), tangent, tangent);
  auto require = [&](Value next) {
    condition = guard.isZeroIf
                    ? Value(arith::AndIOp::create(tangent.b(), tangent.loc(),
                                                  next, condition))
                    : Value(arith::OrIOp::create(tangent.b(), tangent.loc(),
                                                 next, condition));
  };
  for (Value known : guard.conditions)
    require(tangents.primal(known));
  for (Value factor : guard.factors)
    if (Value moves = tangents.get(factor)) {
      Tile t(tangent.b(), tangent.loc(), moves);
      require(compare(guard.isZero(), t, t.constant(0.0)));
    }
  return guard.choose(condition, tangent);
}

//===----------------------------------------------------------------------===//
// Rule
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(arith::SelectOp op, Adjoint &adjoint) {
  return pullBackPartials(op, adjoint, partialsOf());
}

static LogicalResult push(arith::SelectOp op, Tangents &tangents) {
  std::optional<Guard> guard = Guard::of(op);
  Value tangent = guard ? tangents.get(guard->product) : Value();
  if (!tangent || mutation::isMade("zeros:of values, not of tangents"))
    return pushPartials(op, tangents, partialsOf());
  Tile t = guarded(Tile(tangents.builder, tangents.loc(), tangent), *guard,
                   tangents);
  tangents.add(op.getResult(),
               guard->choose(tangents.primal(op.getCondition()), t));
  return success();
}

void mlir::autodiff::addSelectRules(RuleTable &table) {
  table.add<arith::SelectOp>("x̄₁ += c ? ȳ : 0, x̄₂ += c ? 0 : ȳ", pullBack,
                             push);
}
