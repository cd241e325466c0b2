//===- Elementwise.cpp - Selections and casts, element by element ---------===//
//
// Operations that compute a function (arith.mulf, math.exp) have theirs in the
// table of functions.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;
using Tiles = llvm::ArrayRef<Tile>;
using arith::CmpFPredicate;

template <typename OpT>
static void elementwise(RuleTable &table, llvm::StringRef formula,
                        std::initializer_list<Partial> partials) {
  table.insert(OpT::getOperationName(),
               Rule{formula.str(), [partials = SmallVector<Partial>(partials)](
                                       Operation *op, Adjoint &adjoint) {
                      return pullBackPartials(op, adjoint, partials);
                    }});
}

static Tile same(Tile t, Tiles, Tile) { return t; }

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

void mlir::autodiff::addElementwiseRules(RuleTable &table) {
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
