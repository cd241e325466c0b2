//===- Line.cpp - Kernels that go along a line of positions ---------------===//
#include "Line.h"

#include "Independence.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Leaves.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isUniform(Value tile) {
  SplatElementsAttr constant;
  return tile.getDefiningOp<triton::SplatOp>() ||
         matchPattern(tile, m_Constant(&constant));
}

//===----------------------------------------------------------------------===//
// Positions and their ranges
//===----------------------------------------------------------------------===//

/// Whether `value` is program · length + lane. The first such value determines
/// the axis of the grid, and the length of tiles.
bool Line::isPosition(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 1 || !type.getElementType().isInteger())
    return false;
  std::optional<LinearForm> form = LinearForm::of(value);
  if (!form || form->terms.size() != 2 || form->constant.getConstant() != 0)
    return false;
  bool hasLane = false, hasProgram = false;
  for (const LinearForm::Term &term : form->terms) {
    std::optional<int64_t> step = term.coefficient.getConstant();
    const std::optional<ScalarExpr> &number = term.dimension.digit;
    if (term.dimension.kind == Dimension::Kind::Axis) {
      hasLane = step == 1;
    } else if (number && number->isProgramId() && step == type.getDimSize(0)) {
      hasProgram = tile == 0 || axis == number->getAxis();
      axis = hasProgram ? number->getAxis() : axis;
    }
  }
  if (!hasLane || !hasProgram || (tile != 0 && tile != type.getDimSize(0)))
    return false;
  tile = type.getDimSize(0);
  position = value;
  return true;
}

/// The expression of an integer that is the same in all lanes and programs.
static std::optional<ScalarExpr> findNumber(Value value) {
  std::optional<LinearForm> form = LinearForm::of(value);
  if (!form || !form->isConstant() || form->constant.dependsOnProgramId())
    return std::nullopt;
  return form->constant;
}

std::optional<DigitRange> Line::getRange(Value value) const {
  auto found = ranges.find(value);
  return found == ranges.end() ? std::nullopt : std::optional(found->second);
}

/// The digits that `op` takes from others. (x − x / n · n is x % n.)
std::optional<DigitRange> Line::takeApart(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<DigitRange> range = getRange(op->getOperand(0));
  if (!range)
    return std::nullopt;
  // Positions are below 2³¹.
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() < 32
               ? std::nullopt
               : range;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op)) {
    std::optional<ScalarExpr> n = findNumber(op->getOperand(1));
    bool isQuotient = isa<arith::DivSIOp, arith::DivUIOp>(op);
    if (n)
      range =
          isQuotient ? chain.divide(*range, *n) : chain.remainder(*range, *n);
    if (!n || !range)
      return std::nullopt;
    division = op;
    return range;
  }
  auto product = isa<arith::SubIOp>(op)
                     ? op->getOperand(1).getDefiningOp<arith::MulIOp>()
                     : arith::MulIOp();
  for (unsigned side : {0, 1}) {
    Operation *quotient =
        product ? product->getOperand(side).getDefiningOp() : nullptr;
    if (!isa_and_nonnull<arith::DivSIOp, arith::DivUIOp>(quotient) ||
        quotient->getOperand(0) != op->getOperand(0))
      continue;
    std::optional<ScalarExpr> n = findNumber(quotient->getOperand(1));
    if (n && findNumber(product->getOperand(1 - side)) == n)
      return chain.remainder(*range, *n);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What is done at each position
//===----------------------------------------------------------------------===//

/// Whether `op` does something for each lane of the line by itself.
bool Line::isMapped(Operation *op) const {
  auto load = dyn_cast<triton::LoadOp>(op);
  auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
  if (!isElementwise(op) && !isa<triton::StoreOp>(op) &&
      !(load && !load.getIsVolatile()) && !(atomic && isBlindSum(atomic)))
    return false;
  bool hasTile = false;
  for (Value operand : op->getOperands()) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    hasTile = true;
    if (!ranges.count(operand) && !mapped.contains(operand.getDefiningOp()) &&
        !isUniform(operand))
      return false;
  }
  return hasTile;
}

