//===- Elementwise.cpp - Clamps and casts, element by element -------------===//
//
// Other elementwise operations (arith.mulf, math.exp) are in the table of
// functions.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/RuleTable.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using Tiles = llvm::ArrayRef<Tile>;
using arith::CmpFPredicate;

static Tile same(Tile t, Tiles, Tile) { return t; }

/// y = min(max(x, low), high); `high` also limits `low`. If NaN does not
/// propagate, it becomes `low`.
static Partials clamp(triton::ClampFOp op) {
  CmpFPredicate below = op.getPropagateNan() == triton::PropagateNan::ALL
                            ? CmpFPredicate::OLT
                            : CmpFPredicate::ULT;
  auto when = [](CmpFPredicate holds, Tile a, Tile b, Tile t) {
    return where(compare(holds, a, b), t, t.constant(0.0));
  };
  return {[=](Tile t, Tiles x, Tile) {
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
          }};
}

void mlir::autodiff::addElementwiseRules(RuleTable &table) {
  table.addElementwise<triton::ClampFOp>(
      "ȳ to x inside the bounds, to the bound that cuts outside", clamp);

  // Adjoints are float32 anyway: a cast changes nothing.
  table.addElementwise<arith::ExtFOp>("x̄ += ȳ", {same});
  table.addElementwise<arith::TruncFOp>("x̄ += ȳ", {same});
  table.addElementwise<triton::FpToFpOp>("x̄ += ȳ", {same});
  table.addElementwise<ResidualOp>("x̄ += ȳ", {same});
}
