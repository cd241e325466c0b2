//===- LaneSteps.cpp - How far lanes lie from their neighbours ------------===//
#include "autodiff/Analysis/LaneSteps.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::autodiff;
using Step = std::optional<int64_t>;

namespace {
/// What loops carry, by axis, while their bodies are looked at.
using Assumed = llvm::DenseMap<std::pair<Value, unsigned>, Step>;

struct StepFinder : IndexVisitor<StepFinder, Step> {
  StepFinder(unsigned axis, Assumed &assumed) : axis(axis), assumed(assumed) {}

  Step of(Value value);
  Step ofSum(Value a, Value b) { return combine(a, b, 1); }
  Step ofDifference(Value a, Value b) { return combine(a, b, -1); }
  Step combine(Value a, Value b, int64_t sign);
  Step ofProduct(Value a, Value b);
  Step ofSame(Value value) { return of(value); }
  Step ofMoved(Value source, const triton::AxisMap &map);
  Step ofRange(triton::MakeRangeOp) { return 1; }
  Step ofOther(Operation *op);
  Step carried(scf::ForOp loop, unsigned number);
  Step scaled(Value value, Value factor);

  unsigned axis;
  Assumed &assumed;
};
} // namespace

/// The step that every iteration hands on.
Step StepFinder::carried(scf::ForOp loop, unsigned number) {
  auto key = std::make_pair(Value(loop.getRegionIterArg(number)), axis);
  if (auto known = assumed.find(key); known != assumed.end())
    return known->second;
  Step init = of(loop.getInitArgs()[number]);
  assumed[key] = init;
  if (init && of(loop.getYieldedValues()[number]) != init)
    assumed[key] = std::nullopt;
  return assumed[key];
}

/// Along an axis that is not the source's, all lanes are the same.
Step StepFinder::ofMoved(Value source, const triton::AxisMap &map) {
  std::optional<unsigned> from = map.toOperand(axis);
  bool isOne =
      !from || cast<RankedTensorType>(source.getType()).getDimSize(*from) == 1;
  return isOne ? 0 : StepFinder(*from, assumed).of(source);
}

Step StepFinder::combine(Value a, Value b, int64_t sign) {
  Step ofA = of(a), ofB = of(b);
  return ofA && ofB ? Step(*ofA + sign * *ofB) : std::nullopt;
}

Step StepFinder::scaled(Value value, Value factor) {
  DenseElementsAttr constant;
  if (!matchPattern(factor, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  Step step = of(value);
  int64_t product;
  if (!step ||
      llvm::MulOverflow(*step, constant.getSplatValue<APInt>().getSExtValue(),
                        product))
    return std::nullopt;
  return product;
}

Step StepFinder::ofProduct(Value a, Value b) {
  if (of(a) == 0 && of(b) == 0)
    return 0;
  Step step = scaled(a, b);
  return step ? step : scaled(b, a);
}

/// What is the same in all lanes gives the same.
Step StepFinder::ofOther(Operation *op) {
  bool isUniform =
      op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
      llvm::all_of(op->getOperands(),
                   [&](Value operand) { return of(operand) == 0; });
  return isUniform ? Step(0) : std::nullopt;
}

Step StepFinder::of(Value value) {
  DenseElementsAttr constant;
  if (!isa<RankedTensorType>(value.getType()) ||
      (matchPattern(value, m_Constant(&constant)) && constant.isSplat()))
    return 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? carried(loop, argument.getArgNumber() - 1) : Step();
  }
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carried(loop, cast<OpResult>(value).getResultNumber());
  return visit(op);
}

std::optional<int64_t> mlir::autodiff::findLaneStep(Value value,
                                                    unsigned axis) {
  Assumed assumed;
  return StepFinder(axis, assumed).of(value);
}
