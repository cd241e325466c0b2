//===- SpreadLoops.cpp - Iterations that become programs ------------------===//
//
// A few programs may go through many rows or tiles. Each starts at its own
// number, and advances by the number of programs:
//
//   for (i = program · block; i < n; i += programs · block) …
//
// If no iteration depends on another, n/block programs without the loop do the
// same. The backward is derived from those: their addresses are sums over the
// grid, as in other kernels.
//
//===----------------------------------------------------------------------===//
#include "Independence.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPREADLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("spread-loops");

namespace {
/// A loop over i, starting at a program's number, that is all that a kernel
/// does.
class GridStride {
public:
  static std::optional<GridStride> match(triton::FuncOp kernel);

  /// Removes the loop, so that i is the program's number. Fails if the rest
  /// needs the number, or the number of programs, in another way.
  Obstacle spread();
  /// The grid of the n programs, and numbers that must not be negative so that
  /// each iteration runs once: expressions over a launch of the kernel.
  SmallVector<ExprAttr> getGrid();
  SmallVector<ScalarExpr> getAssumed();
  Location getLoc() { return loop.getLoc(); }
  std::string getPosition() { return spellPosition(getLoc()); }

private:
  GridStride(scf::ForOp loop, unsigned axis, ScalarExpr end, ScalarExpr step)
      : loop(loop), axis(axis), end(end), step(step) {}

  static ReasonOr<GridStride> match(scf::ForOp loop);
  Obstacle findObstacle(triton::FuncOp kernel);

  bool isCounter(size_t index);
  Value repeat(OpBuilder &b, Value value, Value number) const;

  scf::ForOp loop;
  unsigned axis;
  /// In units of blocks.
  ScalarExpr end, step;
};

struct SpreadLoops : autodiff::impl::SpreadLoopsBase<SpreadLoops> {
  void transform() override;
};
} // namespace

/// Whether an operation is the program id, or the number of programs, along an
/// axis.
template <typename OpT> static bool asksFor(Operation *op, unsigned axis) {
  auto asking = dyn_cast<OpT>(op);
  return asking && asking.getAxisAsInt() == static_cast<int>(axis);
}

/// Whether a carried value is the same function of i in all programs: its
/// initial value depends on the program's number as it advances with i.
bool GridStride::isCounter(size_t index) {
  Value init = loop.getInits()[index];
  Value carried = loop.getRegionIterArgs()[index];
  Operation *sum = loop.getYieldedValues()[index].getDefiningOp();
  std::optional<LinearForm> form = LinearForm::of(init);
  if (!form || !isa_and_nonnull<arith::AddIOp, triton::AddPtrOp>(sum) ||
      !llvm::is_contained(sum->getOperands(), carried))
    return false;
  ScalarExpr number = ScalarExpr::programId(loop.getContext(), axis);
  ScalarExpr slope = ScalarExpr::constant(0);
  for (const LinearForm::Term &term : form->terms) {
    const std::optional<ScalarExpr> &digit = term.dimension.digit;
    if (digit && *digit == number)
      slope = term.coefficient;
    else if (digit && digit->mentionsAxis(axis))
      return false;
  }
  std::optional<LinearForm> added =
      LinearForm::of(sum->getOperand(sum->getOperand(0) == carried));
  return added && added->isConstant() &&
         (added->constant == slope * step || added->constant == step * slope);
}

ReasonOr<GridStride> GridStride::match(scf::ForOp loop) {
  auto start = ScalarExpr::of(loop.getLowerBound());
  auto end = ScalarExpr::of(loop.getUpperBound());
  auto step = ScalarExpr::of(loop.getStep());
  if (!start || !end || !step)
    return because(loop, "a launch does not know its bounds");
  if (end->dependsOnProgramId() || step->dependsOnProgramId())
    return because(loop, "its end or step depends on the program: {0} and {1}",
                   *end, *step);
  if (loop.getUnsignedCmp())
    return because(loop, "it compares unsigned numbers");
  if (!loop->use_empty())
    return because(loop, "what it computes is used behind it");
  auto [number, length] = start->asMultiple();
  if (!number.isProgramId() || length <= 0)
    return because(
        loop, "it starts at {0}, which is no multiple of a program id", *start);
  ScalarExpr block = ScalarExpr::constant(length);
  std::optional<ScalarExpr> blocks = step->dividedBy(block);
  if (!blocks)
    return because(loop,
                   "it starts at multiples of {0}, and its step, {1}, is "
                   "none",
                   length, *step);
  ScalarExpr count = ScalarExpr::binary(ScalarExpr::Kind::CeilDiv, *end, block);
  return GridStride(loop, number.getAxis(), count, *blocks);
}

