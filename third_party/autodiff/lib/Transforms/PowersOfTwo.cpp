//===- PowersOfTwo.cpp - Exponentials as the hardware has them ------------===//
//
// GPUs compute powers of two, whose smallest results are flushed to zero. For
// e^x, Triton multiplies by log₂e and keeps these, which takes five
// instructions on NVIDIA's. A softmax takes e^(x−m) of whole tiles, m being the
// same for all of a row: 2^(x·log₂e − m·log₂e) is a multiplication that adds,
// and a power.
//
// The second product is rounded, by up to |m|·2⁻²⁴. As with the frames of sums
// (FoldNormalizers.cpp), that only matters if x is exact. What is compared bit
// for bit with something that a forward has computed stays as it is.
//
//===----------------------------------------------------------------------===//
#include "Reach.h"
#include "Rounding.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

namespace mlir::autodiff {
#define GEN_PASS_DEF_POWERSOFTWO
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PowersOfTwo : autodiff::impl::PowersOfTwoBase<PowersOfTwo> {
  void runOnOperation() override;
};
} // namespace

static Tile timesLog2E(OpBuilder &b, Value value) {
  return M_LOG2E * Tile(b, value.getLoc(), value);
}

/// x · log₂e, by scaling what x is already a multiple of, if nothing else needs
/// that.
static Value scale(OpBuilder &b, Value x) {
  Operation *op = x.hasOneUse() ? x.getDefiningOp() : nullptr;
  APFloat number(0.0);
  if (auto product = dyn_cast_or_null<arith::MulFOp>(op))
    if (auto splat = product.getRhs().getDefiningOp<triton::SplatOp>())
      return arith::MulFOp::create(
          b, x.getLoc(), product.getLhs(),
          splatTo(b, x.getLoc(), timesLog2E(b, splat.getSrc()), x.getType()));
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    if (matchPattern(select.getFalseValue(), m_ConstantFloat(&number)))
      return arith::SelectOp::create(b, x.getLoc(), select.getCondition(),
                                     scale(b, select.getTrueValue()),
                                     timesLog2E(b, select.getFalseValue()));
  return timesLog2E(b, x);
}

/// m · log₂e for a tile that repeats something smaller; null for others.
static Value scaleRepeated(OpBuilder &b, Value m) {
  Operation *op = m.getDefiningOp();
  if (!isa_and_nonnull<triton::SplatOp, triton::BroadcastOp,
                       triton::ExpandDimsOp>(op))
    return {};
  Value source = op->getOperand(0);
  Value scaled = scaleRepeated(b, source);
  IRMapping map;
  map.map(source, scaled ? scaled : Value(timesLog2E(b, source)));
  return b.clone(*op, map)->getResult(0);
}

/// Whether an operation asks for floats that are equal.
static bool isTie(Operation *op) {
  return isa<arith::CmpFOp, triton::BitcastOp, arith::BitcastOp>(op);
}

void PowersOfTwo::runOnOperation() {
  if (!isBackward(getOperation()))
    return;
  SmallVector<math::ExpOp> exponentials;
  getOperation().walk([&](math::ExpOp op) { exponentials.push_back(op); });
  for (math::ExpOp op : exponentials) {
    auto difference = op.getOperand().getDefiningOp<arith::SubFOp>();
    if (!getElementTypeOrSelf(op.getType()).isF32() || !difference ||
        !isComputed(difference.getLhs()) ||
        llvm::any_of(reach({op.getResult()}), isTie))
      continue;
    OpBuilder b(difference);
    Value m = scaleRepeated(b, difference.getRhs());
    if (!m)
      continue;
    Value exponent = arith::SubFOp::create(b, difference.getLoc(),
                                           scale(b, difference.getLhs()), m);
    b.setInsertionPoint(op);
    op.replaceAllUsesWith(
        math::Exp2Op::create(b, op.getLoc(), exponent).getResult());
  }
}
