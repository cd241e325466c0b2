//===- BatchLoops.cpp - Iterations that become an axis of tiles -----------===//
//
// A row that is longer than a tile is read in several loops, one for each
// number that the next loop needs: the mean, the variance, the result. A
// program with the whole row in one tile reads it once, and so does its
// derivative. Only a launch knows how long a row is: if it is short enough, the
// host requests another plan.
//
//===----------------------------------------------------------------------===//
#include "BatchedLoop.h"
#include "Independence.h"
#include "RepeatedLoads.h"
#include "Softmax/FreeMaxima.h"
#include "Softmax/Maxima.h"
#include "Softmax/Reframing.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Decisions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Cleanup.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_BATCHLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("batch-loops");

namespace {
/// The loops of a kernel over a row, all with the same number of iterations.
class Row {
public:
  static ReasonOr<Row> match(triton::FuncOp kernel);

  /// Whether loops read what earlier ones have read or stored.
  bool isReadAgain();
  int64_t getMostIterations();
  /// Why it does not pay; none if it does.
  Obstacle findCost(bool always);
  /// Tries an axis, and returns what the plan offers; fails if it is not
  /// possible.
  ReasonOr<BatchAttr> offer();
  /// Makes an axis of that length, and adds what a launch has to check; or says
  /// why that is not possible.
  Obstacle batch(int64_t length, RearrangedLaunch &launch);

private:
  explicit Row(triton::FuncOp kernel) : kernel(kernel) {}
  /// A maximum for which it may matter how ties share the derivative.
  Obstacle findTie() const;
  bool isExact() const {
    return llvm::any_of(loops, std::mem_fn(&BatchedLoop::isExact));
  }
  const ScalarExpr &getTrips() const { return loops.front().getTrips(); }
  /// Whether several programs may load the same elements, whose gradients then
  /// are sums over these programs.
  bool hasSharedLoads();
  ArrayAttr getPositions();
  /// Numbers that must not be negative for an axis of this length.
  SmallVector<ScalarExpr> getAssumed(int64_t length) const;
  /// Makes the axis; returns the checks of stores. Fails if these are not
  /// possible, or a value would have to be saved.
  ReasonOr<SmallVector<CheckAttr>> putOnAxis(int64_t length);

  triton::FuncOp kernel;
  SmallVector<BatchedLoop, 0> loops;
};

struct BatchLoops : autodiff::impl::BatchLoopsBase<BatchLoops> {
  using BatchLoopsBase::BatchLoopsBase;
  LogicalResult reframe(triton::FuncOp kernel);
  void transform() override;
};
} // namespace

