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

/// y = min(max(x, low), high): `high` also cuts what is above it in `low`. A
/// NaN that does not propagate becomes `low`.
static LogicalResult clamp(triton::ClampFOp op, Adjoint &adjoint) {
  CmpFPredicate below = op.getPropagateNan() == triton::PropagateNan::ALL
                            ? CmpFPredicate::OLT
                            : CmpFPredicate::ULT;
  auto when = [](CmpFPredicate holds, Tile a, Tile b, Tile t) {
    return where(compare(holds, a, b), t, t.constant(0.0));
  };
  return pullBackPartials(
      op, adjoint,
      {[=](Tile t, Tiles x, Tile) {
         return when(CmpFPredicate::OGE, x[0], x[1],
                     when(CmpFPredicate::OLE, x[0], x[2], t));
       },
       [=](Tile t, Tiles x, Tile) {
         return when(below, x[0], x[1],
                     when(CmpFPredicate::OLE, x[1], x[2], t));
       },
       [=](Tile t, Tiles x, Tile) {
         Tile cut = when(CmpFPredicate::OGT, x[0], x[2], t);
         return where(compare(CmpFPredicate::OGT, x[1], x[2]), t, cut);
       }});
}

void mlir::autodiff::addElementwiseRules(RuleTable &table) {
  elementwise<arith::SelectOp>(
      table, "x̄₁ += c ? ȳ : 0, x̄₂ += c ? 0 : ȳ",
      {nullptr,
       [](Tile t, Tiles x, Tile) { return where(x[0], t, t.constant(0.0)); },
       [](Tile t, Tiles x, Tile) { return where(x[0], t.constant(0.0), t); }});
  table.add<triton::ClampFOp>(
      "ȳ to x inside the bounds, to the bound that cuts outside", clamp);

  // Adjoints are wide already: a cast changes no value.
  elementwise<arith::ExtFOp>(table, "x̄ += ȳ", {same});
  elementwise<arith::TruncFOp>(table, "x̄ += ȳ", {same});
  elementwise<triton::FpToFpOp>(table, "x̄ += ȳ", {same});
  elementwise<ResidualOp>(table, "x̄ += ȳ", {same});
}
