//===- Element.cpp - Elements of tiles ------------------------------------===//

#include "Lowering.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

Element::Key Element::makeKey(Value tile, ArrayRef<Value> indices) {
  Key key(tile.getAsOpaquePointer(), {});
  for (Value index : indices)
    key.second.push_back(index.getAsOpaquePointer());
  return key;
}

Value Element::getIndex(Location loc, int64_t value) {
  Value &constant = constants[value];
  if (!constant)
    constant = arith::ConstantIndexOp::create(builder, loc, value);
  return constant;
}

void Element::bind(Value tensor, ArrayRef<Value> indices, Value value) {
  bound[makeKey(tensor, indices)] = value;
}

Value Element::get(Value tile, ArrayRef<Value> indices) {
  if (!asTile(tile.getType()))
    return lowering.getScalar(tile);
  Key key = makeKey(tile, indices);
  auto it = values.find(key);
  if (it != values.end())
    return it->second;
  Value value = compute(tile, indices);
  values[key] = value;
  return value;
}

/// Reads an element of a tensor in storage types.
Value Element::read(Location loc, Value tensor, Type elementType,
                    ArrayRef<Value> indices) {
  auto it = bound.find(makeKey(tensor, indices));
  Value value = it != bound.end()
                    ? it->second
                    : tensor::ExtractOp::create(builder, loc, tensor, indices)
                          .getResult();
  if (elementType.isInteger(1))
    return arith::TruncIOp::create(builder, loc, elementType, value);
  return value;
}

//===----------------------------------------------------------------------===//
// Indices of rearranging operations
//===----------------------------------------------------------------------===//

/// Row-major. Groups of dimensions with equal sizes in both shapes map onto
/// each other; within a group, the position is linearized and split again.
SmallVector<Value> Element::mapReshape(Location loc, ArrayRef<int64_t> from,
                                       ArrayRef<int64_t> to,
                                       ArrayRef<Value> indices) {
  SmallVector<Value> result;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t beginFrom = i, beginTo = j;
    int64_t sizeFrom = i < from.size() ? from[i++] : 1;
    int64_t sizeTo = j < to.size() ? to[j++] : 1;
    while (sizeFrom != sizeTo) {
      if (sizeFrom < sizeTo)
        sizeFrom *= from[i++];
      else
        sizeTo *= to[j++];
    }
    Value position;
    for (size_t k = beginFrom; k < i; ++k) {
      if (from[k] == 1)
        continue;
      if (position)
        position =
            arith::AddIOp::create(builder, loc,
                                  arith::MulIOp::create(builder, loc, position,
                                                        getIndex(loc, from[k])),
                                  indices[k]);
      else
        position = indices[k];
    }
    if (!position)
      position = getIndex(loc, 0);
    int64_t stride = sizeTo;
    for (size_t k = beginTo; k < j; ++k) {
      stride /= to[k];
      Value index = position;
      if (to[k] == 1) {
        result.push_back(getIndex(loc, 0));
        continue;
      }
      if (stride != 1)
        index =
            arith::DivUIOp::create(builder, loc, index, getIndex(loc, stride));
      if (stride * to[k] != sizeTo &&
          !autodiff::mutation::isMade("cpu-reshape:digits beyond their extent"))
        index =
            arith::RemUIOp::create(builder, loc, index, getIndex(loc, to[k]));
      result.push_back(index);
    }
  }
  return result;
}

/// Whether an element of the result of `op`, a tile, is one of its operand's
/// whose indices are known.
static bool hasIndices(Operation *op) {
  return tt::AxisMap::ofMove(op) || isa_and_nonnull<tt::ReshapeOp>(op);
}

