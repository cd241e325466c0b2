//===- CommonValues.cpp - What neighbours would all compute again ---------===//
#include "CommonValues.h"

#include "autodiff/Analysis/Ties.h"
#include "autodiff/Analysis/ValueNetwork.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UsedValues.h"

using namespace mlir;
using namespace mlir::autodiff;

CommonValues::CommonValues(triton::FuncOp kernel, const Positions &positions,
                           ArrayRef<int64_t> shape)
    : kernel(kernel), positions(positions), shape(shape),
      order(llvm::to_vector(llvm::seq<size_t>(0, positions.size()))) {
  llvm::stable_sort(order, [&](size_t x, size_t y) {
    constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
    return positions[x].stride.getConstant().value_or(kFar) <
           positions[y].stride.getConstant().value_or(kFar);
  });
}

//===----------------------------------------------------------------------===//
// What is worth storing
//===----------------------------------------------------------------------===//

void CommonValues::need(Value value, const Neighbors &neighbors) {
  results.insert(value);
  follow(value, neighbors);
}

void CommonValues::follow(Value value, const Neighbors &neighbors) {
  Operation *op = value.getDefiningOp();
  if (op && neighbors.needs(value) &&
      needed[value].insert(neighbors.getDistance()).second)
    for (Value operand : getUsedValues(op))
      follow(operand, neighbors);
}

namespace {
/// The values that are needed at several distances.
class CommonNetwork : public ValueNetwork {
public:
  using Needed = llvm::MapVector<Value, std::set<Distance>>;

  CommonNetwork(triton::FuncOp kernel, const Needed &needed,
                ArrayRef<int64_t> shape)
      : needed(needed), shape(shape), ties(findTies(kernel)) {}

private:
  bool isAtHand(Value value) override { return !needed.contains(value); }
  double costOfTaking(Value value) override;
  double costOfComputing(Value value) override;
  size_t countDistances(Value value) const {
    return needed.find(value)->second.size();
  }

  const Needed &needed;
  ArrayRef<int64_t> shape;
  llvm::DenseSet<Value> ties;
};
} // namespace

/// The cost of storing a value once, and loading it at its distances.
double CommonNetwork::costOfTaking(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  Type element = getElementTypeOrSelf(value.getType());
  bool isOfPositions = tile ? tile.getShape() == shape : shape.empty();
  if (isAtHand(value) || ties.contains(value) || !isOfPositions ||
      !(isa<FloatType>(element) || element.isInteger(1)))
    return kImpossible;
  return (1 + countDistances(value)) * bytesOf(value.getType());
}

/// The cost of computing a value for each of its distances.
double CommonNetwork::costOfComputing(Value value) {
  Operation *op = value.getDefiningOp();
  double bytes = 0;
  if (isa<triton::LoadOp>(op))
    bytes = bytesOf(value.getType());
  else if (isa<triton::ReduceOp>(op))
    bytes = bytesOf(op->getOperand(0).getType());
  else if (isFloat(value.getType()))
    bytes = 0.02 * bytesOf(value.getType());
  return countDistances(value) * bytes;
}

std::optional<double> CommonValues::choose() {
  CommonNetwork network(kernel, needed, shape);
  for (auto &[value, distances] : needed)
    if (results.contains(value))
      network.need(value);
  ValueNetwork::Choice choice = network.choose();
  for (Value value : choice.taken)
    stored.push_back({value, {}});
  return stored.empty() ? std::nullopt : std::optional(choice.cost);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

ExprAttr CommonValues::countPlaces() const {
  MLIRContext *context = triton::FuncOp(kernel).getContext();
  ExprAttr count = ExprAttr::get(context, 1);
  for (const Position &position : positions.get())
    count = mulOf(count, position.count(context));
  return count;
}

/// The number of values of a position, as a multiple of its lanes, so that
/// addresses are known to be aligned.
static Value emitCount(OpBuilder &b, Location loc, const Position &position) {
  Value lanes = integerOf(b, loc, b.getI32Type(), position.length);
  if (!position.digit)
    return lanes;
  Value programs = createSize(b, loc, extentOf(*position.digit));
  return arith::MulIOp::create(b, loc, programs, lanes);
}

/// Pointers to the stored values of positions at a distance.
Value CommonValues::pointersOf(OpBuilder &b, Location loc, Value buffer,
                               const Distance *distance) const {
  Type type = b.getI32Type();
  if (!shape.empty())
    type = RankedTensorType::get(shape, type);
  Value index, stride;
  for (size_t number : order) {
    const Position &position = positions[number];
    Value at = positions.emit(b, loc, number, position.axis, shape);
    if (!position.axis)
      at = splatTo(b, loc, at, type);
    if (int64_t far = distance ? (*distance)[number] : 0)
      at = arith::AddIOp::create(b, loc, at, integerOf(b, loc, type, far));
    Value count = emitCount(b, loc, position);
    if (stride) {
      at = arith::MulIOp::create(b, loc, at, splatTo(b, loc, stride, type));
      count = arith::MulIOp::create(b, loc, stride, count);
    }
    index = index ? Value(arith::AddIOp::create(b, loc, index, at)) : at;
    stride = count;
  }
  Type pointers = withElementType(type, buffer.getType());
  return triton::AddPtrOp::create(b, loc, pointers,
                                  splatTo(b, loc, buffer, pointers), index);
}

void CommonValues::store() {
  for (auto &[value, buffer] : stored) {
    unsigned index = nextBuffer(kernel->getParentOfType<ModuleOp>());
    Location loc = value.getLoc();
    OpBuilder b(kernel.getContext());
    b.setInsertionPointAfterValue(value);
    buffer = appendBuffer(kernel, index, value.getType(),
                          describeMemory(BufferKind::Handover,
                                         "common" + std::to_string(index),
                                         value.getType(), countPlaces()));
    storeTo(b, loc, pointersOf(b, loc, buffer, nullptr), value);
  }
}

void CommonValues::provide(OpBuilder &b, Neighbors &neighbors) const {
  const Distance *distance = mutation::isMade("windows:common values from here")
                                 ? nullptr
                                 : &neighbors.getDistance();
  for (auto [value, buffer] : stored) {
    Location loc = value.getLoc();
    Value pointers = pointersOf(b, loc, buffer, distance);
    neighbors.bind(value, loadFrom(b, loc, pointers, neighbors.exists(value),
                                   value.getType()));
  }
}
