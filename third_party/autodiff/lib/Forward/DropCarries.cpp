//===- DropCarries.cpp - What loops carry for nobody ----------------------===//
//
// A sum that nobody reads after its loop is still an operand of the next
// iteration, so no folder removes it.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPCARRIES
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;

namespace {
/// The values that an effect, a condition or a bound depends on.
class Liveness {
public:
  explicit Liveness(triton::FuncOp kernel);

  bool contains(Value value) const { return live.contains(value); }

private:
  void mark(Value value);
  void follow(Value value);

  llvm::DenseSet<Value> live;
  SmallVector<Value> pending;
};
} // namespace

void Liveness::mark(Value value) {
  if (live.insert(value).second)
    pending.push_back(value);
}

void Liveness::follow(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *op =
      argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (value == loop.getInductionVar())
      return;
    unsigned number = argument ? argument.getArgNumber() - 1
                               : cast<OpResult>(value).getResultNumber();
    mark(loop.getInitArgs()[number]);
    mark(loop.getYieldedValues()[number]);
    mark(loop.getRegionIterArg(number));
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    mark(branch.thenYield().getOperand(number));
    mark(branch.elseYield().getOperand(number));
  } else if (!argument) {
    llvm::for_each(op->getOperands(), [&](Value operand) { mark(operand); });
  }
}

Liveness::Liveness(triton::FuncOp kernel) {
  kernel.walk([&](Operation *op) {
    // What loops and branches yield is followed from their results.
    bool isFollowed = isa<scf::ForOp, scf::IfOp>(op) ||
                      (isa<scf::YieldOp>(op) &&
                       isa<scf::ForOp, scf::IfOp>(op->getParentOp()));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value bound :
           {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        mark(bound);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      mark(branch.getCondition());
    if (!isFollowed &&
        (!isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>()))
      llvm::for_each(op->getOperands(), [&](Value operand) { mark(operand); });
  });
  while (!pending.empty())
    follow(pending.pop_back_val());
}

namespace {
struct DropCarries : autodiff::impl::DropCarriesBase<DropCarries> {
  void runOnOperation() override {
    Liveness live(getOperation());
    getOperation().walk([&](scf::ForOp loop) {
      for (BlockArgument carried : loop.getRegionIterArgs())
        if (!live.contains(carried))
          loop.getBody()->getTerminator()->setOperand(
              carried.getArgNumber() - 1, carried);
    });
  }
};
} // namespace
