//===- LiveLanes.cpp - Lanes that outputs depend on -----------------------===//
//
// A data flow analysis from outputs backwards. Where lanes of an operand lead
// to lanes of results, they are live if those are.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/LiveLanes.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Conditions need several rounds to propagate through nested loops.
constexpr unsigned kMostRounds = 64;

LiveLanes::LiveLanes(triton::FuncOp kernel, const Activity &activity,
                     ArrayRef<unsigned> repeated, Effects effects)
    : LiveLanes(kernel, activity, FinalStores(kernel, repeated), ValueRange(),
                {}, effects) {}

LiveLanes::LiveLanes(triton::FuncOp function, const Activity &activity,
                     ValueRange outputs, ArrayRef<Value> masks)
    : LiveLanes(function, activity, FinalStores(function, {}), outputs, masks,
                Effects::Differentiable) {}

LiveLanes::LiveLanes(triton::FuncOp kernel, const Activity &activity,
                     FinalStores final, ValueRange outputs,
                     ArrayRef<Value> masks, Effects effects)
    : activity(activity), effects(effects), final(std::move(final)) {
  do
    solve(kernel, outputs, masks);
  while (findOverwritten(kernel));
}

bool LiveLanes::counts(Value value) const {
  return effects == Effects::All || activity.isUseful(value);
}

/// Whether `use` counts as a dependence of `result` on the value used.
bool LiveLanes::counts(OpOperand &use, Value result) const {
  return effects == Effects::All ||
         passesDerivative(use.getOwner(), use.get(), result) ||
         mutation::isMade("lanes:of values that only decide, too");
}

/// `lanes` of a value that only decides something, so that no gradient flows
/// through it.
const Lanes *LiveLanes::ifDecisionsCount(const Lanes *lanes) {
  return effects == Effects::All ? lanes : algebra.none();
}

/// Propagates lanes from outputs until nothing changes.
void LiveLanes::solve(triton::FuncOp kernel, ValueRange outputs,
                      ArrayRef<Value> masks) {
  live.clear();
  for (auto [output, mask] : llvm::zip_equal(outputs, masks)) {
    const Lanes *lanes = mask ? algebra.where(mask) : algebra.all();
    live[output] = algebra.either(of(output), lanes);
  }
  unsigned rounds = 0;
  do {
    changed = false;
    kernel.walk<WalkOrder::PostOrder, ReverseIterator>(
        [&](Operation *op) { visit(op); });
  } while (changed && ++rounds < kMostRounds);
  if (changed)
    for (auto &entry : live)
      entry.second = algebra.unknown();
}

/// Whether some values were thought to be carried by every iteration, but are
/// not.
bool LiveLanes::findOverwritten(triton::FuncOp kernel) {
  unsigned before = overwritten.size();
  auto compare = [&](ValueRange arguments, ValueRange results) {
    for (auto [argument, result] : llvm::zip_equal(arguments, results)) {
      const Lanes *lanes = handedOn(argument);
      if (algebra.either(lanes, of(result)) != lanes)
        overwritten.insert(argument);
    }
  };
  kernel.walk([&](scf::ForOp loop) {
    compare(loop.getRegionIterArgs(), loop.getResults());
  });
  kernel.walk([&](scf::WhileOp loop) {
    compare(loop.getAfterArguments(), loop.getResults());
  });
  return overwritten.size() != before;
}

const Lanes *LiveLanes::of(Value value) {
  auto it = live.find(value);
  return it == live.end() ? algebra.none() : it->second;
}

const Lanes *LiveLanes::seenFrom(Block *block, const Lanes *lanes) {
  return algebra.given(lanes, [&](const Lanes *part) {
    return part->kind == Lanes::Kind::Runs &&
           part->loop->isAncestor(block->getParentOp());
  });
}

const Lanes *LiveLanes::ifAllRun(const Lanes *lanes) {
  return algebra.given(lanes, [](const Lanes *part) { return part->loop; });
}

