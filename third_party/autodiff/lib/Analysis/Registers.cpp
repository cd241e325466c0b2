//===- Registers.cpp - How much of tiles is live at a time ----------------===//
#include "autodiff/Analysis/Registers.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Goes through a kernel backwards, from last uses to definitions.
class LiveTiles {
public:
  double countMost(triton::FuncOp kernel) {
    visit(kernel.getBody().front());
    return most;
  }

private:
  void use(Value value);
  void define(Value value);
  void visit(Operation *op);
  void visit(Block &block);

  llvm::DenseSet<Value> live;
  double registers = 0, most = 0;
};
} // namespace

/// What holds the elements of a value.
static Value getHolder(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<triton::BroadcastOp, triton::ExpandDimsOp, triton::SplatOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static double registersOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (!tile || !isa<FloatType>(tile.getElementType()) ||
      matchPattern(value, m_Constant()))
    return 0;
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 32.0;
}

void LiveTiles::use(Value value) {
  value = getHolder(value);
  double size = registersOf(value);
  if (size == 0 || !live.insert(value).second)
    return;
  registers += size;
  most = std::max(most, registers);
}

void LiveTiles::define(Value value) {
  if (live.erase(value))
    registers -= registersOf(value);
}

void LiveTiles::visit(Operation *op) {
  for (Value result : op->getResults())
    define(result);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    use(value);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      visit(block);
  for (Value operand : op->getOperands())
    use(operand);
}

void LiveTiles::visit(Block &block) {
  for (Operation &op : llvm::reverse(block))
    visit(&op);
  for (Value argument : block.getArguments())
    define(argument);
}

double mlir::autodiff::countRegisters(triton::FuncOp kernel) {
  return LiveTiles().countMost(kernel);
}