std::optional<GridStride> GridStride::match(triton::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  for (auto loop : kernel.getOps<scf::ForOp>()) {
    ReasonOr<GridStride> found = match(loop);
    Obstacle why = found ? found->findObstacle(kernel) : found.why();
    if (!why)
      return found;
    // Other loops are not over the grid.
    auto start = ScalarExpr::of(loop.getLowerBound());
    if (start && start->dependsOnProgramId())
      kRemarks.missed(loop, *why);
  }
  return std::nullopt;
}

Obstacle GridStride::findObstacle(triton::FuncOp kernel) {
  for (size_t index : llvm::seq(loop.getInits().size()))
    if (!isCounter(index))
      return because(loop,
                     "iterations go on with what the ones before have left "
                     "at {0}",
                     loop.getYieldedValues()[index].getLoc());
  return findDependence(loop, kernel);
}

/// Clones a value for another number of the program.
Value GridStride::repeat(OpBuilder &b, Value value, Value number) const {
  IRMapping map;
  return recompute(b, value, map, [&](Value each) {
    Operation *op = each.getDefiningOp();
    if (!op)
      return Elsewhere::Known;
    if (!asksFor<triton::GetProgramIdOp>(op, axis))
      return Elsewhere::Computed;
    map.map(each, number);
    return Elsewhere::Known;
  });
}

Obstacle GridStride::spread() {
  auto kernel = loop->getParentOfType<triton::FuncOp>();
  OpBuilder b(loop);
  auto number = triton::GetProgramIdOp::create(b, loop.getLoc(), axis);
  for (auto [carried, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInits()))
    carried.replaceAllUsesWith(repeat(b, init, number));
  loop.getInductionVar().replaceAllUsesWith(
      repeat(b, loop.getLowerBound(), number));
  for (Operation &op :
       llvm::make_early_inc_range(loop.getBody()->without_terminator()))
    op.moveBefore(loop);
  loop.erase();

  IRRewriter rewriter(kernel.getContext());
  (void)runRegionDCE(rewriter, kernel->getRegions());
  Operation *asking = nullptr;
  kernel.walk([&](Operation *op) {
    if ((op != number && asksFor<triton::GetProgramIdOp>(op, axis)) ||
        asksFor<triton::GetNumProgramsOp>(op, axis))
      asking = op;
    return WalkResult(failure(asking));
  });
  if (asking)
    return because(asking,
                   "the kernel asks for the program's number, or for how "
                   "many there are, at {0}, too",
                   asking);
  return std::nullopt;
}

SmallVector<ExprAttr> GridStride::getGrid() {
  MLIRContext *context = loop.getContext();
  SmallVector<ExprAttr> grid;
  for (unsigned other = 0; other < 3; ++other)
    grid.push_back(gridOf(context, other));
  ScalarExpr none = ScalarExpr::constant(0);
  grid[axis] =
      ScalarExpr::binary(ScalarExpr::Kind::Max, end, none).get(context);
  return grid;
}

/// The numbers 0 … n − 1 are p + k · step for exactly one program p and one k ≥
/// 0, if there are as many programs as a step; or if n is at most both.
SmallVector<ScalarExpr> GridStride::getAssumed() {
  using Kind = ScalarExpr::Kind;
  ScalarExpr programs = ScalarExpr::grid(loop.getContext(), axis);
  int64_t limit = Target::getMostPrograms(axis);
  SmallVector<ScalarExpr> assumed{programs - ScalarExpr::constant(1),
                                  ScalarExpr::constant(limit) - end};
  if (step == programs)
    return assumed;
  ScalarExpr spare = ScalarExpr::binary(Kind::Min, step, programs) - end;
  ScalarExpr apart = ScalarExpr::binary(Kind::Min, step - programs,
                                        programs - step); // −|step − programs|
  assumed.push_back(ScalarExpr::binary(Kind::Max, apart, spare));
  return assumed;
}

void SpreadLoops::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  OpBuilder b(primal);
  auto kernel = cast<triton::FuncOp>(b.clone(*primal));
  std::optional<GridStride> loop = GridStride::match(kernel);
  if (!loop)
    return kernel.erase();
  RearrangedLaunch launch;
  launch.grid = loop->getGrid();
  launch.assume(loop->getAssumed());
  launch.position = b.getStringAttr(loop->getPosition());
  ReasonOr<SmallVector<CheckAttr>> checks = std::nullopt;
  Location loc = loop->getLoc();
  if (Obstacle why = loop->spread())
    checks = *why;
  else
    checks = checkStores(collectStores(kernel));
  if (!checks) {
    kRemarks.missed({kernel, loc}, checks.why());
    return kernel.erase();
  }
  kRemarks.passed({kernel, loc}, "each of its iterations is a program");
  primal.erase();
  launch.checks = std::move(*checks);
  launch.record(module);
}
