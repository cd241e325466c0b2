//===- BatchLoops.cpp - Iterations that become an axis of tiles -----------===//
//
// A row that is longer than a tile is read in loops, once for each number that
// the next loop needs: the mean, the variance, the result. A program with all
// of a row in one tile reads it once, and so does its derivative. How long a
// row is, only a launch can tell: the host asks again if it is short enough.
//
//===----------------------------------------------------------------------===//
#include "BatchedLoop.h"
#include "Independence.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_BATCHLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

// Measured on an H100 (docs/performance.md): of norms, registers hold a tile of
// so many elements beside its gradient and two sums; twice as many spill.
constexpr int64_t kMostElements = 8192;

namespace {
/// The loops of a kernel, which all have as many iterations.
class Row {
public:
  static std::optional<Row> match(triton::FuncOp kernel);

  /// Whether loops read what others have read.
  bool isReadAgain();
  Array getPositions();
  int64_t getMostIterations() const;
  /// What the plan offers.
  Object getOffer();
  /// Numbers that must not be negative if the axis is to be as long as that.
  SmallVector<ScalarExpr> getAssumed(int64_t length) const;
  /// Puts the iterations on an axis. Returns the stores among them.
  SmallVector<triton::StoreOp> batch(int64_t length);

private:
  explicit Row(triton::FuncOp kernel) : kernel(kernel) {}
  bool isExact() const {
    return llvm::any_of(loops, std::mem_fn(&BatchedLoop::isExact));
  }
  const ScalarExpr &getTrips() const { return loops.front().getTrips(); }

  triton::FuncOp kernel;
  SmallVector<BatchedLoop, 0> loops;
};

struct BatchLoops : autodiff::impl::BatchLoopsBase<BatchLoops> {
  using BatchLoopsBase::BatchLoopsBase;
  void runOnOperation() override;
};
} // namespace

std::optional<Row> Row::match(triton::FuncOp kernel) {
  Row row(kernel);
  WalkResult walk = kernel.walk([&](LoopLikeOpInterface op) {
    auto loop = dyn_cast<scf::ForOp>(op.getOperation());
    std::optional<BatchedLoop> found;
    if (loop && loop->getParentOp() == kernel)
      found = BatchedLoop::match(loop);
    if (!found || (!row.loops.empty() &&
                   !(row.loops.front().getTrips() == found->getTrips())))
      return WalkResult::interrupt();
    row.loops.push_back(std::move(*found));
    return WalkResult::advance();
  });
  if (walk.wasInterrupted() || row.loops.empty())
    return std::nullopt;
  return row;
}

bool Row::isReadAgain() {
  llvm::MapVector<Value, unsigned> readers;
  for (BatchedLoop &loop : loops) {
    llvm::SmallSetVector<Value, 4> read;
    loop.getLoop().walk([&](triton::LoadOp load) {
      read.insert(getBaseArgument(load.getPtr()));
    });
    for (Value argument : read)
      ++readers[argument];
  }
  readers.erase(Value());
  return llvm::any_of(readers, [](auto &entry) { return entry.second > 1; });
}

int64_t Row::getMostIterations() const {
  int64_t largest = 1;
  for (const BatchedLoop &loop : loops)
    largest = std::max(largest, loop.getLargestTile());
  return kMostElements / largest;
}

Array Row::getPositions() {
  Array positions;
  for (BatchedLoop &loop : loops)
    positions.push_back(spellPosition(loop.getLoop().getLoc()));
  return positions;
}

Object Row::getOffer() {
  return Object{{"trips", getTrips().toJSON()},
                {"most", getMostIterations()},
                {"exact", isExact()}};
}

SmallVector<ScalarExpr> Row::getAssumed(int64_t length) const {
  ScalarExpr one = ScalarExpr::constant(1), all = ScalarExpr::constant(length);
  ScalarExpr most = ScalarExpr::constant(std::numeric_limits<int32_t>::max());
  SmallVector<ScalarExpr> assumed{all - getTrips(),
                                  getTrips() - (isExact() ? all : one)};
  for (const BatchedLoop &loop : loops)
    assumed.push_back(most - loop.getIndexAt(length));
  llvm::erase_if(
      assumed, [](const ScalarExpr &number) { return number.isNotNegative(); });
  return assumed;
}

/// Takes one load for those of the same addresses that nothing is written to.
static void shareLoads(triton::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  SmallVector<Value> written;
  kernel.walk([&](Operation *op) {
    if (Value pointer = getAccessedPointer(op); pointer && mayWrite(op))
      written.push_back(pointer);
  });
  auto isConstant = [&](triton::LoadOp load) {
    return !load.getIsVolatile() && llvm::none_of(written, [&](Value pointer) {
      return mayAlias(pointer, load.getPtr());
    });
  };
  SmallVector<triton::LoadOp> kept;
  for (auto load :
       llvm::make_early_inc_range(kernel.getOps<triton::LoadOp>())) {
    auto same = llvm::find_if(kept, [&](triton::LoadOp other) {
      return llvm::equal(load->getOperands(), other->getOperands());
    });
    if (same != kept.end())
      rewriter.replaceOp(load, *same);
    else if (isConstant(load))
      kept.push_back(load);
  }
}

SmallVector<triton::StoreOp> Row::batch(int64_t length) {
  SmallVector<triton::StoreOp> stores;
  for (BatchedLoop &loop : loops)
    llvm::append_range(stores, loop.batch(length));
  shareLoads(kernel);
  return stores;
}

void BatchLoops::runOnOperation() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  if (!primal || primal->hasAttr(kOrderedAttr) ||
      !primal.getBody().hasOneBlock())
    return;
  OpBuilder b(primal);
  auto kernel = cast<triton::FuncOp>(b.clone(*primal));
  std::optional<Row> row = Row::match(kernel);
  if (!row || !(always || row->isReadAgain()) || row->getMostIterations() < 1)
    return kernel.erase();
  if (length == 0) {
    module->setAttr(kBatchAttr, toAttribute(&getContext(), row->getOffer()));
    return kernel.erase();
  }
  Object launch = getLaunch(module);
  for (const ScalarExpr &number : row->getAssumed(length))
    launch.getArray("assumed")->push_back(number.toJSON());
  launch["batch"] =
      Object{{"length", length.getValue()}, {"positions", row->getPositions()}};
  std::optional<Array> checks = checkStores(row->batch(length));
  if (!checks)
    return kernel.erase();
  llvm::append_range(*launch.getArray("checks"), *checks);
  primal.erase();
  module->setAttr(kLaunchAttr, toAttribute(&getContext(), std::move(launch)));
}