SmallVector<Value> Element::mapIndices(Operation *op, ArrayRef<Value> indices) {
  Location loc = op->getLoc();
  if (auto reshape = dyn_cast<tt::ReshapeOp>(op))
    return mapReshape(loc, asTile(reshape.getType()).getShape(),
                      asTile(reshape.getSrc().getType()).getShape(), indices);
  auto map = *tt::AxisMap::ofMove(op);
  SmallVector<Value> result;
  for (unsigned axis : llvm::seq(map.getOperandRank())) {
    std::optional<unsigned> kept = map.toResult(axis);
    result.push_back(kept ? indices[*kept] : getIndex(loc, 0));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static Value select(OpBuilder &b, Location loc, Value condition, Value yes,
                    Value no) {
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

Value Element::compute(Value tile, ArrayRef<Value> indices) {
  RankedTensorType type = asTile(tile.getType());
  Type elementType = type.getElementType();
  Location loc = tile.getLoc();
  if (isPointerTile(type))
    return getAddress(tile, indices);
  if (Value tensor = lowering.findTensor(tile))
    return read(loc, tensor, elementType, indices);
  if (auto *start = lowering.findMoved(tile)) {
    Value value = get(start->first, indices);
    return start->second
               ? arith::AddIOp::create(builder, loc, value, start->second)
                     .getResult()
               : value;
  }

  Operation *op = tile.getDefiningOp();
  if (!op)
    return lowering.getPoison(builder, loc, getScalarType(elementType));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue())) {
      auto value = splat.getSplatValue<TypedAttr>();
      if (getFloat8(elementType))
        value = builder.getIntegerAttr(
            builder.getI8Type(),
            cast<FloatAttr>(value).getValue().bitcastToAPInt());
      return arith::ConstantOp::create(builder, loc, value);
    }
  }
  if (isa<ub::PoisonOp>(op))
    return lowering.getPoison(builder, loc, getScalarType(elementType));
  if (auto splat = dyn_cast<tt::SplatOp>(op))
    return lowering.getScalar(splat.getSrc());
  if (auto range = dyn_cast<tt::MakeRangeOp>(op)) {
    Value index = arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                             indices[0]);
    if (range.getStart() == 0)
      return index;
    Value start = arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(range.getStart()));
    return arith::AddIOp::create(builder, loc, index, start);
  }
  if (hasIndices(op))
    return get(op->getOperand(0), mapIndices(op, indices));
  if (auto join = dyn_cast<tt::JoinOp>(op)) {
    Value left = get(join.getLhs(), indices.drop_back());
    Value right = get(join.getRhs(), indices.drop_back());
    Value isLeft = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         indices.back(), getIndex(loc, 0));
    return select(builder, loc, isLeft, left, right);
  }
  if (auto split = dyn_cast<tt::SplitOp>(op)) {
    SmallVector<Value> inner(indices);
    inner.push_back(getIndex(loc, cast<OpResult>(tile).getResultNumber()));
    return get(split.getSrc(), inner);
  }
  if (auto cat = dyn_cast<tt::CatOp>(op)) {
    // The side that the index is not in is read at a clamped index.
    int64_t size = asTile(cat.getLhs().getType()).getDimSize(0);
    SmallVector<Value> left(indices), right(indices);
    Value bound = getIndex(loc, size);
    Value isLeft = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, indices[0], bound);
    Value zero = getIndex(loc, 0);
    left[0] = select(builder, loc, isLeft, indices[0], zero);
    right[0] = select(builder, loc, isLeft, zero,
                      arith::SubIOp::create(builder, loc, indices[0], bound));
    Value onLeft = get(cat.getLhs(), left), onRight = get(cat.getRhs(), right);
    return select(builder, loc, isLeft, onLeft, onRight);
  }
  if (auto gather = dyn_cast<tt::GatherOp>(op)) {
    int64_t size =
        asTile(gather.getSrc().getType()).getDimSize(gather.getAxis());
    Value index = get(gather.getIndices(), indices);
    index =
        arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index);
    // An index out of range is undefined, but must not leave the tile.
    if (!autodiff::mutation::isMade("cpu-gather:beyond the tile"))
      index =
          arith::MinUIOp::create(builder, loc, index, getIndex(loc, size - 1));
    SmallVector<Value> inner(indices);
    inner[gather.getAxis()] = index;
    return get(gather.getSrc(), inner);
  }
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return lowering.lowerDeferredLoad(builder, load, *this, indices);
  if (Placement::isElementwise(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand, indices));
    return lowering.lowerScalar(builder, op, operands);
  }
  lowering.fail(op);
  return lowering.getPoison(builder, loc, getScalarType(elementType));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// An offset in 64 bits. Terms are extended before they are added and