Obstacle Line::collect() {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (op.getNumResults() == 1 && isPosition(op.getResult(0)))
      ranges[op.getResult(0)] = DigitRange();
    else if (std::optional<DigitRange> range = takeApart(&op))
      ranges[op.getResult(0)] = *range;
    else if (isMapped(&op))
      mapped.insert(&op);
    else if (mayWrite(&op) || op.getNumRegions() != 0 ||
             llvm::any_of(op.getOperands(), [&](Value operand) {
               return mapped.contains(operand.getDefiningOp());
             }))
      return because(&op,
                     "`{0}` at {1} is done for several positions at once, "
                     "or not at positions",
                     op.getName().getStringRef(), &op);
  }
  if (!division)
    return because(kernel, "no position is divided");
  if (asksForProgram())
    return because(kernel, "what is done depends on the program in another way "
                           "than by the position");
  if (!chain.order())
    return because(kernel, "positions are divided by numbers of which none is "
                           "seen to divide the other");
  return std::nullopt;
}

/// Whether something depends on the program other than by the position.
bool Line::asksForProgram() {
  llvm::DenseSet<Value> asking;
  for (Operation &op : kernel.getBody().front()) {
    auto id = dyn_cast<triton::GetProgramIdOp>(op);
    auto count = dyn_cast<triton::GetNumProgramsOp>(op);
    bool isAsking =
        (id && static_cast<unsigned>(id.getAxisAsInt()) == axis) ||
        (count && static_cast<unsigned>(count.getAxisAsInt()) == axis) ||
        llvm::any_of(op.getOperands(),
                     [&](Value operand) { return asking.contains(operand); });
    for (Value result : op.getResults()) {
      if (!isAsking || isPosition(result))
        continue;
      if (ranges.count(result))
        return true;
      asking.insert(result);
    }
    if (isAsking && mapped.contains(&op))
      return true;
  }
  return false;
}

/// The n of a condition p < n on the whole position.
std::optional<ScalarExpr> Line::getLimit(Value condition) const {
  Constraints limits = constraintsOf(condition);
  if (!limits || limits->size() != 1)
    return std::nullopt;
  if (!(LinearForm::of(position) == limits->front().form))
    return std::nullopt;
  return limits->front().bound;
}

/// The conditions of which the mask of an access is the conjunction.
static SmallVector<Value> collectConditions(Operation *access) {
  SmallVector<Value> conditions;
  if (Value mask = getMask(access))
    collectLeaves<arith::AndIOp>(mask, conditions);
  return conditions;
}

SmallVector<Value> Line::getConditions(Operation *access) const {
  SmallVector<Value> conditions = collectConditions(access);
  llvm::erase_if(conditions, [&](Value condition) {
    std::optional<ScalarExpr> limit = getLimit(condition);
    return limit && end && *limit == *end;
  });
  return conditions;
}

/// Finds the end of the line; false if stores disagree.
bool Line::findEnd() {
  std::optional<std::optional<ScalarExpr>> common;
  for (Operation *op : mapped) {
    if (!mayWrite(op))
      continue;
    std::optional<ScalarExpr> limit;
    for (Value condition : collectConditions(op))
      if (std::optional<ScalarExpr> found = getLimit(condition))
        limit = found;
    if (common && !(*common == limit))
      return false;
    common = limit;
  }
  end = common.value_or(std::nullopt);
  return common && !(end && end->dependsOnProgramId());
}

//===----------------------------------------------------------------------===//
// Which digits matter where
//===----------------------------------------------------------------------===//

Line::Digits Line::getDigits(Value value) const {
  if (std::optional<DigitRange> range = getRange(value)) {
    auto [first, last] = chain.getDigits(*range);
    return ((1u << last) - 1) & ~((1u << first) - 1);
  }
  return digits.lookup(value.getDefiningOp());
}

void Line::findDigits() {
  for (Operation *op : mapped) {
    Digits all = 0;
    Value mask = getMask(op);
    for (Value operand : op->getOperands())
      all |= operand == mask ? 0 : getDigits(operand);
    for (Value condition : getConditions(op))
      all |= getDigits(condition);
    digits[op] = mayWrite(op) ? getAllDigits() : all;
  }
}

void Line::findTakenApart() {
  for (Operation *op : mapped)
    if (auto load = dyn_cast<triton::LoadOp>(op))
      if (BlockArgument argument = getBaseArgument(load.getPtr());
          argument && isFloat(load.getType()) && !LinearForm::of(load.getPtr()))
        takenApart.push_back(argument);
}

ReasonOr<Line> Line::match(triton::FuncOp kernel) {
  Line line(kernel);
  if (!kernel.getBody().hasOneBlock())
    return because(kernel, "it returns early");
  if (Obstacle why = line.collect())
    return *why;
  if (!line.findEnd())
    return because(kernel, "stores do not agree on where positions end");
  if (Obstacle why = findDependence(kernel, kernel))
    return *why;
  line.findDigits();
  line.findTakenApart();
  return line;
}
