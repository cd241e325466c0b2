//===- RoundLate.cpp - Float64 is rounded where it is used ----------------===//
//
// The adjoint of a float32 number is a float32 number, and so are sums of such
// adjoints: over the lanes of a tile that a number is broadcast to, over the
// iterations that use it, over its users. For a float64 number that is rounded
// once and used often, these sums lose half of its digits. Rounded at each use,
// adjoints become float64 before they are added up. Triton and LICM move
// rounding the other way, to where it is done least often.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ROUNDLATE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static bool roundsDouble(Operation *op) {
  return isa<arith::TruncFOp, triton::FpToFpOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isF64();
}

/// The rounding of `value` to what `like` results in, in front of `user`.
static Operation *roundBefore(Operation *user, Operation *like, Value value) {
  OpBuilder b(user);
  Operation *rounding = b.clone(*like);
  rounding->setOperand(0, value);
  Type element = getElementTypeOrSelf(like->getResult(0).getType());
  rounding->getResult(0).setType(withElementType(value.getType(), element));
  return rounding;
}

namespace {
struct RoundLate : autodiff::impl::RoundLateBase<RoundLate> {
  using RoundLateBase::RoundLateBase;

  void transform() override {
    if (mutation::isMade("rounding:once for all uses"))
      return;
    SmallVector<Operation *> roundings;
    if (triton::FuncOp kernel = getDifferentiated(getOperation()))
      kernel.walk([&](Operation *op) {
        if (roundsDouble(op))
          roundings.push_back(op);
      });
    while (!roundings.empty())
      move(roundings.pop_back_val(), roundings);
  }

  /// Rounds in front of each user, and behind those that only move elements.
  void move(Operation *rounding, SmallVectorImpl<Operation *> &roundings) {
    Value number = rounding->getOperand(0);
    for (OpOperand &use : llvm::make_early_inc_range(rounding->getUses())) {
      Operation *user = use.getOwner();
      if (!onlyMoves(user)) {
        use.set(roundBefore(user, rounding, number)->getResult(0));
        continue;
      }
      OpBuilder b(user);
      Operation *wide = b.clone(*user);
      wide->setOperand(0, number);
      Value moved = wide->getResult(0);
      moved.setType(withElementType(moved.getType(), b.getF64Type()));
      Operation *later = roundBefore(user, rounding, moved);
      user->getResult(0).replaceAllUsesWith(later->getResult(0));
      user->erase();
      roundings.push_back(later);
    }
    rounding->erase();
  }
};
} // namespace
