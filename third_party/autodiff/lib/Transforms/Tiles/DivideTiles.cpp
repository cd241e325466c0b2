//===- DivideTiles.cpp - Programs go over their tiles in pieces -----------===//
#include "ResizeTiles.h"
#include "TileAxes.h"
#include "TileResizes.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/SharedMemory.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DIVIDETILES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("divide-tiles");

constexpr unsigned kMostPieces = 16;
/// How often a kernel is divided, by different blocks and axes.
constexpr int kMostTimes = 4;

static bool multiplies(triton::FuncOp kernel) {
  return kernel.walk([](triton::DotOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether a kernel with products has enough shared memory, without which it
/// cannot run, and any other enough registers, without which it is slow.
static bool fits(triton::FuncOp kernel) {
  const Target &target = Target::of(kernel);
  return multiplies(kernel)
             ? countSharedMemory(kernel) <= target.getSharedMemoryOfProducts()
             : countRegisters(kernel) <= target.getMostRegisters();
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

namespace {
/// The operations that go into one loop.
struct Stage {
  SmallVector<Operation *> sums;
  SmallVector<Operation *> stores;
  /// The operations that run once, before the loop.
  SmallVector<Operation *> before;
};

/// Cuts a block without control flow into stages. A stage comes behind the sums
/// that it uses, and all its operations go over related axes of tiles.
class DividedBlock {
public:
  DividedBlock(Block &block, const RelatedAxes &axes)
      : block(block), axes(axes) {}

  /// Puts each stage into a loop of one iteration.
  LogicalResult build();

private:
  void separate(triton::DotOp dot);
  LogicalResult collect();
  std::optional<unsigned> getAxis(Value value) const;
  std::optional<unsigned> getAxis(Operation *store) const;
  Value getFlattened(Value value) const;
  bool isSum(Operation *op) const;
  Stage &getStage(unsigned level);
  void emit(Stage &stage);
  Value addUp(OpBuilder &b, triton::ReduceOp sum);

  Block &block;
  const RelatedAxes &axes;
  SmallVector<Stage> stages;
};
} // namespace

/// The axis along which a value is divided, if it is.
std::optional<unsigned> DividedBlock::getAxis(Value value) const {
  auto known = axes.find(value);
  return known == axes.end() ? std::nullopt : std::optional(known->second);
}

std::optional<unsigned> DividedBlock::getAxis(Operation *store) const {
  for (Value operand : store->getOperands())
    if (std::optional<unsigned> axis = getAxis(operand))
      return axis;
  return std::nullopt;
}

/// The divided tile that `value` is a reshape of, in one row; or null.
Value DividedBlock::getFlattened(Value value) const {
  auto reshape = value.getDefiningOp<triton::ReshapeOp>();
  bool isFlat = reshape && getAxis(reshape.getSrc()) &&
                cast<RankedTensorType>(value.getType()).getRank() == 1;
  return isFlat ? reshape.getSrc() : Value();
}

/// Whether `op` adds up the pieces of a divided tile. Sums in half precision
/// would be rounded more often than before.
bool DividedBlock::isSum(Operation *op) const {
  auto isSummed = [&](OpOperand &use) {
    std::optional<unsigned> summed = triton::AxisMap::of(use)->getSummed();
    return summed && getAxis(use.get()) == summed;
  };
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return isa<Float32Type, Float64Type>(getElementTypeOrSelf(dot.getType())) &&
           llvm::any_of(op->getOpOperands(), isSummed);
  auto reduce = dyn_cast<triton::ReduceOp>(op);
  if (!reduce || op->getNumOperands() != 1 ||
      classifyCombiner(reduce.getCombineOp()) != Combiner::Sum)
    return false;
  return isSummed(op->getOpOperand(0)) || getFlattened(op->getOperand(0));
}

Stage &DividedBlock::getStage(unsigned level) {
  if (stages.size() <= level)
    stages.resize(level + 1);
  return stages[level];
}

/// Assigns operations to stages.
LogicalResult DividedBlock::collect() {
  llvm::DenseMap<Value, unsigned> levels;
  for (Operation &op : block.without_terminator()) {
    unsigned level = 0;
    for (Value operand : op.getOperands())
      level = std::max(level, levels.lookup(operand));
    if (TileResizes::isStore(&op) && getAxis(&op)) {
      getStage(level).stores.push_back(&op);
    } else if (isSum(&op)) {
      getStage(level).sums.push_back(&op);
      ++level;
    } else if ((op.getNumRegions() > 0 && !isa<triton::ReduceOp>(op)) ||
               (mayWrite(&op) && !TileResizes::isStore(&op))) {
      return failure();
    } else {
      getStage(level).before.push_back(&op);
    }
    for (Value result : op.getResults())
      levels[result] = level;
  }
  return success();
}

/// A sum over one iteration. The reduction along the divided axis comes last.
Value DividedBlock::addUp(OpBuilder &b, triton::ReduceOp sum) {
  Value source = sum->getOperand(0), tile = getFlattened(source);
  if (!tile)
    return reduceAs(b, sum, source, sum.getAxis());
  unsigned axis = *getAxis(tile);
  for (unsigned other = cast<RankedTensorType>(tile.getType()).getRank();
       other-- > 0;)
    if (other != axis)
      tile = reduceAs(b, sum, tile, other);
  return reduceAs(b, sum, tile, 0);
}

/// Emits a stage as a loop with one iteration, which narrowTiles() divides.
void DividedBlock::emit(Stage &stage) {
  Operation *end = block.getTerminator();
  for (Operation *op : stage.before)
    op->moveBefore(end);
  if (stage.sums.empty() && stage.stores.empty())
    return;
  OpBuilder b(end);
  Location loc = end->getLoc();
  SmallVector<Value> zeros;
  for (Operation *sum : stage.sums)
    zeros.push_back(constantOf(b, loc, sum->getResult(0).getType(), 0.0));
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  auto loop = scf::ForOp::create(b, loc, zero, one, one, zeros);
  loop->setAttr(kDividedAttr, b.getUnitAttr());
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  SmallVector<Value> next;
  for (auto [sum, carried, result] : llvm::zip_equal(
           stage.sums, loop.getRegionIterArgs(), loop.getResults())) {
    Value before = carried;
    if (mutation::isMade("divide-tiles:sum of the last piece"))
      before = constantOf(inside, loc, carried.getType(), 0.0);
    if (auto reduce = dyn_cast<triton::ReduceOp>(sum)) {
      Value piece = addUp(inside, reduce);
      next.push_back(arith::AddFOp::create(inside, loc, before, piece));
    } else {
      auto dot = cast<triton::DotOp>(inside.clone(*sum));
      dot.getCMutable().assign(before);
      next.push_back(dot);
    }
    sum->getResult(0).replaceAllUsesWith(result);
  }
  for (Operation *store : stage.stores) {
    store->setAttr(kDividedAttr, b.getI32IntegerAttr(*getAxis(store)));
    store->remove();
    inside.insert(store);
  }
  // A loop without carried values has its terminator already.
  if (!next.empty())
    scf::YieldOp::create(inside, loc, next);
  for (Operation *sum : stage.sums)
    sum->erase();
}

/// Rewrites A·B + C as a sum over pieces to which C is added, which may be
/// computed later.
void DividedBlock::separate(triton::DotOp dot) {
  if (matchPattern(dot.getC(), m_AnyZeroFloat()))
    return;
  OpBuilder b(dot);
  Value c = dot.getC();
  dot.getCMutable().assign(constantOf(b, dot.getLoc(), c.getType(), 0.0));
  b.setInsertionPointAfter(dot);
  auto added = arith::AddFOp::create(b, dot.getLoc(), c, dot.getResult());
  dot.getResult().replaceAllUsesExcept(added, added);
}

LogicalResult DividedBlock::build() {
  for (auto dot : llvm::make_early_inc_range(block.getOps<triton::DotOp>()))
    if (isSum(dot))
      separate(dot);
  if (failed(collect()))
    return failure();
  for (Stage &stage : stages)
    emit(stage);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Whether pieces of tiles may be loaded and stored in any order.
static bool isReorderable(triton::FuncOp kernel) {
  SmallVector<Operation *> accesses, stores;
  WalkResult walk = kernel.walk([&](Operation *op) {
    if (op->getNumRegions() > 0)
      return WalkResult::advance();
    if (mayWrite(op) && !TileResizes::isStore(op))
      return WalkResult::interrupt();
    if (TileResizes::isStore(op))
      stores.push_back(op);
    if (TileResizes::isStore(op) || isa<triton::LoadOp>(op))
      accesses.push_back(op);
    return WalkResult::advance();
  });
  return !walk.wasInterrupted() && llvm::none_of(stores, [&](Operation *store) {
    return llvm::any_of(accesses, [&](Operation *other) {
      return other != store &&
             mayAlias(getAccessedPointer(store), getAccessedPointer(other));
    });
  });
}

/// The longest axis of the largest tiles that a block loads or stores, with all
/// related axes; empty if a tile has two of these axes.
static RelatedAxes findLongest(Block &block) {
  ArrayRef<int64_t> shape;
  int64_t most = 0;
  for (Operation &op : block)
    if (Value pointer = getAccessedPointer(&op))
      if (auto tile = dyn_cast<RankedTensorType>(pointer.getType());
          tile && tile.getNumElements() > most) {
        most = tile.getNumElements();
        shape = tile.getShape();
      }
  unsigned longest = llvm::max_element(shape) - shape.begin();
  RelatedAxes found;
  for (RelatedAxes &axes : collectRelatedAxes(block)) {
    bool isLongest = llvm::any_of(axes, [&](auto &entry) {
      auto tile = cast<RankedTensorType>(entry.first.getType());
      return tile.getShape() == shape && entry.second == longest;
    });
    for (auto [value, axis] : axes)
      if (isLongest && !found.try_emplace(value, axis).second)
        return {};
  }
  return found;
}

/// The blocks that may be divided; in a kernel with products, those that
/// contain products.
static SmallVector<Block *> collectBlocks(triton::FuncOp kernel) {
  SmallVector<Block *> blocks{&kernel.getBody().front()};
  if (!multiplies(kernel))
    return blocks;
  kernel.walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
  llvm::erase_if(blocks, [](Block *block) {
    return block->getOps<triton::DotOp>().empty();
  });
  return blocks;
}

static SmallVector<RelatedAxes> collectCandidates(Block &block) {
  if (block.getOps<triton::DotOp>().empty())
    return {findLongest(block)};
  return collectRelatedAxes(block);
}

/// A loop that still has one iteration.
static scf::ForOp findUndivided(triton::FuncOp kernel) {
  scf::ForOp found;
  kernel.walk([&](scf::ForOp loop) {
    if (loop->hasAttr(kDividedAttr))
      found = loop;
  });
  return found;
}

/// A copy of `kernel` in which a block goes over tiles in pieces along one of
/// its candidates; null if that is impossible.
static triton::FuncOp divide(triton::FuncOp kernel, unsigned block,
                             unsigned candidate, unsigned factor) {
  OpBuilder b(kernel);
  b.setInsertionPointAfter(kernel);
  auto divided = cast<triton::FuncOp>(b.clone(*kernel));
  auto giveUp = [&] {
    divided.erase();
    return triton::FuncOp();
  };
  Block &body = *collectBlocks(divided)[block];
  RelatedAxes axes = collectCandidates(body)[candidate];
  int64_t length = getLength(axes);
  int64_t shortest = multiplies(kernel) ? Target::kShortestPiece : 1;
  if (length % factor != 0 || length / factor < shortest ||
      failed(DividedBlock(body, axes).build()))
    return giveUp();
  while (scf::ForOp loop = findUndivided(divided)) {
    triton::FuncOp next = narrowTiles(divided, loop, factor);
    divided.erase();
    if (!next)
      return {};
    divided = next;
  }
  return divided;
}

/// The shared memory of products at a time, and of all products.
static std::pair<double, double> sizeProducts(triton::FuncOp kernel) {
  double all = 0;
  kernel.walk([&](triton::DotOp dot) {
    for (Value operand : dot.getOperands())
      all += bytesOf(operand.getType());
  });
  return {countSharedMemory(kernel), all};
}

/// The copy in so many pieces whose products need the least shared memory, if
/// that is less than in `kernel`; else null.
static triton::FuncOp divideForProducts(triton::FuncOp kernel,
                                        unsigned factor) {
  triton::FuncOp best;
  for (auto [number, block] : llvm::enumerate(collectBlocks(kernel))) {
    unsigned candidates = collectCandidates(*block).size();
    for (unsigned candidate = 0; candidate < candidates; ++candidate) {
      triton::FuncOp divided = divide(kernel, number, candidate, factor);
      if (!divided)
        continue;
      if (sizeProducts(divided) < sizeProducts(best ? best : kernel))
        std::swap(best, divided);
      if (divided)
        divided.erase();
    }
  }
  return best;
}

static triton::FuncOp divideForProducts(triton::FuncOp kernel, int times);

/// Divides along the axis that saves most, and then along others.
static triton::FuncOp divideAgain(triton::FuncOp kernel, int times) {
  triton::FuncOp best;
  for (unsigned factor = 2; factor <= kMostPieces; factor *= 2) {
    triton::FuncOp divided = divideForProducts(kernel, factor);
    if (divided && (!best || sizeProducts(divided) < sizeProducts(best)))
      std::swap(best, divided);
    if (divided)
      divided.erase();
  }
  if (!best)
    return {};
  triton::FuncOp divided = divideForProducts(best, times - 1);
  if (!divided)
    return best;
  best.erase();
  return divided;
}

/// The copy that fits with the fewest pieces along one axis, or along several
/// axes, `times` at most. If none fits, one that needs less, since the estimate
/// may be too high; null if there is none.
static triton::FuncOp divideForProducts(triton::FuncOp kernel, int times) {
  if (times == 0)
    return {};
  for (unsigned factor = 2; factor <= kMostPieces; factor *= 2) {
    triton::FuncOp divided = divideForProducts(kernel, factor);
    if (divided && fits(divided))
      return divided;
    if (divided)
      divided.erase();
  }
  return divideAgain(kernel, times);
}

/// A kernel that goes over its tiles in pieces, if its tiles do not fit; null
/// otherwise, or if that is impossible.
static triton::FuncOp divide(triton::FuncOp kernel) {
  if (fits(kernel) || !isReorderable(kernel))
    return {};
  if (multiplies(kernel))
    return divideForProducts(kernel, kMostTimes);
  unsigned factor = llvm::PowerOf2Ceil(std::ceil(
      countRegisters(kernel) / Target::of(kernel).getRegistersOfPiece()));
  triton::FuncOp divided = divide(kernel, /*block=*/0, /*candidate=*/0, factor);
  if (divided && !fits(divided)) {
    divided.erase();
    return {};
  }
  return divided;
}

/// The memory or registers that tiles need, and that there are, in words.
static Reason spellNeed(triton::FuncOp kernel) {
  const Target &target = Target::of(kernel);
  if (multiplies(kernel))
    return because(kernel, "{0} bytes of shared memory, of which there are {1}",
                   countSharedMemory(kernel),
                   target.getSharedMemoryOfProducts());
  return because(kernel, "{0} registers, of which there are {1}",
                 countRegisters(kernel), target.getMostRegisters());
}

namespace {
struct DivideTiles : autodiff::impl::DivideTilesBase<DivideTiles> {
  void runOnOperation() override {
    for (triton::FuncOp kernel : getBackwards(getOperation()))
      if (triton::FuncOp divided = divide(kernel)) {
        kRemarks.passed(kernel, "tiles are gone over in pieces: they need {0}",
                        spellNeed(kernel));
        kernel.erase();
      } else if (wantsReasons(&getContext()) && !fits(kernel)) {
        kRemarks.missed(
            kernel,
            isReorderable(kernel)
                ? "tiles need {0}, and have no axis along which pieces "
                  "fit, or add up"
                : "tiles need {0}, but what the kernel does to memory "
                  "has an order",
            spellNeed(kernel));
      }
  }
};
} // namespace
