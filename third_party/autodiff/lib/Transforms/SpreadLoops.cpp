//===- SpreadLoops.cpp - Iterations that become programs ------------------===//
//
// Few programs go through many rows or tiles, each beginning with its own
// number and advancing by how many they are:
//
//   for (i = program; i < n; i += programs) …
//
// Where an iteration needs nothing of another one, the kernel does what n
// programs without the loop do. All that is derived is derived from those:
// their addresses are sums over the grid, as those of other kernels are.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPREADLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

namespace {
/// A loop over i from a program's number that does all that a kernel does.
class GridStride {
public:
  static std::optional<GridStride> match(triton::FuncOp kernel);

  /// Takes the loop away: i is the program's number.
  void spread();
  /// The grid of the n programs, and what must not be negative for them to run
  /// each iteration once: expressions over a launch of the kernel.
  Array getGrid() const;
  Array getAssumed() const;
  std::string getPosition() { return spellPosition(loop.getLoc()); }

private:
  GridStride(scf::ForOp loop, unsigned axis, ScalarExpr end, ScalarExpr step)
      : loop(loop), axis(axis), end(end), step(step) {}

  bool dependsOnPrograms(Value value) const;
  bool isUniform();
  bool findCounters();

  scf::ForOp loop;
  unsigned axis;
  ScalarExpr end, step;
  /// What carried integers are more than i.
  SmallVector<ScalarExpr> counters;
};

struct SpreadLoops : autodiff::impl::SpreadLoopsBase<SpreadLoops> {
  void runOnOperation() override;
};
} // namespace

/// Whether an atomic addition hands on nothing of what others have added.
static bool isBlindSum(triton::AtomicRMWOp atomic) {
  return (atomic.getAtomicRmwOp() == triton::RMWOp::ADD ||
          atomic.getAtomicRmwOp() == triton::RMWOp::FADD) &&
         atomic->use_empty();
}

/// Whether iterations may run in any order, those of one program, too, if no
/// two of them store to the same element: they only load from arguments that
/// nothing is written to, and to each other one they either store or add.
static bool areIndependent(scf::ForOp loop) {
  SmallVector<Value> loaded, stored, added;
  WalkResult walk = loop->getParentOp()->walk([&](Operation *op) {
    auto load = dyn_cast<triton::LoadOp>(op);
    auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
    bool isInside = loop->isProperAncestor(op);
    if (load && !load.getIsVolatile())
      loaded.push_back(load.getPtr());
    else if (isa<triton::StoreOp>(op) && isInside)
      stored.push_back(op->getOperand(0));
    else if (atomic && isInside && isBlindSum(atomic))
      added.push_back(atomic.getPtr());
    else if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
             !op->hasTrait<OpTrait::IsTerminator>() &&
             !isa<triton::FuncOp>(op) && !isMemoryEffectFree(op))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  auto meet = [](ArrayRef<Value> some, ArrayRef<Value> others) {
    return llvm::any_of(some, [&](Value pointer) {
      return llvm::any_of(
          others, [&](Value other) { return mayAlias(pointer, other); });
    });
  };
  return !walk.wasInterrupted() && llvm::all_of(stored, getBaseArgument) &&
         !meet(stored, added) && !meet(added, loaded) &&
         (!meet(stored, loaded) ||
          mutation::isMade("spread:stores are loaded"));
}

/// Whether a value is made of the number of a program along the axis, or of
/// how many there are.
bool GridStride::dependsOnPrograms(Value value) const {
  auto is = [&](Operation *op) {
    auto number = dyn_cast<triton::GetProgramIdOp>(op);
    auto count = dyn_cast<triton::GetNumProgramsOp>(op);
    return (number && number.getAxisAsInt() == static_cast<int>(axis)) ||
           (count && count.getAxisAsInt() == static_cast<int>(axis));
  };
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  if (Operation *op = value.getDefiningOp())
    if (failed(getBackwardSlice(op, &slice, options)))
      return true;
  return llvm::any_of(slice, [&](Operation *op) {
    return op
        ->walk([&](Operation *inner) { return WalkResult(failure(is(inner))); })
        .wasInterrupted();
  });
}

/// Whether iteration i does the same in whichever program it runs.
bool GridStride::isUniform() {
  SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getRegion(), outside);
  WalkResult inside = loop.getBody()->walk([&](Operation *op) {
    bool asks = isa<triton::GetProgramIdOp, triton::GetNumProgramsOp>(op);
    return WalkResult(failure(asks && dependsOnPrograms(op->getResult(0))));
  });
  return !inside.wasInterrupted() && llvm::none_of(outside, [&](Value value) {
    return dependsOnPrograms(value);
  });
}

