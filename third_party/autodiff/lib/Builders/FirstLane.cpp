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
    // The condition of a selection may be one for all lanes.
    bool isTile = isa<RankedTensorType>(operand.getType());
    Value first = isTile ? mlir::autodiff::getFirstLane(b, operand, axis, known)
                         : operand;
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

std::optional<unsigned> mlir::autodiff::getSourceAxis(Operation *op,
                                                      unsigned axis) {
  auto map = triton::AxisMap::ofMove(op);
  std::optional<unsigned> kept = map ? map->toOperand(axis) : std::nullopt;
  return kept || !map ? kept : map->getStretched(axis);
}

Value mlir::autodiff::spreadFirstLane(OpBuilder &b, Operation *op, Value first,
                                      unsigned axis) {
  auto tile = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> shape(tile.getShape());
  shape.erase(shape.begin() + axis);
  // Where the axes of the operand are, in their order.
  SmallVector<std::pair<unsigned, unsigned>> places;
  for (unsigned other : llvm::seq<unsigned>(tile.getRank()))
    if (auto from = getSourceAxis(op, other); from && other != axis)
      places.emplace_back(*from, other - (other > axis));
  llvm::sort(places);
  return repeatOver(b, op->getLoc(), first,
                    llvm::to_vector(llvm::make_second_range(places)), shape);
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
  if (triton::AxisMap::ofMove(op)) {
    Value first = op->getOperand(0);
    if (std::optional<unsigned> from = getSourceAxis(op, axis))
      first = getFirstLane(b, first, *from, known);
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
