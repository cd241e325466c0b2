//===- AxisMap.cpp - along which axes operations move ---------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::triton;

#include "triton/Dialect/Triton/IR/AxisMapInterface.cpp.inc"

//===----------------------------------------------------------------------===//
// The map
//===----------------------------------------------------------------------===//

AxisMap AxisMap::identity(unsigned rank) {
  AxisMap map(rank, rank);
  for (unsigned axis : llvm::seq(rank))
    map.keep(axis, axis);
  return map;
}

void AxisMap::keep(unsigned from, unsigned to) {
  operand[from] = {Kind::Kept, to};
  result[to] = {Kind::Kept, from};
}

void AxisMap::stretch(unsigned from, unsigned to) {
  operand[from] = {Kind::Dropped, to};
  result[to] = {Kind::Repeated, from};
}

std::optional<unsigned> AxisMap::getSummed() const {
  std::optional<unsigned> found;
  for (unsigned axis : llvm::seq(getOperandRank()))
    if (ofOperand(axis) == Kind::Summed) {
      if (found)
        return std::nullopt;
      found = axis;
    }
  return found;
}

bool AxisMap::isMixed() const {
  auto isMixed = [](const Axis &axis) { return axis.kind == Kind::Mixed; };
  return llvm::any_of(operand, isMixed) || llvm::any_of(result, isMixed);
}

bool AxisMap::isRepetition() const {
  unsigned least = 0;
  for (const Axis &axis : operand) {
    if (!axis.other || *axis.other < least)
      return false;
    least = *axis.other;
  }
  return true;
}

static StringRef nameOf(AxisMap::Kind kind) {
  switch (kind) {
  case AxisMap::Kind::Kept:
    return "kept";
  case AxisMap::Kind::New:
    return "new";
  case AxisMap::Kind::Repeated:
    return "repeated";
  case AxisMap::Kind::Dropped:
    return "dropped";
  case AxisMap::Kind::Summed:
    return "summed";
  case AxisMap::Kind::Mixed:
    return "mixed";
  }
  llvm_unreachable("all kinds are covered");
}

/// For each axis of the operand, that of the result or what becomes of it, and
/// the reverse: (0, summed) -> (0, repeated).
void AxisMap::print(llvm::raw_ostream &os) const {
  auto printAxes = [&](ArrayRef<Axis> axes) {
    os << "(";
    llvm::interleaveComma(axes, os, [&](const Axis &axis) {
      if (axis.kind == Kind::Kept)
        os << *axis.other;
      else
        os << nameOf(axis.kind);
    });
    os << ")";
  };
  printAxes(operand);
  os << " -> ";
  printAxes(result);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static unsigned rankOf(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.getRank() : 0;
}

static AxisMap unknown(Operation *op, unsigned operand) {
  return AxisMap(rankOf(op->getOperand(operand).getType()),
                 rankOf(op->getResult(0).getType()));
}

std::optional<AxisMap> AxisMap::of(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto known = dyn_cast<AxisMapOpInterface>(op))
    return known.getAxisMap(use.getOperandNumber());
  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() == 0)
    return std::nullopt;
  AxisMap map = unknown(op, use.getOperandNumber());
  if (map.getOperandRank() == map.getResultRank())
    return identity(map.getResultRank());
  for (unsigned axis : llvm::seq(map.getResultRank()))
    map.repeat(axis); // a scalar beside tiles
  return map;
}

std::optional<AxisMap> AxisMap::ofMove(Operation *op) {
  if (!isMove(op))
    return std::nullopt;
  AxisMap map = cast<AxisMapOpInterface>(op).getAxisMap(0);
  return map.isMixed() ? std::nullopt : std::optional(map);
}

bool mlir::triton::isMove(Operation *op) {
  auto known = dyn_cast_or_null<AxisMapOpInterface>(op);
  return known && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         known.takesElements(0);
}

bool mlir::triton::isRepetition(Operation *op) {
  std::optional<AxisMap> map = AxisMap::ofMove(op);
  return map && map->isRepetition();
}

bool mlir::triton::takesElements(Operation *op) {
  auto known = dyn_cast_or_null<AxisMapOpInterface>(op);
  return known &&
         llvm::any_of(llvm::seq(op->getNumOperands()), [&](unsigned operand) {
           return known.takesElements(operand);
         });
}

//===----------------------------------------------------------------------===//
// Of each operation
//===----------------------------------------------------------------------===//

AxisMap SplatOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getResultRank()))
    map.repeat(axis);
  return map;
}

AxisMap UnsplatOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getOperandRank()))
    map.drop(axis);
  return map;
}

