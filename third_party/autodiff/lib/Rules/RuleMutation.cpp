//===- RuleMutation.cpp - Deliberate mistakes in rules --------------------===//
#include "autodiff/Rules/RuleMutation.h"

#ifdef TAD_MUTATION

#include "autodiff/Builders/Tile.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

static thread_local Operation *reversed = nullptr;

mutation::Reversing::Reversing(Operation *op) : outer(reversed) {
  reversed = op;
}
mutation::Reversing::~Reversing() { reversed = outer; }

/// The name of a rule: the operation, and the case.
static std::string ruleOf(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto call = dyn_cast<triton::ExternElementwiseOp>(op))
    return name + "(" + call.getSymbol().str() + ")";
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    return name + "(" + stringifyRMWOp(atomic.getAtomicRmwOp()).str() + ")";
  if (!isa<triton::ReduceOp, triton::ScanOp>(op))
    return name;
  SmallVector<llvm::StringRef> combiner;
  for (Operation &inner : op->getRegion(0).front().without_terminator())
    combiner.push_back(inner.getName().getStringRef());
  if (combiner.size() > 3)
    combiner = {"general"};
  return name + "(" + llvm::join(combiner, ",") + ")";
}

/// Where a mistake is: in the adjoint of an operand, or the tangent of a
/// result.
static std::string placeOf(Operation *op, Value value) {
  if (value.getDefiningOp() == op)
    return "tangent " + std::to_string(cast<OpResult>(value).getResultNumber());
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == value)
      return std::to_string(operand.getOperandNumber());
  return "inner";
}

/// Another operand of the same type, which could be mistaken for `value`.
static Value findTwin(Operation *op, Value value) {
  if (value.getDefiningOp() == op)
    return {};
  for (Value operand : op->getOperands())
    if (operand != value && operand.getType() == value.getType())
      return operand;
  return {};
}

void mutation::inContribution(OpBuilder &builder, Location loc, Value &value,
                              Value &contribution) {
  if (!reversed)
    return;
  std::string site = ruleOf(reversed) + ":" + placeOf(reversed, value) + ":";
  Tile tile(builder, loc, contribution);
  if (isMade(site + "sign"))
    contribution = -tile;
  if (isMade(site + "factor"))
    contribution = 1.25 * tile;
  if (isMade(site + "drop"))
    contribution = tile.constant(0.0);
  auto type = dyn_cast<RankedTensorType>(contribution.getType());
  if (type && type.getRank() == 2 && type.getDimSize(0) == type.getDimSize(1) &&
      type.getDimSize(0) > 1 && isMade(site + "transpose"))
    contribution = triton::TransOp::create(builder, loc, contribution,
                                           ArrayRef<int32_t>{1, 0});
  Value twin = findTwin(reversed, value);
  if (twin && isMade(site + "swap"))
    value = twin;
}

void mutation::inMask(OpBuilder &builder, Operation *op, Value &mask) {
  if (!mask)
    return;
  std::string site = ruleOf(op) + ":mask:";
  if (isMade(site + "drop"))
    mask = Value();
  if (isMade(site + "invert")) {
    Type type = mask.getType();
    TypedAttr all = builder.getBoolAttr(true);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      all = DenseElementsAttr::get(tile, true);
    Value ones = arith::ConstantOp::create(builder, op->getLoc(), all);
    mask = arith::XOrIOp::create(builder, op->getLoc(), mask, ones);
  }
}

#endif