ReasonOr<Row> Row::match(triton::FuncOp kernel) {
  Row row(kernel);
  Reason why;
  WalkResult walk = kernel.walk([&](LoopLikeOpInterface op) {
    auto loop = dyn_cast<scf::ForOp>(op.getOperation());
    ReasonOr<BatchedLoop> found = std::nullopt;
    if (loop && loop->getParentOp() == kernel)
      found = BatchedLoop::match(loop);
    why = because(kernel, "the loop at {0} cannot be one tile: {1}",
                  op.getOperation(), found.why());
    if (!found)
      return WalkResult::interrupt();
    why =
        because(kernel, "the loops at {0} and {1} do not run equally often",
                row.loops.empty() ? op.getOperation()
                                  : row.loops.front().getLoop().getOperation(),
                op.getOperation());
    if (!row.loops.empty() &&
        !(row.loops.front().getTrips() == found->getTrips()))
      return WalkResult::interrupt();
    row.loops.push_back(std::move(*found));
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return why;
  if (row.loops.empty())
    return because(kernel, "it has no loops");
  if (Obstacle tie = row.findTie())
    return *tie;
  return row;
}

Obstacle Row::findTie() const {
  SmallVector<Value> maxima;
  triton::FuncOp(kernel).walk([&](Operation *op) {
    llvm::copy_if(op->getResults(), std::back_inserter(maxima),
                  [](Value v) { return isFloat(v.getType()) && isMaximum(v); });
  });
  maxima = findFreeMaxima(kernel, std::move(maxima));
  for (const BatchedLoop &loop : loops)
    for (Value selected : loop.getSelected())
      if (!llvm::is_contained(maxima, selected))
        return because(
            selected,
            "the loop at {0} takes a maximum or minimum that outputs "
            "depend on: iterations would divide the gradient of equal "
            "elements otherwise",
            loop.getLoop());
  return std::nullopt;
}

bool Row::isReadAgain() {
  DenseSet<Value> touched;
  bool isAgain = false;
  for (BatchedLoop &loop : loops) {
    SmallVector<Value> accessed;
    loop.getLoop().walk([&](Operation *op) {
      if (!isa<triton::LoadOp, triton::StoreOp>(op))
        return;
      accessed.push_back(getBaseArgument(getAccessedPointer(op)));
      isAgain |= isa<triton::LoadOp>(op) && touched.contains(accessed.back());
    });
    touched.insert(accessed.begin(), accessed.end());
    touched.erase(Value());
  }
  return isAgain;
}

bool Row::hasSharedLoads() {
  SmallVector<ScalarExpr> digits = findProgramDigits(kernel);
  WalkResult walk = kernel.walk([&](triton::LoadOp load) {
    if (!isFloat(load.getType()))
      return WalkResult::advance();
    std::optional<AccessSpace> space = AccessSpace::of(load);
    bool isOwn =
        space && findUnmentioned(digits, space->getProgramDigits()).empty();
    return isOwn ? WalkResult::advance() : WalkResult::interrupt();
  });
  return walk.wasInterrupted();
}

int64_t Row::getMostIterations() {
  int64_t largest = 1;
  for (const BatchedLoop &loop : loops)
    largest = std::max(largest, loop.getLargestTile());
  return Target::of(kernel).getLongestRow(hasSharedLoads()) / largest;
}

ArrayAttr Row::getPositions() {
  Builder b(kernel.getContext());
  SmallVector<Attribute> positions;
  for (BatchedLoop &loop : loops)
    positions.push_back(
        b.getStringAttr(spellPosition(loop.getLoop().getLoc())));
  return b.getArrayAttr(positions);
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

/// Whether a value would have to be saved: a decision (Decisions.h), or a load
/// from memory that the kernel may have written.
static bool hasToSave(triton::FuncOp kernel) {
  SmallVector<Value> loaded, written;
  kernel.walk([&](Operation *op) {
    if (Value pointer = getAccessedPointer(op))
      (mayWrite(op) ? written : loaded).push_back(pointer);
  });
  return mayAlias(loaded, written) || !findDecisions(kernel).empty();
}

ReasonOr<SmallVector<CheckAttr>> Row::putOnAxis(int64_t length) {
  SmallVector<triton::StoreOp> stores;
  for (BatchedLoop &loop : loops)
    llvm::append_range(stores, loop.batch(length));
  dropRepeatedLoads(kernel, stores);
  if (hasToSave(kernel))
    return because(kernel, "the kernel loads what it stores elsewhere, or "
                           "decides by floats that it computes");
  return checkStores(stores);
}

Obstacle Row::findCost(bool always) {
  if (!always && !isReadAgain())
    return because(kernel,
                   "no loop reads what an earlier one has read or stored");
  if (getMostIterations() < 1)
    return because(kernel,
                   "tiles have more elements, for one iteration, than a "
                   "row may have: {0}",
                   Target::of(kernel).getLongestRow(hasSharedLoads()));
  return std::nullopt;
}

ReasonOr<BatchAttr> Row::offer() {
  MLIRContext *context = kernel.getContext();
  BatchAttr offer = BatchAttr::get(context, getTrips().get(context),
                                   getMostIterations(), isExact());
  if (ReasonOr<SmallVector<CheckAttr>> checks = putOnAxis(/*length=*/1);
      !checks)
    return checks.why();
  return offer;
}

Obstacle Row::batch(int64_t length, RearrangedLaunch &launch) {
  launch.assume(getAssumed(length));
  launch.length = length;
  launch.batched = getPositions();
  ReasonOr<SmallVector<CheckAttr>> checks = putOnAxis(length);
  if (!checks)
    return checks.why();
  llvm::append_range(launch.checks, *checks);
  return std::nullopt;
}

/// Whether there are loops, and each may be over a row: it is not inside of
/// another one, and has no matrix products.
static bool mayHaveRow(triton::FuncOp kernel) {
  bool hasLoops = false;
  Operation *other = nullptr;
  WalkResult walk = kernel.walk([&](Operation *op) {
    if (!isa<LoopLikeOpInterface, triton::DotOp>(op))
      return WalkResult::advance();
    hasLoops |= !isa<triton::DotOp>(op);
    bool isOutside = op->getParentOp() == kernel;
    other = isOutside ? other : op;
    return isOutside ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (hasLoops && other)
    kRemarks.missed(other, isa<triton::DotOp>(other)
                               ? "a loop multiplies matrices"
                               : "a loop is inside of another one");
  return hasLoops && !walk.wasInterrupted();
}

/// Makes loops with running maxima use the final ones: each becomes a loop for
/// the maximum and a loop for the sums.
LogicalResult BatchLoops::reframe(triton::FuncOp kernel) {
  Reframing reframing;
  bool isReframed = false;
  for (scf::ForOp loop : llvm::to_vector(kernel.getOps<scf::ForOp>()))
    isReframed |= reframing.rewrite(loop, [](const RescaledLoop &found) {
      return found.loop->getResult(found.maximum);
    });
  if (!isReframed)
    return success();
  OpPassManager clean(triton::FuncOp::getOperationName());
  addCleanup(clean);
  return runPipeline(clean, kernel);
}

void BatchLoops::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  if (primal->hasAttr(kOrderedAttr) || !mayHaveRow(primal))
    return;
  OpBuilder b(primal);
  auto kernel = cast<triton::FuncOp>(b.clone(*primal));
  if (failed(reframe(kernel)))
    return signalPassFailure();
  ReasonOr<Row> row = Row::match(kernel);
  Obstacle why = row ? row->findCost(always) : Obstacle(row.why());
  Location loc = kernel.getOps<scf::ForOp>().empty()
                     ? kernel.getLoc()
                     : (*kernel.getOps<scf::ForOp>().begin()).getLoc();
  RearrangedLaunch launch = RearrangedLaunch::of(module);
  std::optional<BatchAttr> offered;
  if (!why && length) {
    why = row->batch(length, launch);
  } else if (!why) {
    ReasonOr<BatchAttr> offer = row->offer();
    if (offer)
      offered = *offer;
    else
      why = offer.why();
  }
  if (why) {
    kRemarks.missed({kernel, loc}, *why);
    return kernel.erase();
  }
  if (offered) {
    kRemarks.passed({kernel, loc},
                    "offered: a launch decides how long the axis of all "
                    "iterations is");
    PlanOp::getOrCreate(module).add<OfferOp>(*offered);
    return kernel.erase();
  }
  kRemarks.passed({kernel, loc}, "all iterations are on an axis of {0}",
                  int64_t(length));
  primal.erase();
  launch.record(module);
}
