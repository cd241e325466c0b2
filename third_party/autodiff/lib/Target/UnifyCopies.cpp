//===- UnifyCopies.cpp - The same sum in all threads that have it ---------===//
//
// Where threads shuffle what they sum, each adds its own part and another's,
// and each has the result. Products are contracted with the sum, of a thread's
// own part alone: fma(a, b, c·d) is not fma(c, d, a·b), and the copies differ
// in the last bit. With one copy the maximum of such sums is found, and another
// one is compared with it: then it is found nowhere, and its gradient is lost.
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

/// Lets all take the copy of the first lane: the sum of that and of zeros.
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
