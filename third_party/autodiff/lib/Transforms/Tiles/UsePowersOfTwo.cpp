//===- UsePowersOfTwo.cpp - Exponentials as the hardware has them --------===//
//
// GPUs compute powers of two, and flush the smallest ones to zero. For e^x,
// Triton multiplies by log₂e and does not flush, which takes five instructions
// on NVIDIA's. A softmax computes e^(x−m) for whole tiles with the same m for a
// row. Terms that small are zero beside the largest one anyway.
//
// A value that is compared bit for bit with one of the forward stays as it is.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Dependents.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

namespace mlir::autodiff {
#define GEN_PASS_DEF_USEPOWERSOFTWO
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct UsePowersOfTwo : autodiff::impl::UsePowersOfTwoBase<UsePowersOfTwo> {
  void runOnOperation() override;
};
} // namespace

/// Whether an exponential in float32 is relative to a value that is broadcast.
static bool isRelative(math::ExpOp op) {
  auto difference = op.getOperand().getDefiningOp<arith::SubFOp>();
  return difference && getElementTypeOrSelf(op.getType()).isF32() &&
         isa_and_nonnull<triton::SplatOp, triton::BroadcastOp>(
             difference.getRhs().getDefiningOp());
}

/// Whether an operation may test floats for equality.
static bool isTie(Operation *op) {
  return isa<arith::CmpFOp, triton::BitcastOp, arith::BitcastOp>(op);
}

void UsePowersOfTwo::runOnOperation() {
  if (!isBackward(getOperation()))
    return;
  SmallVector<math::ExpOp> exponentials;
  getOperation().walk([&](math::ExpOp op) { exponentials.push_back(op); });
  for (math::ExpOp op : exponentials) {
    if (!isRelative(op) ||
        llvm::any_of(findDependents({op.getResult()}), isTie))
      continue;
    OpBuilder b(op);
    Tile exponent(b, op.getLoc(), op.getOperand());
    exponent = M_LOG2E * exponent;
    op.replaceAllUsesWith(Value(exponent.make<math::Exp2Op>(exponent)));
    op.erase();
  }
}
