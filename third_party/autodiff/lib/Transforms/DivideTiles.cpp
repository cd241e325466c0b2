//===- DivideTiles.cpp - Programs go over their tiles in pieces -----------===//
#include "ResizeTiles.h"
#include "TileForms.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DIVIDETILES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

// Measured on an H100 (docs/performance.md): up to twice as many registers as a
// processor has, the compiler finds an order that takes fewer. Pieces leave
// room for several programs.
constexpr double kMostRegisters = 128 * 1024, kRegistersOfPiece = 16 * 1024;

namespace {
/// What goes into one loop.
struct Stage {
  SmallVector<triton::ReduceOp> sums;
  SmallVector<Operation *> stores;
  /// What is computed once, before the loop.
  SmallVector<Operation *> before;
};

/// Cuts a kernel without control flow into stages, each behind the sums that it
/// takes, which all go over one axis of the largest tiles.
class DividedKernel {
public:
  explicit DividedKernel(triton::FuncOp kernel) : kernel(kernel) {}

  /// The new kernel, with pieces of a part of the tiles; null if there is none.
  triton::FuncOp build(unsigned factor);

private:
  LogicalResult collect();
  void findShape();
  bool isLargest(Value value) const;
  std::optional<unsigned> getAxis(Value value) const;
  Value getFlattened(Value value) const;
  bool isSum(triton::ReduceOp op) const;
  std::optional<unsigned> findDivided(Operation *op) const;
  Stage &getStage(unsigned level);
  void emit(Stage &stage, OpBuilder &b);
  Value addUp(OpBuilder &b, triton::ReduceOp sum);

  triton::FuncOp kernel;
  SmallVector<int64_t> shape;
  unsigned axis = 0;
  SmallVector<Stage> stages;
  /// Of values that are made of the largest tiles, along which axis.
  llvm::DenseMap<Value, unsigned> divided;
  IRMapping map;
};
} // namespace

/// The largest tiles that the kernel moves, and their longest axis.
void DividedKernel::findShape() {
  int64_t most = 0;
  for (Operation &op : kernel.getBody().front()) {
    if (!isa<triton::LoadOp, triton::StoreOp>(op))
      continue;
    auto tile = dyn_cast<RankedTensorType>(op.getOperand(0).getType());
    if (!tile || tile.getNumElements() <= most)
      continue;
    most = tile.getNumElements();
    shape.assign(tile.getShape().begin(), tile.getShape().end());
  }
  axis = llvm::max_element(shape) - shape.begin();
}

bool DividedKernel::isLargest(Value value) const {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile && tile.getShape() == ArrayRef(shape);
}

static bool isAddition(triton::ReduceOp op) {
  return op->getNumOperands() == 1 &&
         classifyCombiner(op.getCombineOp()) == Combiner::Sum;
}

/// The axis along which a value is divided, if it is.
std::optional<unsigned> DividedKernel::getAxis(Value value) const {
  if (isLargest(value))
    return axis;
  auto known = divided.find(value);
  return known == divided.end() ? std::nullopt : std::optional(known->second);
}

/// The largest tile of which `value` has all elements in a row, or null.
Value DividedKernel::getFlattened(Value value) const {
  auto reshape = value.getDefiningOp<triton::ReshapeOp>();
  bool isFlat = reshape && isLargest(reshape.getSrc()) &&
                cast<RankedTensorType>(value.getType()).getRank() == 1;
  return isFlat ? reshape.getSrc() : Value();
}

/// Whether a reduction adds up the pieces of what is divided.
bool DividedKernel::isSum(triton::ReduceOp op) const {
  Value source = op->getOperand(0);
  return isAddition(op) &&
         (getAxis(source) == op.getAxis() || getFlattened(source));
}

/// The axis that is divided of what `op` makes, or stores, of divided tiles.
std::optional<unsigned> DividedKernel::findDivided(Operation *op) const {
  for (Value operand : op->getOperands()) {
    std::optional<unsigned> source = getAxis(operand);
    if (!source)
      continue;
    unsigned along = *source;
    if (auto reduce = dyn_cast<triton::ReduceOp>(op)) {
      if (reduce.getAxis() == along)
        return std::nullopt;
      return along - (along > reduce.getAxis());
    }
    if (auto expand = dyn_cast<triton::ExpandDimsOp>(op))
      return along + (along >= expand.getAxis());
    if (isa<triton::BroadcastOp>(op) || TileForms::isStore(op) ||
        op->hasTrait<OpTrait::Elementwise>())
      return along;
  }
  return std::nullopt;
}

Stage &DividedKernel::getStage(unsigned level) {
  if (stages.size() <= level)
    stages.resize(level + 1);
  return stages[level];
}