const Lanes *LiveLanes::without(const Lanes *lanes, Value mask) {
  return mask ? algebra.without(lanes, algebra.where(mask)) : lanes;
}

/// Translates lanes of a value in block `from` to the block `to` around it.
const Lanes *LiveLanes::leave(const Lanes *lanes, Block *from, Block *to) {
  while (from != to) {
    Operation *around = from->getParentOp();
    lanes = algebra.knownIn(lanes, around->getBlock());
    if (auto branch = dyn_cast<scf::IfOp>(around))
      lanes = algebra.both(lanes, algebra.where(branch.getCondition(),
                                                from == branch.thenBlock()));
    else if (auto loop = dyn_cast<scf::ForOp>(around))
      lanes = algebra.both(lanes, algebra.ifRuns(loop));
    else if (from == cast<scf::WhileOp>(around).getAfterBody())
      lanes = algebra.both(lanes, algebra.unknown());
    from = around->getBlock();
  }
  return lanes;
}

/// The live lanes of a carried value of a loop, an argument of its body, in
/// terms of what is known around the loop.
const Lanes *LiveLanes::handedOn(Value argument) {
  return algebra.knownIn(of(argument),
                         argument.getParentBlock()->getParentOp()->getBlock());
}

/// Adds live lanes to a value; they are in terms of block `from`.
void LiveLanes::add(Value value, const Lanes *lanes, Block *from) {
  if (!counts(value) || lanes->isNone())
    return;
  const Lanes *&known = live.insert({value, algebra.none()}).first->second;
  const Lanes *sum =
      algebra.either(known, leave(lanes, from, value.getParentBlock()));
  changed |= sum != known;
  known = sum;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What the kernel loads again may be masked there. What it overwrites is not
/// seen by anyone.
const Lanes *LiveLanes::ofStored(Operation *write, Value mask) {
  SmallVector<BlockArgument> bases = getBaseArguments(write->getOperand(0));
  const Lanes *stored = mask ? algebra.where(mask) : algebra.all();
  bool isOutput = llvm::any_of(bases, [&](BlockArgument base) {
    return activity.hasCotangent(base.getArgNumber());
  });
  return isOutput && final.contains(write)
             ? stored
             : algebra.both(stored, algebra.unknown());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool mlir::autodiff::isLanewise(CustomVjpOp custom) {
  auto shapeOf = [](Value value) {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    return tile ? tile.getShape() : ArrayRef<int64_t>();
  };
  ArrayRef<int64_t> shape = shapeOf(custom.getResults().front());
  auto hasShape = [&](Value value) { return shapeOf(value) == shape; };
  return llvm::all_of(custom.getInputs(), hasShape) &&
         llvm::all_of(custom.getResults(), hasShape) &&
         llvm::all_of(custom.getPullback().front().without_terminator(),
                      [](Operation &op) {
                        return op.hasTrait<OpTrait::Elementwise>() ||
                               op.hasTrait<OpTrait::ConstantLike>() ||
                               isa<triton::SplatOp>(op);
                      });
}

const Lanes *LiveLanes::through(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  constexpr unsigned kWritten = 1;
  if (auto store = dyn_cast<triton::StoreOp>(op))
    return number == kWritten ? ofStored(op, store.getMask())
                              : ifDecisionsCount();
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    return number == kWritten ? ofStored(op, atomic.getMask())
                              : ifDecisionsCount();

  const Lanes *lanes = algebra.none();
  SmallVector<const Lanes *> results;
  for (Value result : op->getResults()) {
    results.push_back(counts(use, result) ? of(result) : algebra.none());
    lanes = algebra.either(lanes, results.back());
  }
  if (lanes->isNone())
    return lanes;
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return use.get() == load.getOther()
               ? algebra.both(lanes, algebra.where(load.getMask(), false))
               : ifDecisionsCount(lanes);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (number > 0)
      return algebra.both(lanes,
                          algebra.where(select.getCondition(), number == 1));
    // A single bool decides for all lanes.
    bool isTile = isa<ShapedType>(use.get().getType());
    return isTile ? ifDecisionsCount(lanes) : ifDecisionsCount();
  }
  auto dot = dyn_cast<triton::DotOp>(op);
  if (op->hasTrait<OpTrait::Elementwise>() || (dot && number == 2) ||
      isa<triton::MapElementwiseOp, ResidualOp>(op))
    return lanes;
  if (auto custom = dyn_cast<CustomVjpOp>(op)) {
    if (number < custom.getValues().size())
      return ifDecisionsCount(algebra.unknown());
    return isLanewise(custom) ? lanes : algebra.unknown();
  }
  if (isa<triton::SplitOp>(op))
    return algebra.through(use, results);
  // An index has to be one in dead lanes, too.
  if (isa<triton::GatherOp>(op))
    return algebra.unknown();
  auto map = triton::AxisMap::of(use);
  bool isKnown =
      (map && !map->isMixed()) ||
      isa<triton::ReshapeOp, triton::JoinOp, triton::ScanOp, SwapOp>(op);
  return isKnown ? algebra.through(use, lanes) : algebra.unknown();
}

/// Whether `op` is in a combine function, where there are no tiles.
static bool isInCombineFunction(Operation *op) {
  while (
      isa_and_nonnull<scf::ForOp, scf::WhileOp, scf::IfOp>(op->getParentOp()))
    op = op->getParentOp();
  return !isa_and_nonnull<triton::FuncOp, ModuleOp>(op->getParentOp());
}

void LiveLanes::visit(Operation *op) {
  if (isInCombineFunction(op))
    return;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitLoop(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitLoop(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    add(branch.getCondition(), ifDecisionsCount(), op->getBlock());
    for (Value result : branch.getResults())
      for (Region &side : branch->getRegions()) {
        unsigned number = cast<OpResult>(result).getResultNumber();
        Value yielded = side.front().getTerminator()->getOperand(number);
        // In terms of the branch: the value need not be computed there.
        add(yielded, of(result), &side.front());
      }
    return;
  }
  for (OpOperand &use : op->getOpOperands())
    if (counts(use.get()))
      add(use.get(), through(use), op->getBlock());
  if (!isa<triton::FuncOp>(op))
    addCaptured(op);
}

/// A combine function uses values from outside as they are.
void LiveLanes::addCaptured(Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    add(value, ifDecisionsCount(), op->getBlock());
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The lanes of `argument` that a loop's result depends on.
const Lanes *LiveLanes::ofResult(Value result, Value argument) {
  return overwritten.contains(argument)
             ? algebra.both(of(result), algebra.unknown())
             : of(result);
}

void LiveLanes::visitLoop(scf::ForOp loop) {
  Block *around = loop->getBlock(), *body = loop.getBody();
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    add(bound, ifDecisionsCount(), around);
  for (auto [init, argument, next, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults())) {
    const Lanes *last = ofResult(result, argument);
    const Lanes *lanes = handedOn(argument);
    add(init, algebra.either(algebra.both(lanes, algebra.ifRuns(loop)), last),
        around);
    add(next,
        algebra.either(algebra.both(lanes, algebra.ifRunsAgain(loop)), last),
        body);
  }
}

void LiveLanes::visitLoop(scf::WhileOp loop) {
  add(loop.getConditionOp().getCondition(), ifDecisionsCount(),
      loop.getBeforeBody());
  // Whether another iteration follows is not known before.
  auto ifRuns = [&](Value argument) {
    return algebra.both(handedOn(argument), algebra.unknown());
  };
  for (auto [passed, argument, result] :
       llvm::zip_equal(loop.getConditionOp().getArgs(),
                       loop.getAfterArguments(), loop.getResults()))
    add(passed, algebra.either(ifRuns(argument), ofResult(result, argument)),
        loop.getBeforeBody());
  for (auto [init, argument, next] :
       llvm::zip_equal(loop.getInits(), loop.getBeforeArguments(),
                       loop.getYieldedValues())) {
    add(init, handedOn(argument), loop->getBlock());
    add(next, handedOn(argument), loop.getAfterBody());
  }
}
