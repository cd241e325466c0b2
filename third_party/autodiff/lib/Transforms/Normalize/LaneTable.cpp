//===- LaneTable.cpp - Which element each lane of a tile holds ------------===//
#include "LaneTable.h"

#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Tiles of more elements are not looked into.
constexpr int64_t kMostElements = 1 << 17;

static ArrayRef<int64_t> shapeOf(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile ? tile.getShape() : ArrayRef<int64_t>();
}

/// The position along each axis of element `number`.
static SmallVector<int64_t> unravel(int64_t number, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> position(shape.size());
  for (unsigned axis = shape.size(); axis-- > 0; number /= shape[axis])
    position[axis] = number % shape[axis];
  return position;
}

static int64_t ravel(ArrayRef<int64_t> position, ArrayRef<int64_t> shape) {
  int64_t number = 0;
  for (auto [place, size] : llvm::zip_equal(position, shape))
    number = number * size + place;
  return number;
}

/// For each element of the result of a move, that of its operand; empty if it
/// is not known.
static std::vector<int64_t> findMoved(Operation *op) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0));
  ArrayRef<int64_t> to = shapeOf(op->getResult(0));
  std::vector<int64_t> moved(elementsOf(op->getResult(0).getType()));
  for (auto [number, source] : llvm::enumerate(moved)) {
    SmallVector<int64_t> position = unravel(number, to);
    if (isa<triton::SplatOp, triton::UnsplatOp>(op)) {
      source = 0;
    } else if (isa<triton::ReshapeOp, triton::ExpandDimsOp>(op)) {
      source = number;
    } else if (isa<triton::BroadcastOp>(op)) {
      for (auto [place, size] : llvm::zip_equal(position, from))
        place = size == 1 ? 0 : place;
      source = ravel(position, from);
    } else if (auto transpose = dyn_cast<triton::TransOp>(op)) {
      SmallVector<int64_t> before(from.size());
      for (auto [axis, other] : llvm::enumerate(transpose.getOrder()))
        before[other] = position[axis];
      source = ravel(before, from);
    } else if (auto swap = dyn_cast<SwapOp>(op)) {
      position[swap.getAxis()] ^= 1;
      source = ravel(position, from);
    } else {
      return {};
    }
  }
  return moved;
}

static Attribute foldNumbers(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() ||
      !isMemoryEffectFree(op))
    return {};
  if (auto range = dyn_cast<triton::MakeRangeOp>(op)) {
    auto type = cast<RankedTensorType>(range.getType());
    SmallVector<int32_t> numbers;
    for (int64_t lane : llvm::seq<int64_t>(type.getNumElements()))
      numbers.push_back(range.getStart() + lane);
    return DenseElementsAttr::get(type, ArrayRef(numbers));
  }
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(foldNumbers(operand));
    if (!operands.back())
      return {};
  }
  if (triton::isMove(op)) {
    auto from = dyn_cast<DenseElementsAttr>(operands[0]);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    std::vector<int64_t> moved = findMoved(op);
    if (!type || moved.empty())
      return {};
    SmallVector<Attribute> numbers;
    for (int64_t source : moved)
      numbers.push_back(from ? from.getValues<Attribute>()[source]
                             : operands[0]);
    return DenseElementsAttr::get(type, numbers);
  }
  SmallVector<OpFoldResult> folded;
  if (!op->hasTrait<OpTrait::Elementwise>() ||
      failed(op->fold(operands, folded)) || folded.size() != 1)
    return {};
  if (auto same = dyn_cast<Value>(folded[0]))
    return foldNumbers(same);
  return cast<Attribute>(folded[0]);
}

DenseElementsAttr mlir::autodiff::findNumbers(Value tile) {
  if (!isa<RankedTensorType>(tile.getType()) ||
      elementsOf(tile.getType()) > kMostElements)
    return {};
  return dyn_cast_or_null<DenseElementsAttr>(foldNumbers(tile));
}

/// Whether a number is zero, or one.
static bool isNumber(Attribute attribute, int64_t number) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getValue() == number ||
           // A bool is one if it is true.
           (number == 1 && integer.getValue().getBitWidth() == 1 &&
            integer.getValue().isOne());
  auto real = dyn_cast<FloatAttr>(attribute);
  return real && real.getValueAsDouble() == number;
}

static LaneTable identity(Value tile) {
  std::vector<int64_t> elements(elementsOf(tile.getType()));
  std::iota(elements.begin(), elements.end(), 0);
  return {tile, std::move(elements)};
}

/// Lanes that are taken where `keeps` is one, and zero where it is zero.
static std::optional<LaneTable> takeLanes(Value tile, DenseElementsAttr keeps) {
  LaneTable table = LaneTable::of(tile);
  for (auto [element, keep] :
       llvm::zip_equal(table.elements, keeps.getValues<Attribute>())) {
    if (isNumber(keep, 0))
      element = LaneTable::kZero;
    else if (!isNumber(keep, 1))
      return std::nullopt;
  }
  return table;
}

static std::optional<LaneTable> ofProduct(Operation *op) {
  for (unsigned side : {0, 1})
    if (DenseElementsAttr numbers = findNumbers(op->getOperand(side))) {
      std::optional<LaneTable> table =
          takeLanes(op->getOperand(1 - side), numbers);
      if (table)
        table->isExact &= isa<arith::MulIOp>(op);
      return table;
    }
  return std::nullopt;
}

static bool isZero(Value value) {
  return matchPattern(value, m_Zero()) || matchPattern(value, m_AnyZeroFloat());
}

