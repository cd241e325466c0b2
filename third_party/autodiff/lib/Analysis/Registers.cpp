//===- Registers.cpp - Registers that tiles take --------------------------===//
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/LiveTiles.h"
#include "autodiff/Support/Elements.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The value whose registers hold the elements of `value`.
static Value getHolder(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!triton::isRepetition(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static double registersOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (!tile || !isFloat(tile) || matchPattern(value, m_Constant()))
    return 0;
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 32.0;
}

namespace {
struct Registers : LiveTiles {
  void useValue(Value value) {
    value = getHolder(value);
    if (double size = registersOf(value))
      hold(value, 0, size);
  }
  void use(Operation *op) override {
    for (Value operand : op->getOperands())
      useValue(operand);
  }
  void useFromInside(Operation *op) override {
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      useValue(value);
  }
};
} // namespace

double mlir::autodiff::countRegisters(triton::FuncOp kernel) {
  return Registers().countMost(kernel);
}
