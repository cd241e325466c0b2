//===- FlattenReturns.cpp - Programs that return early run empty loops ----===//
//
// A grid may have as many tiles as the longest of several sequences needs.
// Programs of shorter sequences return early:
//
//   if (p · B < n) { …; for (i = 0; i < m; …) …; store }
//
// Instead, they may run their loops zero times and mask their loads and stores.
// Then the kernel is one block, and its loops can be interchanged with the
// grid. Two things then happen in all programs, which the launch has to find
// possible: loads that say where a program's range begins, and divisions.
//
//===----------------------------------------------------------------------===//
#include "Branches.h"
#include "Guards.h"
#include "autodiff/Analysis/Constraints.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_FLATTENRETURNS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("flatten-returns");
using From = ScalarExpr::From;

namespace {
/// A kernel that consists of one branch.
class GuardedKernel {
public:
  static std::optional<GuardedKernel> match(triton::FuncOp kernel);

  /// Whether its loops load what other programs load, too, or are beside a load
  /// with a loaded index.
  bool isWorthIt(triton::FuncOp kernel) const;
  /// An operation that must not be beside the branch.
  Obstacle findObstacle(triton::FuncOp kernel) const;
  scf::IfOp getBranch() const { return branch; }
  /// Moves everything out of the branch. Adds numbers that must not be negative
  /// because of loads and divisions in all programs to `assumed`.
  void flatten(SmallVectorImpl<ScalarExpr> &assumed);

private:
  GuardedKernel(scf::IfOp branch, Block *body) : branch(branch), body(body) {}

  void makeCondition();
  void guard(Operation *op);
  void guard(MutableOperandRange mask, Value pointer);
  bool isImpliedBy(Value mask) const;

  scf::IfOp branch;
  Block *body;
  Value condition; // under which the body runs
};

struct FlattenReturns : autodiff::impl::FlattenReturnsBase<FlattenReturns> {
  void transform() override;
};
} // namespace

std::optional<GuardedKernel> GuardedKernel::match(triton::FuncOp kernel) {
  // Behind the branch, its result is stored.
  Operation *last = kernel.getBody().front().getTerminator()->getPrevNode();
  while (last && !isa<scf::IfOp>(last) &&
         (isa<triton::StoreOp>(last) || isPure(last)))
    last = last->getPrevNode();
  auto branch = dyn_cast_or_null<scf::IfOp>(last);
  if (!branch)
    return std::nullopt;
  if (Block *work = findWork(branch))
    return GuardedKernel(branch, work);
  return std::nullopt;
}

/// Whether the address of `load` depends on memory.
static bool isPlacedByData(triton::LoadOp load) {
  auto form = LinearForm::of(load.getPtr(), {}, From::Memory);
  return isFloat(load.getType()) && form && form->readsMemory();
}

/// Whether the address of `load` does not depend on some digit.
static bool isShared(triton::LoadOp load, ArrayRef<ScalarExpr> digits) {
  auto form = LinearForm::of(load.getPtr(), {}, From::Memory);
  if (!form || !isFloat(load.getType()))
    return false;
  SmallVector<ScalarExpr> mentioned;
  for (const LinearForm::Term &term : form->terms)
    if (term.dimension.digit)
      mentioned.push_back(*term.dimension.digit);
  return !findUnmentioned(digits, mentioned).empty();
}

bool GuardedKernel::isWorthIt(triton::FuncOp kernel) const {
  auto loops = body->getOps<scf::ForOp>();
  if (!loops.empty() &&
      llvm::any_of(body->getOps<triton::LoadOp>(), isPlacedByData))
    return true;
  SmallVector<ScalarExpr> digits = findProgramDigits(kernel);
  return llvm::any_of(loops, [&](scf::ForOp loop) {
    return llvm::any_of(
        loop.getBody()->getOps<triton::LoadOp>(),
        [&](triton::LoadOp load) { return isShared(load, digits); });
  });
}

/// The divisor of an integer division, if the launch knows it.
static std::optional<ScalarExpr> findDivisor(Operation &op) {
  if (!isa<arith::DivSIOp, arith::RemSIOp>(op))
    return std::nullopt;
  Value divisor = op.getOperand(1);
  if (auto splat = divisor.getDefiningOp<triton::SplatOp>())
    divisor = splat.getSrc();
  return ScalarExpr::of(divisor);
}

