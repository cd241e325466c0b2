//===- LaneSteps.cpp - How far lanes lie from their neighbours ------------===//
#include "autodiff/Analysis/LaneSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using Step = std::optional<int64_t>;

namespace {
struct StepFinder {
  /// What loops carry, by axis, while their bodies are looked at.
  llvm::DenseMap<std::pair<Value, unsigned>, Step> assumed;

  Step of(Value value, unsigned axis);
  Step carried(scf::ForOp loop, unsigned number, unsigned axis);
  Step ofMove(Value source, std::optional<unsigned> axis);
  Step scaled(Value value, Value factor, unsigned axis);
};
} // namespace

/// The step that every iteration hands on.
Step StepFinder::carried(scf::ForOp loop, unsigned number, unsigned axis) {
  auto key = std::make_pair(Value(loop.getRegionIterArg(number)), axis);
  if (auto known = assumed.find(key); known != assumed.end())
    return known->second;
  Step init = of(loop.getInitArgs()[number], axis);
  assumed[key] = init;
  if (init && of(loop.getYieldedValues()[number], axis) != init)
    assumed[key] = std::nullopt;
  return assumed[key];
}

/// Along an axis that is not the source's, all lanes are the same.
Step StepFinder::ofMove(Value source, std::optional<unsigned> axis) {
  bool isOne =
      !axis || cast<RankedTensorType>(source.getType()).getDimSize(*axis) == 1;
  return isOne ? 0 : of(source, *axis);
}

Step StepFinder::scaled(Value value, Value factor, unsigned axis) {
  DenseElementsAttr constant;
  if (!matchPattern(factor, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  Step step = of(value, axis);
  int64_t product;
  if (!step ||
      llvm::MulOverflow(*step, constant.getSplatValue<APInt>().getSExtValue(),
                        product))
    return std::nullopt;
  return product;
}

Step StepFinder::of(Value value, unsigned axis) {
  DenseElementsAttr constant;
  if (!isa<RankedTensorType>(value.getType()) ||
      (matchPattern(value, m_Constant(&constant)) && constant.isSplat()))
    return 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? carried(loop, argument.getArgNumber() - 1, axis) : Step();
  }
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carried(loop, cast<OpResult>(value).getResultNumber(), axis);
  if (isa<triton::MakeRangeOp>(op))
    return 1;
  if (auto map = triton::AxisMap::ofMove(op))
    return ofMove(op->getOperand(0), map->toOperand(axis));
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return of(op->getOperand(0), axis);
  if (isa<arith::AddIOp, triton::AddPtrOp, arith::SubIOp>(op)) {
    Step a = of(op->getOperand(0), axis), b = of(op->getOperand(1), axis);
    if (!a || !b)
      return std::nullopt;
    return isa<arith::SubIOp>(op) ? *a - *b : *a + *b;
  }
  // What is the same in all lanes gives the same.
  bool isElementwise = op->hasTrait<OpTrait::Elementwise>();
  if (isElementwise && isMemoryEffectFree(op) &&
      llvm::all_of(op->getOperands(),
                   [&](Value operand) { return of(operand, axis) == 0; }))
    return 0;
  if (!isa<arith::MulIOp>(op))
    return std::nullopt;
  Step step = scaled(op->getOperand(0), op->getOperand(1), axis);
  return step ? step : scaled(op->getOperand(1), op->getOperand(0), axis);
}

std::optional<int64_t> mlir::autodiff::findLaneStep(Value value,
                                                    unsigned axis) {
  return StepFinder().of(value, axis);
}
