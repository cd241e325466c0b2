//===- MarkResiduals.cpp - Name the values that a forward may save --------===//
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Decisions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKRESIDUALS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Operations that an expert would not compute again: loops, branches,
/// reductions and products.
static bool isExpensive(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, scf::IfOp, triton::ReduceOp,
             triton::ScanOp, triton::DotOp>(op);
}

/// Whether a condition (a dropout's mask) takes longer to compute than to write
/// and read.
static bool isLongCondition(Operation *op) {
  if (!isa<arith::CmpIOp, arith::CmpFOp>(op))
    return false;
  double cost = 0;
  llvm::SetVector<Operation *> slice;
  slice.insert(op);
  for (unsigned next = 0; next < slice.size(); ++next) {
    cost += bytesOfArithmetic(slice[next]);
    for (Value operand : slice[next]->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && source->getBlock() == op->getBlock() &&
          isMemoryEffectFree(source) && !isExpensive(source))
        slice.insert(source);
  }
  return cost > 2 * bytesOf(op->getResult(0).getType());
}

/// `stored` before it was rounded to the type in memory, which the adjoint
/// uses.
static Value beforeRounding(Value stored) {
  Operation *op = stored.getDefiningOp();
  if (op && isa<arith::TruncFOp>(op))
    return op->getOperand(0);
  return stored;
}

namespace {
struct MarkResiduals : autodiff::impl::MarkResidualsBase<MarkResiduals> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (kernel->hasAttr(kRoleAttr) || !kernel.getBody().hasOneBlock())
      return;
    Block &body = kernel.getBody().front();
    llvm::SetVector<Value> values;
    for (Operation &op : body) {
      if (isExpensive(&op) || isLongCondition(&op))
        values.insert_range(op.getResults());
      if (auto store = dyn_cast<triton::StoreOp>(op))
        values.insert(beforeRounding(store.getValue()));
    }
    values.insert_range(findDecisions(kernel));
    // The backward tests whether memory contains these values, bit for bit.
    kernel.walk([&](triton::AtomicRMWOp atomic) {
      if (selectsContent(atomic))
        values.insert(withoutBitcast(atomic.getVal()));
    });
    int id = 0;
    OpBuilder builder(kernel.getContext());
    for (Value value : values) {
      Operation *source = value.getDefiningOp();
      if (!source || source->getBlock() != &body ||
          isPointer(value.getType()) ||
          source->hasTrait<OpTrait::ConstantLike>())
        continue;
      builder.setInsertionPointAfter(source);
      auto residual =
          ResidualOp::create(builder, source->getLoc(), value, id++);
      value.replaceAllUsesExcept(residual.getResult(), residual);
    }
  }
};
} // namespace