Obstacle GuardedKernel::findObstacle(triton::FuncOp kernel) const {
  auto canStand = [](Operation &op) {
    if (auto load = dyn_cast<triton::LoadOp>(op))
      return !load.getIsVolatile() && !isPointer(load.getType());
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && !branch.elseBlock())
      return true;
    return isa<scf::ForOp, triton::StoreOp>(op) ||
           (isMemoryEffectFree(&op) &&
            (isSpeculatable(&op) || findDivisor(op)));
  };
  for (Operation &op : body->without_terminator())
    if (!canStand(op))
      return because(&op, "`{0}` at {1} may not run in programs that return",
                     op.getName().getStringRef(), &op);
  if (!isWorthIt(kernel))
    return because(branch,
                   "no loop in it loads what programs share, nor stands "
                   "beside a load that data place");
  return std::nullopt;
}

/// Emits the condition in front of the branch.
void GuardedKernel::makeCondition() {
  condition = branch.getCondition();
  OpBuilder b(branch);
  if (body == branch.elseBlock())
    condition = negationOf(b, branch.getLoc(), condition);
}

/// Whether a mask is false in all lanes if the condition is false: a lane's
/// number is at least that of the tile.
bool GuardedKernel::isImpliedBy(Value mask) const {
  Constraints needed = constraintsOf(condition, From::Memory);
  if (!needed)
    return false;
  SmallVector<Constraint> known = knownConstraintsOf(mask, From::Memory);
  return llvm::all_of(*needed, [&](const Constraint &limit) {
    return llvm::any_of(known, [&](const Constraint &constraint) {
      LinearForm more = constraint.form - limit.form;
      return constraint.bound == limit.bound &&
             llvm::all_of(more.terms, [](const LinearForm::Term &term) {
               return term.dimension.kind == Dimension::Kind::Axis &&
                      term.coefficient.isNotNegative();
             });
    });
  });
}

void GuardedKernel::guard(MutableOperandRange mask, Value pointer) {
  Value known = mask.empty() ? Value() : mask[0].get();
  if (known && isImpliedBy(known))
    return;
  OpBuilder b(mask.getOwner());
  mask.assign(
      guardMask(b, mask.getOwner()->getLoc(), condition, known, pointer));
}

void GuardedKernel::guard(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto store = dyn_cast<triton::StoreOp>(op)) {
    if (!mutation::isMade("flatten:stores of programs that return"))
      guard(store.getMaskMutable(), store.getPtr());
  } else if (auto load = dyn_cast<triton::LoadOp>(op)) {
    guard(load.getMaskMutable(), load.getPtr());
    completeOther(load);
  } else if (auto inner = dyn_cast<scf::IfOp>(op)) {
    inner.getConditionMutable().assign(
        arith::AndIOp::create(b, loc, condition, inner.getCondition()));
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    loop.getUpperBoundMutable().assign(arith::SelectOp::create(
        b, loc, condition, loop.getUpperBound(), loop.getLowerBound()));
  }
}

void GuardedKernel::flatten(SmallVectorImpl<ScalarExpr> &assumed) {
  makeCondition();
  for (Operation &op : body->without_terminator()) {
    if (std::optional<ScalarExpr> divisor = findDivisor(op);
        divisor && !isSpeculatable(&op))
      assumed.push_back(*divisor - ScalarExpr::constant(1));
    std::optional<ScalarExpr> element;
    if (isa<triton::LoadOp>(op))
      element = ScalarExpr::of(op.getResult(0), From::Memory);
    if (element)
      assumed.push_back(ScalarExpr::binary(ScalarExpr::Kind::Max, *element,
                                           ScalarExpr::constant(0)));
    else
      guard(&op);
  }
  Block *outer = branch->getBlock();
  outer->getOperations().splice(Block::iterator(branch), body->getOperations(),
                                body->begin(), std::prev(body->end()));
  OpBuilder b(branch);
  Block *other =
      branch.thenBlock() == body ? branch.elseBlock() : branch.thenBlock();
  for (OpResult result : branch.getResults()) {
    auto given = [&](Block *side) {
      return side->getTerminator()->getOperand(result.getResultNumber());
    };
    Value chosen = arith::SelectOp::create(b, branch.getLoc(), condition,
                                           given(body), given(other));
    result.replaceAllUsesWith(chosen);
  }
  branch.erase();
}

void FlattenReturns::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  SmallVector<ScalarExpr> assumed;
  while (std::optional<GuardedKernel> guarded = GuardedKernel::match(primal)) {
    if (Obstacle why = guarded->findObstacle(primal)) {
      kRemarks.missed(guarded->getBranch(), *why);
      break;
    }
    kRemarks.passed(guarded->getBranch(),
                    "programs that return run loops of no "
                    "iterations instead");
    guarded->flatten(assumed);
  }
  assumeNotNegative(module, assumed);
}