/// Carried integers that start with the program's number plus a constant and
/// advance as i does; false if anything else is carried.
bool GridStride::findCounters() {
  Dimension number{Dimension::Kind::Program};
  number.digit = ScalarExpr::programId(axis);
  for (auto [init, carried, next] :
       llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs(),
                       loop.getYieldedValues())) {
    auto form = LinearForm::of(init);
    auto sum = next.getDefiningOp<arith::AddIOp>();
    if (!isa<IntegerType>(init.getType()) || !form || form->terms.size() != 1 ||
        !sum || !(form->coefficientOf(number) == ScalarExpr::constant(1)))
      return false;
    Value added = sum.getLhs() == carried ? sum.getRhs() : sum.getLhs();
    if ((sum.getLhs() != carried && sum.getRhs() != carried) ||
        !(ScalarExpr::of(added) == step))
      return false;
    counters.push_back(form->constant);
  }
  return true;
}

std::optional<GridStride> GridStride::match(triton::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  for (auto loop : kernel.getOps<scf::ForOp>()) {
    auto start = ScalarExpr::of(loop.getLowerBound());
    auto end = ScalarExpr::of(loop.getUpperBound());
    auto step = ScalarExpr::of(loop.getStep());
    if (!start || !start->isProgramId() || !end || end->dependsOnProgramId() ||
        !step || step->dependsOnProgramId() || loop.getUnsignedCmp() ||
        !loop->use_empty())
      continue;
    GridStride found(loop, start->getAxis(), *end, *step);
    if (areIndependent(loop) && found.isUniform() && found.findCounters())
      return found;
  }
  return std::nullopt;
}

void GridStride::spread() {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Value number = loop.getLowerBound();
  ValueRange arguments = loop->getParentOfType<triton::FuncOp>().getArguments();
  for (auto [carried, more] :
       llvm::zip_equal(loop.getRegionIterArgs(), counters)) {
    Type type = carried.getType();
    Value start = castInteger(b, loc, number, type);
    Value shift = castInteger(b, loc, more.emit(b, loc, arguments), type);
    carried.replaceAllUsesWith(arith::AddIOp::create(b, loc, start, shift));
  }
  loop.getInductionVar().replaceAllUsesWith(number);
  for (Operation &op :
       llvm::make_early_inc_range(loop.getBody()->without_terminator()))
    op.moveBefore(loop);
  loop.erase();
}

Array GridStride::getGrid() const {
  Array grid;
  for (unsigned other = 0; other < 3; ++other)
    grid.push_back(ScalarExpr::grid(other).toJSON());
  ScalarExpr none = ScalarExpr::constant(0);
  grid[axis] = ScalarExpr::binary(ScalarExpr::Kind::Max, end, none).toJSON();
  return grid;
}

/// The numbers 0 … n − 1 are p + k · step of one program p and one k ≥ 0, if
/// there are as many programs as a step, or n is neither more than these nor
/// than those.
Array GridStride::getAssumed() const {
  using Kind = ScalarExpr::Kind;
  ScalarExpr programs = ScalarExpr::grid(axis);
  int64_t limit = axis == 0 ? std::numeric_limits<int32_t>::max() : 65535;
  Array assumed{(programs - ScalarExpr::constant(1)).toJSON(),
                (ScalarExpr::constant(limit) - end).toJSON()};
  if (step == programs)
    return assumed;
  ScalarExpr spare = ScalarExpr::binary(Kind::Min, step, programs) - end;
  ScalarExpr apart = ScalarExpr::binary(Kind::Min, step - programs,
                                        programs - step); // −|step − programs|
  assumed.push_back(ScalarExpr::binary(Kind::Max, apart, spare).toJSON());
  return assumed;
}

/// The checks that no two programs store to the same element: in a loop, the
/// last one would decide. None if that cannot be checked.
static std::optional<Array> findChecks(triton::FuncOp kernel) {
  llvm::MapVector<unsigned, SmallVector<Operation *>> stores;
  kernel.walk([&](triton::StoreOp store) {
    stores[getBaseArgument(store.getPtr()).getArgNumber()].push_back(store);
  });
  Array checks;
  for (auto &[argument, accesses] : stores) {
    std::optional<AccessSpace> space = AccessSpace::ofAll(accesses);
    if (!space)
      return std::nullopt;
    if (!mutation::isMade("spread:no check of stores"))
      checks.push_back(space->toCheck("distinct", argument));
  }
  return checks;
}

void SpreadLoops::runOnOperation() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  if (!primal)
    return;
  OpBuilder b(primal);
  auto kernel = cast<triton::FuncOp>(b.clone(*primal));
  std::optional<GridStride> loop = GridStride::match(kernel);
  if (!loop)
    return kernel.erase();
  Object launch{{"grid", loop->getGrid()},
                {"assumed", loop->getAssumed()},
                {"position", loop->getPosition()}};
  loop->spread();
  std::optional<Array> checks = findChecks(kernel);
  if (!checks)
    return kernel.erase();
  primal.erase();
  launch["checks"] = std::move(*checks);
  module->setAttr(kLaunchAttr, toAttribute(&getContext(), std::move(launch)));
}
