//===- Elementwise.cpp - Partial derivatives of elementwise operations ----===//
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;
using Tiles = llvm::ArrayRef<Tile>;
using arith::CmpFPredicate;

LogicalResult mlir::autodiff::pullBackPartials(Operation *op, Adjoint &adjoint,
                                               ArrayRef<Partial> partials) {
  Value cotangent = adjoint.get(op->getResult(0));
  if (!cotangent)
    return success();
  auto tile = [&](Value primal) {
    Value value = adjoint.primal(primal);
    if (isDifferentiable(value.getType()))
      value = adjoint.widen(value);
    return Tile(adjoint.builder, adjoint.loc(), value);
  };
  SmallVector<Tile> operands = llvm::map_to_vector(op->getOperands(), tile);
  Tile result = tile(op->getResult(0));
  for (auto [operand, partial] : llvm::zip_equal(op->getOperands(), partials))
    if (partial && adjoint.isActive(operand)) {
      Tile contribution = partial(result.like(cotangent), operands, result);
      // Where precision changes to or from double, so does the adjoint's.
      Type wide = getElementTypeOrSelf(Adjoint::typeFor(operand.getType()));
      adjoint.add(operand, castFloat(adjoint.builder, adjoint.loc(),
                                     contribution, wide));
    }
  return success();
}

template <typename OpT>
static void elementwise(RuleTable &table, llvm::StringRef formula,
                        std::initializer_list<Partial> partials) {
  table.insert(OpT::getOperationName(),
               Rule{formula.str(), [partials = SmallVector<Partial>(partials)](
                                       Operation *op, Adjoint &adjoint) {
                      return pullBackPartials(op, adjoint, partials);
                    }});
}

template <typename... OpTs> static void piecewiseConstant(RuleTable &table) {
  auto none = [](Operation *, Adjoint &) { return success(); };
  (table.insert(OpTs::getOperationName(), Rule{"0", none, true}), ...);
}

static Tile same(Tile t, Tiles, Tile) { return t; }
static Tile negated(Tile t, Tiles, Tile) { return -t; }

/// t where `first` wins the comparison, half of it where both are equal.
static Tile winner(CmpFPredicate wins, Tile t, Tile first, Tile second) {
  Tile tied = where(compare(CmpFPredicate::OEQ, first, second), 0.5 * t,
                    t.constant(0.0));
  return where(compare(wins, first, second), t, tied);
}
static Tile maxLhs(Tile t, Tiles x, Tile) {
  return winner(CmpFPredicate::OGT, t, x[0], x[1]);
}
static Tile maxRhs(Tile t, Tiles x, Tile) {
  return winner(CmpFPredicate::OGT, t, x[1], x[0]);
}
static Tile minLhs(Tile t, Tiles x, Tile) {
  return winner(CmpFPredicate::OLT, t, x[0], x[1]);
}
static Tile minRhs(Tile t, Tiles x, Tile) {
  return winner(CmpFPredicate::OLT, t, x[1], x[0]);
}

static Tile timesRhs(Tile t, Tiles x, Tile) { return t * x[1]; }
static Tile timesLhs(Tile t, Tiles x, Tile) { return t * x[0]; }
static Tile overRhs(Tile t, Tiles x, Tile) {
  return unlessZero(t, t / x[1], x[1]);
}
// Through the quotient, which the forward often stores.
static Tile quotientRhs(Tile t, Tiles x, Tile y) {
  return unlessZero(t, -(t * y / x[1]), x[1]);
}