/// multiplied: so contiguous offsets are recognised, and an offset that
/// overflows is undefined anyway.
Value Element::extend(Value tile, ArrayRef<Value> indices) {
  Location loc = tile.getLoc();
  IntegerType wide = builder.getI64Type();
  Operation *op = tile.getDefiningOp();
  RankedTensorType type = asTile(tile.getType());
  if (type && op && !lowering.findTensor(tile) &&
      !lowering.placement.isUniform(tile)) {
    if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
      Value left = extend(op->getOperand(0), indices);
      Value right = extend(op->getOperand(1), indices);
      if (isa<arith::AddIOp>(op))
        return arith::AddIOp::create(builder, loc, left, right);
      if (isa<arith::SubIOp>(op))
        return arith::SubIOp::create(builder, loc, left, right);
      return arith::MulIOp::create(builder, loc, left, right);
    }
    if (isa<arith::ExtSIOp>(op))
      return extend(op->getOperand(0), indices);
    if (hasIndices(op))
      return extend(op->getOperand(0), mapIndices(op, indices));
  }
  Value value = get(tile, indices);
  if (value.getType() == wide)
    return value;
  if (autodiff::mutation::isMade("cpu-offset:none is negative"))
    return arith::ExtUIOp::create(builder, loc, wide, value);
  return arith::ExtSIOp::create(builder, loc, wide, value);
}

Value Element::getOffset(Value tile, ArrayRef<Value> indices) {
  Key key = makeKey(tile, indices);
  auto it = offsets.find(key);
  if (it != offsets.end())
    return it->second;

  Location loc = tile.getLoc();
  Operation *op = tile.getDefiningOp();
  auto compute = [&]() -> Value {
    if (Value tensor = lowering.findTensor(tile))
      return read(loc, tensor, builder.getI64Type(), indices);
    if (auto *start = lowering.findMoved(tile))
      return getOffset(start->first, indices);
    if (isa_and_nonnull<tt::SplatOp>(op))
      return arith::ConstantOp::create(builder, loc,
                                       builder.getI64IntegerAttr(0));
    if (hasIndices(op))
      return getOffset(op->getOperand(0), mapIndices(op, indices));
    if (auto cast = dyn_cast_or_null<tt::BitcastOp>(op))
      return getOffset(cast.getSrc(), indices);
    if (auto add = dyn_cast_or_null<tt::AddPtrOp>(op)) {
      Value offset = getOffset(add.getPtr(), indices);
      if (lowering.placement.isUniform(add.getOffset()) ||
          autodiff::mutation::isMade("cpu-offset:steps of scalars only"))
        return offset;
      Value step = extend(add.getOffset(), indices);
      int64_t size = getPointeeSize(tile.getType());
      if (size != 1)
        step = arith::MulIOp::create(
            builder, loc, step,
            arith::ConstantOp::create(builder, loc,
                                      builder.getI64IntegerAttr(size)));
      return arith::AddIOp::create(builder, loc, offset, step);
    }
    if (auto cast = dyn_cast_or_null<tt::IntToPtrOp>(op))
      return get(cast.getSrc(), indices);
    auto toInteger = [&](Value operand) -> Value {
      return LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                      getAddress(operand, indices));
    };
    if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
      return arith::SelectOp::create(
          builder, loc, get(choice.getCondition(), indices),
          toInteger(choice.getTrueValue()), toInteger(choice.getFalseValue()));
    if (op)
      lowering.fail(op, "on pointers");
    return lowering.getPoison(builder, loc, builder.getI64Type());
  };
  Value offset = compute();
  offsets[key] = offset;
  return offset;
}

Value Element::getAddress(Value tile, ArrayRef<Value> indices) {
  if (!asTile(tile.getType()))
    return lowering.getScalar(tile);
  Value offset = getOffset(tile, indices);
  return LLVM::GEPOp::create(
      builder, tile.getLoc(), LLVM::LLVMPointerType::get(builder.getContext()),
      builder.getI8Type(), lowering.getBase(tile),
      ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
}