AxisMap ExpandDimsOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getOperandRank()))
    map.keep(axis, axis + (axis >= getAxis()));
  map.add(getAxis());
  return map;
}

AxisMap BroadcastOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  auto from = cast<RankedTensorType>(getSrc().getType());
  auto to = cast<RankedTensorType>(getType());
  for (unsigned axis : llvm::seq(map.getResultRank()))
    if (from.getDimSize(axis) == to.getDimSize(axis))
      map.keep(axis, axis);
    else
      map.stretch(axis, axis);
  return map;
}

/// Positions are counted through all axes.
AxisMap ReshapeOp::getAxisMap(unsigned operand) {
  return unknown(*this, operand);
}

AxisMap TransOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (auto [to, from] : llvm::enumerate(getOrder()))
    map.keep(from, to);
  return map;
}

/// The order of the elements is not defined.
AxisMap CatOp::getAxisMap(unsigned operand) { return unknown(*this, operand); }

AxisMap JoinOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getOperandRank()))
    map.keep(axis, axis);
  return map;
}

AxisMap SplitOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getResultRank()))
    map.keep(axis, axis);
  return map;
}

AxisMap GatherOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  bool isIndex = operand == getIndicesMutable().getOperandNumber();
  for (unsigned axis : llvm::seq(map.getResultRank()))
    if (isIndex || axis != getAxis())
      map.keep(axis, axis);
  return map;
}

bool GatherOp::takesElements(unsigned operand) {
  return operand == getSrcMutable().getOperandNumber();
}

/// Every element of the source counts at the position that it is.
AxisMap HistogramOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getOperandRank()))
    map.sum(axis);
  return map;
}

/// Of a product a b + c: rows are a's, columns are b's, and what is summed is
/// a's last axis and b's last but one.
static AxisMap ofProduct(Operation *op, bool isLeft, unsigned operand) {
  AxisMap map = unknown(op, operand);
  unsigned rank = map.getResultRank(), rows = rank - 2, columns = rank - 1;
  for (unsigned axis : llvm::seq(rows))
    map.keep(axis, axis);
  unsigned kept = isLeft ? rows : columns, other = isLeft ? columns : rows;
  map.keep(kept, kept);
  map.sum(other);
  map.repeat(other);
  return map;
}

AxisMap DotOp::getAxisMap(unsigned operand) {
  if (operand == getCMutable().getOperandNumber())
    return AxisMap::identity(rankOf(getType()));
  return ofProduct(*this, operand == getAMutable().getOperandNumber(), operand);
}

/// An operand may have two elements in one along an axis, a scale has several
/// elements' along the one that is summed.
AxisMap DotScaledOp::getAxisMap(unsigned operand) {
  return operand == getCMutable().getOperandNumber()
             ? AxisMap::identity(rankOf(getType()))
             : unknown(*this, operand);
}

AxisMap ReduceOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getResultRank()))
    map.keep(axis + (axis >= getAxis()), axis);
  map.sum(getAxis());
  return map;
}

AxisMap ScanOp::getAxisMap(unsigned operand) {
  AxisMap map = unknown(*this, operand);
  for (unsigned axis : llvm::seq(map.getResultRank()))
    if (axis != getAxis())
      map.keep(axis, axis);
  return map;
}

//===----------------------------------------------------------------------===//
// Behind another axis
//===----------------------------------------------------------------------===//

static DictionaryAttr withAttr(Operation *op, StringRef name, Attribute value) {
  NamedAttrList attrs(op->getAttrDictionary());
  attrs.set(name, value);
  return attrs.getDictionary(op->getContext());
}

template <typename OpT> static DictionaryAttr withNextAxis(OpT op) {
  return withAttr(op, op.getAxisAttrName(),
                  Builder(op.getContext()).getI32IntegerAttr(op.getAxis() + 1));
}

DictionaryAttr ExpandDimsOp::getAttrsBehindAxis() {
  return withNextAxis(*this);
}
DictionaryAttr ReduceOp::getAttrsBehindAxis() { return withNextAxis(*this); }
DictionaryAttr ScanOp::getAttrsBehindAxis() { return withNextAxis(*this); }
DictionaryAttr BroadcastOp::getAttrsBehindAxis() {
  return (*this)->getAttrDictionary();
}
DictionaryAttr ReshapeOp::getAttrsBehindAxis() {
  return (*this)->getAttrDictionary();
}

DictionaryAttr TransOp::getAttrsBehindAxis() {
  SmallVector<int32_t> order{0};
  for (int32_t axis : getOrder())
    order.push_back(axis + 1);
  return withAttr(*this, getOrderAttrName(),
                  DenseI32ArrayAttr::get(getContext(), order));
}