static void addArithRules(RuleTable &table) {
  elementwise<arith::AddFOp>(table, "x̄₁ += ȳ, x̄₂ += ȳ", {same, same});
  elementwise<arith::SubFOp>(table, "x̄₁ += ȳ, x̄₂ −= ȳ", {same, negated});
  elementwise<arith::NegFOp>(table, "x̄ −= ȳ", {negated});
  elementwise<arith::MulFOp>(table, "x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁",
                             {timesRhs, timesLhs});
  const char *quotient = "x̄₁ += ȳ/x₂, x̄₂ −= ȳ·y/x₂";
  elementwise<arith::DivFOp>(table, quotient, {overRhs, quotientRhs});
  elementwise<triton::PreciseDivFOp>(table, quotient, {overRhs, quotientRhs});
  elementwise<arith::RemFOp>(table, "x̄₁ += ȳ, x̄₂ −= ȳ·trunc(x₁/x₂)",
                             {same, [](Tile t, Tiles x, Tile y) {
                                return -(t * ((x[0] - y) / x[1]));
                              }});

  const char *max = "ȳ to the larger operand, half each on a tie";
  elementwise<arith::MaximumFOp>(table, max, {maxLhs, maxRhs});
  elementwise<arith::MaxNumFOp>(table, max, {maxLhs, maxRhs});
  const char *min = "ȳ to the smaller operand, half each on a tie";
  elementwise<arith::MinimumFOp>(table, min, {minLhs, minRhs});
  elementwise<arith::MinNumFOp>(table, min, {minLhs, minRhs});

  elementwise<arith::SelectOp>(
      table, "x̄₁ += c ? ȳ : 0, x̄₂ += c ? 0 : ȳ",
      {nullptr,
       [](Tile t, Tiles x, Tile) { return where(x[0], t, t.constant(0.0)); },
       [](Tile t, Tiles x, Tile) { return where(x[0], t.constant(0.0), t); }});
  elementwise<triton::ClampFOp>(
      table, "ȳ to x inside the bounds, to the bound that cuts outside",
      {[](Tile t, Tiles x, Tile) {
         Tile below =
             where(compare(CmpFPredicate::OLE, x[0], x[2]), t, t.constant(0.0));
         return where(compare(CmpFPredicate::OGE, x[0], x[1]), below,
                      t.constant(0.0));
       },
       [](Tile t, Tiles x, Tile) {
         return where(compare(CmpFPredicate::OLT, x[0], x[1]), t,
                      t.constant(0.0));
       },
       [](Tile t, Tiles x, Tile) {
         return where(compare(CmpFPredicate::OGT, x[0], x[2]), t,
                      t.constant(0.0));
       }});

  // Adjoints are wide already: a cast changes no value.
  elementwise<arith::ExtFOp>(table, "x̄ += ȳ", {same});
  elementwise<arith::TruncFOp>(table, "x̄ += ȳ", {same});
  elementwise<triton::FpToFpOp>(table, "x̄ += ȳ", {same});
  elementwise<ResidualOp>(table, "x̄ += ȳ", {same});
}

static void addMathRules(RuleTable &table) {
  elementwise<math::ExpOp>(table, "x̄ += ȳ·y",
                           {[](Tile t, Tiles, Tile y) { return t * y; }});
  elementwise<math::Exp2Op>(table, "x̄ += ȳ·y·ln 2", {[](Tile t, Tiles, Tile y) {
                              return M_LN2 * (t * y);
                            }});
  elementwise<math::LogOp>(table, "x̄ += ȳ/x", {[](Tile t, Tiles x, Tile) {
                             return unlessZero(t, t / x[0], x[0]);
                           }});
  elementwise<math::Log2Op>(table, "x̄ += ȳ/(x·ln 2)",
                            {[](Tile t, Tiles x, Tile) {
                              return unlessZero(t, M_LOG2E * t / x[0], x[0]);
                            }});
  const char *sqrtFormula = "x̄ += ȳ/(2y)";
  Partial sqrtPartial = [](Tile t, Tiles x, Tile y) {
    return unlessZero(t, 0.5 * t / y, x[0]);
  };
  elementwise<math::SqrtOp>(table, sqrtFormula, {sqrtPartial});
  elementwise<triton::PreciseSqrtOp>(table, sqrtFormula, {sqrtPartial});
  elementwise<math::RsqrtOp>(
      table, "x̄ −= ȳ·y³/2", {[](Tile t, Tiles x, Tile y) {
        return unlessZero(t, -0.5 * (t * (y * y * y)), x[0]);
      }});
  elementwise<math::SinOp>(table, "x̄ += ȳ·cos x", {[](Tile t, Tiles x, Tile) {
                             return t * cos(x[0]);
                           }});
  elementwise<math::CosOp>(table, "x̄ −= ȳ·sin x", {[](Tile t, Tiles x, Tile) {
                             return -(t * sin(x[0]));
                           }});
  elementwise<math::TanhOp>(
      table, "x̄ += ȳ·(1 − y²)",
      {[](Tile t, Tiles, Tile y) { return t * (1.0 - y * y); }});
  elementwise<math::ErfOp>(table, "x̄ += ȳ·2/√π·exp(−x²)",
                           {[](Tile t, Tiles x, Tile) {
                             return M_2_SQRTPI * (t * exp(-(x[0] * x[0])));
                           }});
  elementwise<math::AbsFOp>(
      table, "x̄ += ȳ·sign x", {[](Tile t, Tiles x, Tile) {
        Tile zero = t.constant(0.0);
        Tile negative =
            where(compare(CmpFPredicate::OLT, x[0], zero), -t, zero);
        return where(compare(CmpFPredicate::OGT, x[0], zero), t, negative);
      }});
  elementwise<math::FmaOp>(table, "x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁, x̄₃ += ȳ",
                           {timesRhs, timesLhs, same});
  piecewiseConstant<math::FloorOp, math::CeilOp, math::RoundOp,
                    math::RoundEvenOp, math::TruncOp>(table);
}

void mlir::autodiff::addElementwiseRules(RuleTable &table) {
  addArithRules(table);
  addMathRules(table);
}
