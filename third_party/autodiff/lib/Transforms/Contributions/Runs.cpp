//===- Runs.cpp - What an access touches at a time ------------------------===//
#include "Runs.h"

#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;

// With a larger step, a run would reach over elements that others touch.
constexpr int64_t kLongestStep = 4;

static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();

/// The distance of neighbouring lanes along an axis; zero if they are not in
/// runs.
static int64_t stepOfRuns(Value pointer, unsigned axis) {
  int64_t step = findLaneStep(pointer, axis).value_or(0);
  return std::abs(step) <= kLongestStep ? std::abs(step) : 0;
}

/// The axis of runs; none if every lane is a run.
static std::optional<unsigned> getAxis(triton::AtomicRMWOp add) {
  int64_t axis = add->getAttrOfType<IntegerAttr>(kRunAxisAttr).getInt();
  return axis < 0 ? std::nullopt : std::optional<unsigned>(axis);
}

std::optional<unsigned> mlir::autodiff::findRunAxis(Value pointer) {
  std::optional<unsigned> found;
  if (auto tile = dyn_cast<RankedTensorType>(pointer.getType()))
    for (int64_t axis = 0; axis < tile.getRank(); ++axis)
      if (stepOfRuns(pointer, axis) > 0)
        found = axis;
  return found;
}

int64_t mlir::autodiff::getRunSpan(Value pointer,
                                   std::optional<unsigned> axis) {
  if (!axis)
    return 1;
  int64_t lanes = cast<RankedTensorType>(pointer.getType()).getDimSize(*axis);
  return (lanes - 1) * stepOfRuns(pointer, *axis) + 1;
}

Value mlir::autodiff::offsetFrom(OpBuilder &b, Location loc, Value argument,
                                 Value pointer) {
  Type type = withElementType(pointer.getType(), b.getI64Type());
  auto address = [&](Value of) {
    return triton::PtrToIntOp::create(b, loc, type, of);
  };
  Value base = splatTo(b, loc, argument, pointer.getType());
  Value bytes = arith::SubIOp::create(b, loc, address(pointer), address(base));
  int64_t width = getPointee(pointer.getType()).getIntOrFloatBitWidth() / 8;
  return arith::ShRSIOp::create(b, loc, bytes,
                                integerOf(b, loc, type, llvm::Log2_64(width)));
}

void Runs::mark(triton::AtomicRMWOp add) {
  std::optional<unsigned> axis = findRunAxis(add.getPtr());
  add->setAttr(
      kRunAxisAttr,
      Builder(add.getContext()).getI32IntegerAttr(axis ? int64_t(*axis) : -1));
}

int64_t Runs::getLanes(triton::AtomicRMWOp add) {
  std::optional<unsigned> axis = getAxis(add);
  return axis ? cast<RankedTensorType>(add.getType()).getDimSize(*axis) : 1;
}

int64_t Runs::getSpan(triton::AtomicRMWOp add) {
  return getRunSpan(add.getPtr(), getAxis(add));
}

Value Runs::toLanes(OpBuilder &b, triton::AtomicRMWOp add, Value condition) {
  std::optional<unsigned> axis = getAxis(add);
  if (!axis)
    return condition;
  auto lanes = cast<RankedTensorType>(add.getType()).clone(b.getI1Type());
  return repeatAlong(b, add.getLoc(), condition, *axis, lanes);
}

bool Runs::areLanes(triton::AtomicRMWOp add) { return !getAxis(add); }

//===----------------------------------------------------------------------===//
// What runs touch
//===----------------------------------------------------------------------===//

namespace {
/// Of the lanes of a run, only the first `count` (an i64) count, and only if
/// `condition` holds. Null means all lanes, or always.
struct Prefix {
  Value count, condition;
};

/// Emits the addresses of the runs along an axis.
struct RunBuilder {
  OpBuilder &b;
  Location loc;
  unsigned axis;

  std::optional<Prefix> findPrefix(Value mask, unsigned axis);
  std::optional<Prefix> compare(arith::CmpIOp op, unsigned axis);
  Value both(Value x, Value y);
  std::optional<Runs> fromFirstLanes(triton::AtomicRMWOp add);
  Runs fromAllLanes(triton::AtomicRMWOp add);
};
} // namespace

Value RunBuilder::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  if (getElementTypeOrSelf(x.getType()).isInteger(1))
    return arith::AndIOp::create(b, loc, x, y);
  return arith::MinSIOp::create(b, loc, x, y);
}

