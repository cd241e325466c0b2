//===- FirstLane.cpp - What a tile has at the start of an axis ------------===//
#include "autodiff/Builders/FirstLane.h"

#include "autodiff/Builders/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

/// The type of a tile without an axis.
static Type dropAxis(Type type, unsigned axis) {
  auto tile = cast<RankedTensorType>(type);
  if (tile.getRank() == 1)
    return tile.getElementType();
  SmallVector<int64_t> shape(tile.getShape());
  shape.erase(shape.begin() + axis);
  return tile.clone(shape);
}

/// Applies `op`, whose operands and result are tiles of one shape, to first
/// lanes.
static Value applyToFirst(OpBuilder &b, Operation *op, unsigned axis,
                          const IRMapping &known) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value first = mlir::autodiff::getFirstLane(b, operand, axis, known);
    if (!first)
      return {};
    operands.push_back(first);
  }
  Type type = dropAxis(op->getResult(0).getType(), axis);
  Operation *first = b.create(OperationState(op->getLoc(), op->getName(),
                                             operands, type, op->getAttrs()));
  mlir::autodiff::dropHints(first);
  return first->getResult(0);
}

unsigned mlir::autodiff::getSourceAxis(Operation *op, unsigned axis) {
  auto map = *triton::AxisMap::ofMove(op);
  std::optional<unsigned> kept = map.toOperand(axis);
  return kept ? *kept : *map.getStretched(axis);
}

Value mlir::autodiff::spreadFirstLane(OpBuilder &b, Operation *op, Value first,
                                      unsigned axis) {
  Type element = getElementTypeOrSelf(first.getType());
  Type type = dropAxis(op->getResult(0).getType(), axis);
  if (auto tile = dyn_cast<RankedTensorType>(type))
    type = tile.clone(element);
  else
    type = element;
  if (first.getType() == type)
    return first;
  if (!isa<RankedTensorType>(first.getType()))
    return triton::SplatOp::create(b, op->getLoc(), type, first);
  if (auto expand = dyn_cast<triton::ExpandDimsOp>(op))
    return triton::ExpandDimsOp::create(
        b, op->getLoc(), first, expand.getAxis() - (expand.getAxis() > axis));
  return triton::BroadcastOp::create(b, op->getLoc(), type, first);
}

Value mlir::autodiff::getFirstLane(OpBuilder &b, Value tile, unsigned axis,
                                   const IRMapping &known) {
  if (Value first = known.lookupOrNull(tile))
    return first;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return {};
  Type type = dropAxis(tile.getType(), axis);
  DenseElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat()) {
    auto value = constant.getSplatValue<TypedAttr>();
    if (auto shaped = dyn_cast<RankedTensorType>(type))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    return arith::ConstantOp::create(b, op->getLoc(), value);
  }
  if (auto range = dyn_cast<triton::MakeRangeOp>(op))
    return arith::ConstantOp::create(b, op->getLoc(),
                                     b.getI32IntegerAttr(range.getStart()));
  if (auto splat = dyn_cast<triton::SplatOp>(op))
    return isa<RankedTensorType>(type)
               ? triton::SplatOp::create(b, op->getLoc(), type, splat.getSrc())
                     .getResult()
               : splat.getSrc();
  auto expand = dyn_cast<triton::ExpandDimsOp>(op);
  if (expand && expand.getAxis() == axis)
    return expand.getSrc();
  if (isa<triton::BroadcastOp, triton::ExpandDimsOp>(op)) {
    Value first =
        getFirstLane(b, op->getOperand(0), getSourceAxis(op, axis), known);
    return first ? spreadFirstLane(b, op, first, axis) : Value();
  }
  bool isArithmetic = op->hasTrait<OpTrait::Elementwise>() &&
                      isMemoryEffectFree(op) && op->getNumResults() == 1;
  return isArithmetic ? applyToFirst(b, op, axis, known) : Value();
}

bool mlir::autodiff::isUniformAlong(Value tile, unsigned axis) {
  if (cast<RankedTensorType>(tile.getType()).getDimSize(axis) == 1)
    return true;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return constant.isSplat();
  if (auto map = triton::AxisMap::ofMove(op)) {
    std::optional<unsigned> from = map->toOperand(axis);
    return !from || isUniformAlong(op->getOperand(0), *from);
  }
  return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isa<RankedTensorType>(operand.getType()) &&
                  isUniformAlong(operand, axis);
         });
}
