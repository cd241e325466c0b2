//===- CopyToUsers.cpp - Tiles that each block computes by itself ---------===//
#include "autodiff/Target/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_COPYTOUSERS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether Triton moves conversions of layouts across an operation: it computes
/// tiles element by element, or sees elements in another shape. Constants are
/// converted when Triton compiles.
static bool isCrossed(Operation *op) {
  bool hasTiles = llvm::all_of(op->getResultTypes(), [](Type type) {
    return isa<RankedTensorType>(type);
  });
  return op->getNumResults() > 0 && hasTiles && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op) && !op->hasTrait<OpTrait::ConstantLike>() &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<triton::BroadcastOp, triton::ExpandDimsOp, triton::JoinOp,
              triton::ReshapeOp, triton::SplitOp, triton::TransOp>(op));
}

/// Copies an operation to the beginning of each other block that uses its
/// results, if several blocks do.
static void copyToUsers(Operation *op) {
  // In the order of uses, so that the same comes of the same kernel.
  llvm::MapVector<Block *, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : op->getUses())
    uses[use.getOwner()->getBlock()].push_back(&use);
  if (uses.size() < 2)
    return;
  for (auto &[block, operands] : uses) {
    if (block == op->getBlock())
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(block);
    Operation *copy = b.clone(*op);
    for (OpOperand *operand : operands)
      operand->set(
          copy->getResult(cast<OpResult>(operand->get()).getResultNumber()));
  }
  if (op->use_empty())
    op->erase();
}

namespace {
struct CopyToUsers : autodiff::impl::CopyToUsersBase<CopyToUsers> {
  void runOnOperation() override {
    SmallVector<Operation *> crossed;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isCrossed(op))
        crossed.push_back(op);
    });
    // The last ones first: a copy uses what is computed before.
    llvm::for_each(llvm::reverse(crossed), copyToUsers);
  }
};
} // namespace