/// Assigns operations to stages. That must not change what memory holds: loads
/// come behind the stores of earlier pieces.
LogicalResult DividedKernel::collect() {
  llvm::DenseMap<Value, unsigned> levels;
  SmallVector<Value> touched;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    unsigned level = 0;
    for (Value operand : op.getOperands())
      level = std::max(level, levels.lookup(operand));
    auto reduce = dyn_cast<triton::ReduceOp>(op);
    std::optional<unsigned> along = findDivided(&op);
    if (TileForms::isStore(&op) && along) {
      getStage(level).stores.push_back(&op);
    } else if (reduce && isSum(reduce)) {
      getStage(level).sums.push_back(reduce);
      ++level;
    } else if ((op.getNumRegions() > 0 && !reduce) ||
               (mayWrite(&op) && !TileForms::isStore(&op))) {
      return failure();
    } else {
      getStage(level).before.push_back(&op);
    }
    if (TileForms::isStore(&op) && llvm::any_of(touched, [&](Value other) {
          return mayAlias(op.getOperand(0), other);
        }))
      return failure();
    if (TileForms::isStore(&op) || isa<triton::LoadOp>(op))
      touched.push_back(op.getOperand(0));
    for (Value result : op.getResults()) {
      levels[result] = level;
      if (along)
        divided[result] = *along;
    }
  }
  return success();
}

/// The sum of an iteration. Everything is added up along the axis last.
Value DividedKernel::addUp(OpBuilder &b, triton::ReduceOp sum) {
  auto reduce = [&](Value tile, unsigned along) -> Value {
    auto copy = triton::ReduceOp::create(b, sum.getLoc(), tile, along);
    IRMapping regions;
    sum.getCombineOp().cloneInto(&copy.getCombineOp(), regions);
    return copy->getResult(0);
  };
  Value source = sum->getOperand(0), tile = getFlattened(source);
  if (!tile)
    return reduce(map.lookup(source), sum.getAxis());
  tile = map.lookup(tile);
  for (unsigned other = shape.size(); other-- > 0;)
    if (other != axis)
      tile = reduce(tile, other);
  return reduce(tile, 0);
}

/// A stage as a loop with one iteration, which narrowTiles() divides.
void DividedKernel::emit(Stage &stage, OpBuilder &b) {
  for (Operation *op : stage.before)
    b.clone(*op, map);
  if (stage.sums.empty() && stage.stores.empty())
    return;
  Location loc = kernel.getLoc();
  SmallVector<Value> zeros;
  for (triton::ReduceOp sum : stage.sums)
    zeros.push_back(constantOf(b, loc, sum->getResult(0).getType(), 0.0));
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  auto loop = scf::ForOp::create(b, loc, zero, one, one, zeros);
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  SmallVector<Value> next;
  for (auto [sum, carried] :
       llvm::zip_equal(stage.sums, loop.getRegionIterArgs())) {
    Value before = carried, piece = addUp(inside, sum);
    if (mutation::isMade("divide-tiles:sum of the last piece"))
      before = constantOf(inside, loc, piece.getType(), 0.0);
    next.push_back(arith::AddFOp::create(inside, loc, before, piece));
  }
  for (Operation *store : stage.stores)
    inside.clone(*store, map)
        ->setAttr(kDividedAttr, b.getI32IntegerAttr(*findDivided(store)));
  // Without sums the loop has got its terminator already.
  if (!next.empty())
    scf::YieldOp::create(inside, loc, next);
  for (auto [sum, result] : llvm::zip_equal(stage.sums, loop.getResults()))
    map.map(sum->getResult(0), result);
}

/// A loop that still has one iteration.
static scf::ForOp findUndivided(triton::FuncOp kernel) {
  for (auto loop : kernel.getBody().front().getOps<scf::ForOp>())
    if (matchPattern(loop.getUpperBound(), m_One()))
      return loop;
  return {};
}

triton::FuncOp DividedKernel::build(unsigned factor) {
  findShape();
  if (shape.empty() || shape[axis] % factor != 0 || failed(collect()))
    return {};
  auto divided = cast<triton::FuncOp>(kernel->cloneWithoutRegions());
  OpBuilder b(kernel);
  b.setInsertionPointAfter(kernel);
  b.insert(divided);
  Block *body = b.createBlock(&divided.getBody());
  for (BlockArgument argument : kernel.getArguments())
    map.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
  b.setInsertionPointToEnd(body);
  for (Stage &stage : stages)
    emit(stage, b);
  b.clone(*kernel.getBody().front().getTerminator());

  while (scf::ForOp loop = findUndivided(divided)) {
    triton::FuncOp next = narrowTiles(divided, loop, factor);
    divided.erase();
    if (!next)
      return {};
    divided = next;
  }
  return divided;
}

/// A kernel that goes over its tiles in pieces, if its tiles need that; null if
/// not, or if it cannot.
static triton::FuncOp divide(triton::FuncOp kernel) {
  double registers = countRegisters(kernel);
  if (registers <= kMostRegisters)
    return {};
  auto factor = static_cast<unsigned>(
      llvm::PowerOf2Ceil(std::ceil(registers / kRegistersOfPiece)));
  triton::FuncOp divided = DividedKernel(kernel).build(factor);
  if (divided && countRegisters(divided) > kMostRegisters) {
    divided.erase();
    return {};
  }
  return divided;
}

namespace {
struct DivideTiles : autodiff::impl::DivideTilesBase<DivideTiles> {
  void runOnOperation() override {
    for (triton::FuncOp kernel : getBackwards(getOperation()))
      if (triton::FuncOp divided = divide(kernel))
        kernel.erase();
  }
};
} // namespace