/// A selection of lanes, of one tile or of zeros.
static std::optional<LaneTable> ofSelection(arith::SelectOp op) {
  DenseElementsAttr picked = findNumbers(op.getCondition());
  if (!picked)
    return std::nullopt;
  std::optional<LaneTable> whole;
  std::vector<int64_t> elements(picked.getNumElements(), LaneTable::kZero);
  bool isExact = true;
  for (bool side : {true, false}) {
    Value tile = side ? op.getTrueValue() : op.getFalseValue();
    if (isZero(tile)) {
      // In a sum, only a negative zero leaves each number as it is.
      isExact &=
          !isFloat(tile.getType()) || matchPattern(tile, m_NegZeroFloat());
      continue;
    }
    LaneTable table = LaneTable::of(tile);
    if (whole && whole->root != table.root)
      return std::nullopt;
    isExact &= table.isExact;
    for (auto [number, keep] : llvm::enumerate(picked.getValues<Attribute>()))
      if (isNumber(keep, 1) == side)
        elements[number] = table.elements[number];
    whole = table;
  }
  if (!whole)
    return std::nullopt;
  return LaneTable{whole->root, std::move(elements), isExact};
}

/// A sum along an axis in which all but one are zero.
static std::optional<LaneTable> ofSum(triton::ReduceOp op) {
  if (op.getSrcs().size() != 1 ||
      !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(op.getSingleCombiner()))
    return std::nullopt;
  Value tile = op.getSrcs()[0];
  LaneTable table = LaneTable::of(tile);
  ArrayRef<int64_t> shape = shapeOf(tile);
  SmallVector<int64_t> rest(shape);
  rest.erase(rest.begin() + op.getAxis());
  std::vector<int64_t> elements(table.elements.size() / shape[op.getAxis()],
                                LaneTable::kZero);
  for (auto [number, element] : llvm::enumerate(table.elements)) {
    SmallVector<int64_t> position = unravel(number, shape);
    position.erase(position.begin() + op.getAxis());
    int64_t &sum = elements[ravel(position, rest)];
    if (element != LaneTable::kZero && sum != LaneTable::kZero)
      return std::nullopt;
    if (element != LaneTable::kZero)
      sum = element;
  }
  return LaneTable{table.root, std::move(elements), table.isExact};
}

/// Numbers that were widened and are narrowed again.
static std::optional<LaneTable> ofNarrowed(arith::TruncFOp op) {
  LaneTable table = LaneTable::of(op.getIn());
  auto widened = table.root.getDefiningOp<arith::ExtFOp>();
  if (!widened || getElementTypeOrSelf(widened.getIn().getType()) !=
                      getElementTypeOrSelf(op.getType()))
    return std::nullopt;
  LaneTable before = LaneTable::of(widened.getIn());
  for (int64_t &element : table.elements)
    if (element != LaneTable::kZero)
      element = before.elements[element];
  return LaneTable{before.root, std::move(table.elements),
                   table.isExact && before.isExact};
}

LaneTable LaneTable::of(Value tile) {
  Operation *op = tile.getDefiningOp();
  std::optional<LaneTable> found;
  if (!op || elementsOf(tile.getType()) > kMostElements)
    return identity(tile);
  if (triton::isMove(op) &&
      elementsOf(op->getOperand(0).getType()) <= kMostElements) {
    std::vector<int64_t> moved = findMoved(op);
    if (moved.empty())
      return identity(tile);
    LaneTable source = of(op->getOperand(0));
    for (int64_t &element : moved)
      element = source.elements[element];
    return {source.root, std::move(moved), source.isExact};
  }
  if (auto narrowed = dyn_cast<arith::TruncFOp>(op))
    found = ofNarrowed(narrowed);
  else if (isa<arith::MulFOp, arith::MulIOp>(op))
    found = ofProduct(op);
  else if (auto select = dyn_cast<arith::SelectOp>(op))
    found = ofSelection(select);
  else if (auto sum = dyn_cast<triton::ReduceOp>(op))
    found = ofSum(sum);
  return found ? std::move(*found) : identity(tile);
}

std::optional<PickedLane> mlir::autodiff::findPickedLane(triton::ReduceOp sum) {
  if (!isa_and_nonnull<arith::AddIOp>(sum.getSingleCombiner()))
    return std::nullopt;
  Operation *masked = sum.getSrcs()[0].getDefiningOp();
  Value tile;
  DenseElementsAttr keeps;
  if (isa_and_nonnull<arith::MulIOp>(masked)) {
    for (unsigned side : {0, 1})
      if ((keeps = findNumbers(masked->getOperand(side)))) {
        tile = masked->getOperand(1 - side);
        break;
      }
  } else if (auto select = dyn_cast_or_null<arith::SelectOp>(masked)) {
    if (isZero(select.getFalseValue())) {
      tile = select.getTrueValue();
      keeps = findNumbers(select.getCondition());
    }
  }
  if (!keeps || !tile)
    return std::nullopt;
  // One lane of the axis, the same everywhere.
  std::optional<int64_t> lane;
  ArrayRef<int64_t> shape = shapeOf(tile);
  for (auto [number, keep] : llvm::enumerate(keeps.getValues<Attribute>())) {
    int64_t place = unravel(number, shape)[sum.getAxis()];
    if (isNumber(keep, 1) && (!lane || *lane == place))
      lane = place;
    else if (!isNumber(keep, 0))
      return std::nullopt;
  }
  if (!lane)
    return std::nullopt;
  int64_t kept = llvm::count_if(keeps.getValues<Attribute>(),
                                [](Attribute k) { return isNumber(k, 1); });
  if (kept * shape[sum.getAxis()] != elementsOf(tile.getType()))
    return std::nullopt;
  return PickedLane{tile, *lane};
}
