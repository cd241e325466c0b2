//===- UnifyCopies.cpp - The same sum in all threads that have it ---------===//
//
// When threads shuffle to add up a sum, each adds its own part and another
// thread's, and each has the result. A product may be fused into the sum, but
// only that of a thread's own part: fma(a, b, c·d) is not fma(c, d, a·b), so
// the copies differ in the last bit. If the maximum of such sums is taken of
// one copy and compared with another, no element is equal, and the gradient is
// lost.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Builders/Axis.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_UNIFYCOPIES
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Replaces a sum by a sum of the first lane's copy and zeros, which is the
/// same in all threads.
static void unify(triton::ReduceOp reduce) {
  OpBuilder b(reduce->getContext());
  b.setInsertionPointAfter(reduce);
  Location loc = reduce.getLoc();
  unsigned axis = reduce.getAxis();
  auto tile = cast<RankedTensorType>(reduce.getSrcs()[0].getType());
  if (tile.getDimSize(axis) == 1)
    return;
  Value isFirst = Axis(b, loc, tile.getShape(), axis).isFirst();
  for (Value copies : reduce->getResults()) {
    if (!isFloat(copies.getType()))
      continue;
    auto uses = llvm::to_vector(llvm::make_pointer_range(copies.getUses()));
    Tile lane(b, loc,
              repeatAlong(b, loc, copies, axis,
                          tile.clone(getElementTypeOrSelf(copies))));
    Value same =
        sumOver(b, loc, where(isFirst, lane, lane.constant(0.0)), axis);
    for (OpOperand *use : uses)
      use->set(same);
  }
}

namespace {
struct UnifyCopies : autodiff::impl::UnifyCopiesBase<UnifyCopies> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kRoleAttr) || mutation::isMade("unify-copies:none"))
      return;
    for (triton::ReduceOp reduce : findTiedSums(kernel))
      unify(reduce);
  }
};
} // namespace