/// index < bound, where the index counts lanes.
std::optional<Prefix> RunBuilder::compare(arith::CmpIOp op, unsigned axis) {
  Value index = op.getLhs(), bound = op.getRhs();
  if (op.getPredicate() != arith::CmpIPredicate::slt ||
      findLaneStep(index, axis) != 1 || findLaneStep(bound, axis) != 0)
    return std::nullopt;
  index = getFirstLane(b, index, axis);
  bound = getFirstLane(b, bound, axis);
  if (!index || !bound)
    return std::nullopt;
  Value count =
      arith::SubIOp::create(b, loc, castInteger(b, loc, bound, b.getI64Type()),
                            castInteger(b, loc, index, b.getI64Type()));
  return Prefix{count, {}};
}

std::optional<Prefix> RunBuilder::findPrefix(Value mask, unsigned axis) {
  if (!mask)
    return Prefix();
  if (findLaneStep(mask, axis) == 0) {
    Value condition = getFirstLane(b, mask, axis);
    return condition ? std::optional(Prefix{{}, condition}) : std::nullopt;
  }
  Operation *op = mask.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp>(op)) {
    std::optional<Prefix> x = findPrefix(op->getOperand(0), axis);
    std::optional<Prefix> y = findPrefix(op->getOperand(1), axis);
    if (!x || !y)
      return std::nullopt;
    return Prefix{both(x->count, y->count), both(x->condition, y->condition)};
  }
  if (std::optional<unsigned> from = getSourceAxis(op, axis)) {
    std::optional<Prefix> source = findPrefix(op->getOperand(0), *from);
    if (!source)
      return std::nullopt;
    for (Value *value : {&source->count, &source->condition})
      if (*value)
        *value = spreadFirstLane(b, op, *value, axis);
    return source;
  }
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(op);
  return comparison ? compare(comparison, axis) : std::nullopt;
}

/// Describes runs by their first lanes, and how many lanes are unmasked: little
/// work for few threads. None if every lane has to be looked at.
std::optional<Runs> RunBuilder::fromFirstLanes(triton::AtomicRMWOp add) {
  Value pointer = getFirstLane(b, add.getPtr(), axis);
  std::optional<Prefix> prefix = findPrefix(add.getMask(), axis);
  if (!pointer || !prefix)
    return std::nullopt;
  Value start = offsetFrom(b, loc, getBaseArgument(add.getPtr()), pointer);
  Type type = start.getType();
  auto constant = [&](int64_t number) {
    return integerOf(b, loc, type, number);
  };
  Value lanes = constant(Runs::getLanes(add));
  Value count = prefix->count;
  count = count ? arith::MinSIOp::create(b, loc, count, lanes) : lanes;
  Value isActive = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                         count, constant(0));
  Value span = arith::MulIOp::create(
      b, loc, arith::SubIOp::create(b, loc, count, constant(1)),
      constant(*findLaneStep(add.getPtr(), axis)));
  Value end = arith::AddIOp::create(b, loc, start, span);
  return Runs{arith::MinSIOp::create(b, loc, start, end),
              arith::MaxSIOp::create(b, loc, start, end),
              both(isActive, prefix->condition)};
}

Runs RunBuilder::fromAllLanes(triton::AtomicRMWOp add) {
  Value pointer = add.getPtr();
  Value offsets = offsetFrom(b, loc, getBaseArgument(pointer), pointer);
  auto constant = [&](Type type, int64_t number) {
    return integerOf(b, loc, type, number);
  };
  auto otherwise = [&](int64_t number) -> Value {
    Value mask = add.getMask();
    return mask ? arith::SelectOp::create(b, loc, mask, offsets,
                                          constant(offsets.getType(), number))
                : offsets;
  };
  Value first = reduceOver<arith::MinSIOp>(b, loc, otherwise(kNothing), axis);
  Value last = reduceOver<arith::MaxSIOp>(b, loc, otherwise(-kNothing), axis);
  return {first, last,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, first,
                                constant(first.getType(), kNothing))};
}

Runs Runs::of(OpBuilder &b, triton::AtomicRMWOp add) {
  std::optional<unsigned> axis = getAxis(add);
  RunBuilder builder{b, add.getLoc(), axis.value_or(0)};
  if (axis) {
    std::optional<Runs> runs = builder.fromFirstLanes(add);
    return runs ? *runs : builder.fromAllLanes(add);
  }
  Value pointer = add.getPtr();
  Value offsets =
      offsetFrom(b, add.getLoc(), getBaseArgument(pointer), pointer);
  Value mask = add.getMask();
  if (!mask)
    mask = integerOf(b, add.getLoc(),
                     withElementType(offsets.getType(), b.getI1Type()), 1);
  return {offsets, offsets, mask};
}
