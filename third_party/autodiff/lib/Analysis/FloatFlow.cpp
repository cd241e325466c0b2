//===- FloatFlow.cpp - Which inputs' floats reach which outputs -----------===//
#include "autodiff/Analysis/FloatFlow.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/MathFunctions.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isFloatTensor(BlockArgument argument) {
  return isPointer(argument.getType()) &&
         isFloat(getPointee(argument.getType()));
}

SmallVector<Value> mlir::autodiff::getComputedWith(Operation *op) {
  if (op->getNumRegions() == 0)
    return op->getOperands();
  llvm::SetVector<Value> inputs;
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  inputs.insert_range(op->getOperands());
  return inputs.takeVector();
}

/// Whether `op` shifts the mantissa out of the bits of a float, to which
/// constants may have been added or masks applied. The rest, sign and exponent,
/// is piecewise constant, like floor(log₂ x).
static bool takesExponent(Operation *op) {
  APInt amount, ignored;
  if (!isa<arith::ShRUIOp, arith::ShRSIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&amount)))
    return false;
  Operation *source = op->getOperand(0).getDefiningOp();
  while (source) {
    bool isWidened = isa<arith::ExtUIOp, arith::ExtSIOp>(source);
    bool isOffset =
        isa<arith::AddIOp, arith::SubIOp, arith::AndIOp, arith::OrIOp,
            arith::XOrIOp>(source) &&
        matchPattern(source->getOperand(1), m_ConstantInt(&ignored));
    if (!isWidened && !isOffset)
      break;
    source = source->getOperand(0).getDefiningOp();
  }
  if (!isa_and_nonnull<triton::BitcastOp, arith::BitcastOp>(source))
    return false;
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(source->getOperand(0)));
  // The width includes the leading one, which is not stored.
  return type && amount.uge(type.getFPMantissaWidth() - 1);
}

bool mlir::autodiff::passesBits(Operation *op, Value operand) {
  if (!isFloat(operand.getType()))
    return !isa<arith::CmpIOp, triton::HistogramOp>(op) && !takesExponent(op);
  if (isa<triton::ExternElementwiseOp, triton::ElementwiseInlineAsmOp>(op))
    return !isPiecewiseConstant(op);
  return isa<triton::BitcastOp, arith::BitcastOp>(op);
}

/// Whether floats of `operand` reach `result` through `op`. Integers only pass
/// on the bits of floats.
static bool passesOn(Operation *op, Value operand, Value result) {
  if (isa<StopGradientOp>(op))
    return false;
  if (!isFloat(result.getType()))
    return passesBits(op, operand);
  return isFloat(operand.getType()) || passesBits(op, operand);
}

/// Calls `flow` for what goes into and comes out of the scalar function of
/// `op`, a reduction, a scan or a map. False if it is none of these.
static bool followFunction(Operation *op,
                           llvm::function_ref<void(Value, Value)> flow) {
  bool combines = isa<triton::ReduceOp, triton::ScanOp>(op);
  auto map = dyn_cast<triton::MapElementwiseOp>(op);
  if (!combines && !map)
    return false;
  Block &body = op->getRegion(0).front();
  ValueRange yielded = body.getTerminator()->getOperands();
  // A map of several elements at a time takes all of them.
  bool isApart = combines || map.getPack() == 1;
  unsigned count = op->getNumOperands();
  for (auto [place, operand] : llvm::enumerate(op->getOperands()))
    for (BlockArgument argument : body.getArguments())
      if (!isApart || argument.getArgNumber() % count == place)
        flow(operand, argument);
  for (auto [place, value] : llvm::enumerate(yielded))
    for (OpResult result : op->getResults())
      if (!isApart || result.getResultNumber() == place)
        flow(value, result);
  if (!combines)
    return true;
  for (auto [place, value] : llvm::enumerate(yielded)) {
    flow(value, body.getArgument(place));
    flow(value, body.getArgument(place + count));
    // The result of a single element is that element.
    flow(op->getOperand(place), op->getResult(place));
  }
  return true;
}

FloatFlow::FloatFlow(triton::FuncOp kernel) {
  MemoryFlow memory(kernel);
  propagate(kernel, memory);
  kernel.walk([&](Operation *op) {
    Value written = getWrittenValue(op);
    if (!written)
      return;
    for (BlockArgument base : getBaseArguments(op->getOperand(0))) {
      if (!isFloatTensor(base))
        continue;
      llvm::SmallBitVector &inputs = outputs[base.getArgNumber()];
      inputs.resize(kernel.getNumArguments());
      inputs |= reaching.lookup(written);
    }
  });
}

bool FloatFlow::add(Value value, const llvm::SmallBitVector &inputs) {
  if (inputs.none())
    return false;
  llvm::SmallBitVector &known = reaching[value];
  if (known.size() >= inputs.size() && !inputs.test(known))
    return false;
  known |= inputs;
  return true;
}

bool FloatFlow::flow(Value from, Value to) {
  // A copy, since a new entry moves the others.
  return add(to, reaching.lookup(from));
}

/// Adds what the memory that `read` reads holds: the content of tensors before
/// the launch, and what the kernel has stored there.
bool FloatFlow::addMemory(Operation *read, const MemoryFlow &memory) {
  Value result = read->getResult(0);
  auto kernel = read->getParentOfType<triton::FuncOp>();
  llvm::SmallBitVector inputs(kernel.getNumArguments());
  if (isFloat(result.getType()))
    for (BlockArgument base : getBaseArguments(read->getOperand(0)))
      if (isFloatTensor(base))
        inputs.set(base.getArgNumber());
  if (!mutation::isMade("float-flow:through memory"))
    for (Operation *write : memory.getWritesSeenBy(read))
      inputs |= reaching.lookup(getWrittenValue(write));
  return add(result, inputs);
}

void FloatFlow::propagate(triton::FuncOp kernel, const MemoryFlow &memory) {
  bool changed = true;
  auto follow = [&](Value from, Value to) { changed |= flow(from, to); };
  while (changed) {
    changed = false;
    kernel.walk([&](Operation *op) {
      if (auto load = dyn_cast<triton::LoadOp>(op)) {
        changed |= addMemory(load, memory);
        if (load.getOther())
          follow(load.getOther(), load.getResult());
        return;
      }
      if (followFlow(op, follow) || followFunction(op, follow))
        return;
      if (getWrittenValue(op)) {
        if (op->getNumResults())
          changed |= addMemory(op, memory);
        return;
      }
      for (Value operand : getComputedWith(op))
        for (Value result : op->getResults())
          if (passesOn(op, operand, result))
            follow(operand, result);
    });
  }
}
