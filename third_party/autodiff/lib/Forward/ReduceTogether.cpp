//===- ReduceTogether.cpp - One reduction in place of two -----------------===//
//
// In a reduction, the warps of a program wait for each other. Beside that of a
// value there is that of its tangent: together, they wait once.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_REDUCETOGETHER
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;

namespace {
struct ReduceTogether : autodiff::impl::ReduceTogetherBase<ReduceTogether> {
  void runOnOperation() override;
};
} // namespace

static bool isAlike(triton::ReduceOp a, triton::ReduceOp b) {
  auto shape = [](triton::ReduceOp op) {
    return cast<RankedTensorType>(op.getSrcs().front().getType()).getShape();
  };
  return a.getAxis() == b.getAxis() && shape(a) == shape(b);
}

/// Whether `second`, which is behind `first`, does not wait for it, and may be
/// done where `first` is.
static bool isReady(triton::ReduceOp first, triton::ReduceOp second) {
  return llvm::all_of(second.getSrcs(), [&](Value source) {
    Operation *own = source.getDefiningOp();
    return !own || own->getBlock() != first->getBlock() ||
           own->isBeforeInBlock(first);
  });
}

/// The next reduction of its block that may be done together with `first`; null
/// if there is none.
static triton::ReduceOp findPartner(triton::ReduceOp first) {
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode())
    if (auto second = dyn_cast<triton::ReduceOp>(op);
        second && isAlike(first, second) && isReady(first, second))
      return second;
  return {};
}

/// Puts what `reduce` combines into `body`, which takes its pairs from argument
/// `from` on; `count` is how many pairs there are.
static SmallVector<Value> combine(OpBuilder &b, triton::ReduceOp reduce,
                                  Block *body, unsigned from, unsigned count) {
  Block &own = reduce.getCombineOp().front();
  IRMapping map;
  unsigned half = own.getNumArguments() / 2;
  for (unsigned i = 0; i < half; ++i) {
    map.map(own.getArgument(i), body->getArgument(from + i));
    map.map(own.getArgument(half + i), body->getArgument(count + from + i));
  }
  for (Operation &op : own.without_terminator())
    b.clone(op, map);
  return llvm::map_to_vector(
      own.getTerminator()->getOperands(),
      [&](Value value) { return map.lookupOrDefault(value); });
}

static triton::ReduceOp reduceBoth(triton::ReduceOp first,
                                   triton::ReduceOp second) {
  OpBuilder b(first);
  SmallVector<Value> sources(first.getSrcs());
  llvm::append_range(sources, second.getSrcs());
  auto both =
      triton::ReduceOp::create(b, first.getLoc(), sources, first.getAxis());
  unsigned count = sources.size(), own = first.getSrcs().size();
  Block *body = b.createBlock(&both.getCombineOp());
  for (int side = 0; side < 2; ++side)
    for (Value source : sources)
      body->addArgument(getElementTypeOrSelf(source.getType()), first.getLoc());
  SmallVector<Value> results = combine(b, first, body, 0, count);
  llvm::append_range(results, combine(b, second, body, own, count));
  triton::ReduceReturnOp::create(b, first.getLoc(), results);
  auto outcome = both.getResult();
  first->replaceAllUsesWith(outcome.take_front(own));
  second->replaceAllUsesWith(outcome.drop_front(own));
  first.erase();
  second.erase();
  return both;
}

void ReduceTogether::runOnOperation() {
  SmallVector<triton::ReduceOp> reductions;
  WalkResult walk = getOperation().walk([&](Operation *op) {
    if (auto reduce = dyn_cast<triton::ReduceOp>(op))
      reductions.push_back(reduce);
    // Beside products, reductions stay within a warp.
    return isa<triton::DotOp>(op) ? WalkResult::interrupt()
                                  : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return;
  llvm::SmallPtrSet<Operation *, 8> done;
  for (triton::ReduceOp first : reductions) {
    if (done.contains(first))
      continue;
    if (triton::ReduceOp second = findPartner(first)) {
      done.insert(second);
      reduceBoth(first, second);
    }
  }
}
