//===- Persist.cpp - Few programs do the work of many ---------------------===//
#include "ArgumentUses.h"
#include "Regrid.h"
#include "Reverse/Costs.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PERSIST
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// What every program contributes at the same addresses of an argument.
struct Shared {
  SmallVector<AccumulateOp> ops;
  /// All addresses.
  AccessSpace space;
  /// The digits of program ids that these do not depend on.
  SmallVector<ScalarExpr> summed;
};

/// One of these contributions, and the check of its argument's gradient.
struct Contribution {
  AccumulateOp op;
  CheckAttr check;
};

struct Persist : autodiff::impl::PersistBase<Persist> {
  using PersistBase::PersistBase;

  void transform() override;
  void persistIn(triton::FuncOp kernel);
  std::optional<Shared> examine(unsigned argument, const ArgumentUse &use);
  bool isContributedElsewhere(unsigned argument);
  bool isWorthIt(ArrayRef<Shared> group);
  void build(ArrayRef<Shared> group);

  triton::FuncOp backward;
  llvm::DenseMap<unsigned, Operation *> sites;
  SmallVector<ScalarExpr> digits;
};
} // namespace

/// Whether other kernels contribute to an argument: then these and what is
/// summed here would have to meet once more.
bool Persist::isContributedElsewhere(unsigned argument) {
  return llvm::any_of(getBackwards(getOperation()), [&](triton::FuncOp kernel) {
    return kernel != backward && collectUses(kernel).count(argument) &&
           !mutation::isMade("persist:what other kernels contribute");
  });
}

std::optional<Shared> Persist::examine(unsigned argument,
                                       const ArgumentUse &use) {
  if (llvm::is_contained(atomic, argument) || !use.upstreams.empty() ||
      isContributedElsewhere(argument))
    return std::nullopt;
  SmallVector<Operation *> loads;
  for (AccumulateOp op : use.accumulates) {
    loads.push_back(sites.lookup(op.getSite()));
    if (!isa<triton::LoadOp>(loads.back()) || op->getParentOp() != backward)
      return std::nullopt;
  }
  std::optional<AccessSpace> space = AccessSpace::ofAll(loads);
  if (!space || !space->isExact())
    return std::nullopt;
  Shared shared{llvm::to_vector(use.accumulates), *space, {}};
  shared.summed = space->findShared(digits);
  if (shared.summed.empty())
    return std::nullopt;
  return shared;
}

static int64_t countAdded(const Shared &shared) {
  int64_t added = 0;
  for (AccumulateOp op : shared.ops)
    added += elementsOf(op.getValue().getType());
  return added;
}

/// Whether meeting in atomics would cost something beside the rest of the work:
/// a kernel without loops adds not much less than it loads or stores at a time.
bool Persist::isWorthIt(ArrayRef<Shared> group) {
  int64_t added = 0, moved = 0;
  for (const Shared &shared : group)
    added += countAdded(shared);
  bool loops = false;
  backward.walk([&](Operation *op) {
    loops |= isa<LoopLikeOpInterface>(op);
    if (isa<triton::LoadOp, triton::StoreOp>(op))
      moved = std::max(moved, elementsOf(op->getOperand(0).getType()));
  });
  return !loops && Target::kMovedOfAtomic * added >= moved;
}

/// Replaces the backward by one whose programs each do a part of the work of
/// those that contribute to the same addresses.
void Persist::build(ArrayRef<Shared> group) {
  Location loc = backward.getLoc();
  ArrayRef<ScalarExpr> summed = group.front().summed;
  SmallVector<ScalarExpr> staying = findUnmentioned(digits, summed);
  triton::FuncOp kernel =
      createBeside(backward, backward.getSymName() + "_persistent");
  kernel->moveBefore(backward);
  OpBuilder b = OpBuilder::atBlockEnd(&kernel.getBody().front());
  double registers = countRegisters(backward);
  SmallVector<Contribution> contributions;
  for (const Shared &shared : group) {
    registers += countAdded(shared);
    for (AccumulateOp op : shared.ops)
      contributions.push_back(
          {op, shared.space.toSummedCheck(op.getArgument(), summed, staying)});
  }
  ExprAttr one = ExprAttr::get(&getContext(), 1);
  ExprAttr partials =
      countPartials(summed, countPrograms(staying, one),
                    programsFor(Target::of(backward), registers));
  ProgramNumbers programs = numberPrograms(b, kernel, partials, staying);
  Value stride = createSize(b, loc, partials);
  Value work, zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  SmallVector<Value> extents, sums;
  for (const ScalarExpr &digit : summed) {
    extents.push_back(createSize(b, loc, extentOf(digit)));
    work = work ? Value(arith::MulIOp::create(b, loc, work, extents.back()))
                : extents.back();
  }
  for (Contribution &each : contributions)
    sums.push_back(constantOf(b, loc, each.op.getValue().getType(), 0.0));
  auto loop = scf::ForOp::create(b, loc, programs.number, work, stride, sums);

  // The work of one program of the old grid.
  OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
  OpBuilder once = b;
  once.setInsertionPoint(loop);
  Regrid regrid(kernel, once, inside);
  regrid.bindPrograms(programs);
  SmallVector<Value> parts =
      takeApart(inside, loc, loop.getInductionVar(), extents);
  for (auto [digit, value] : llvm::zip_equal(summed, parts))
    regrid.bindDigit(digit, value, true);
  SmallVector<Value> next(loop.getRegionIterArgs());
  bool succeeded = true;
  for (Operation &op : backward.getBody().front().without_terminator()) {
    auto found = llvm::find_if(
        contributions, [&](Contribution &each) { return each.op == &op; });
    if (found != contributions.end()) {
      Value value = regrid.get(found->op.getValue());
      Value &sum = next[found - contributions.begin()];
      if (value && mutation::isMade("persist:the last program alone"))
        sum = value;
      else if (value)
        sum = arith::AddFOp::create(inside, op.getLoc(), sum, value);
      succeeded &= value != nullptr;
    } else if (mayWrite(&op)) {
      succeeded &= mlir::succeeded(regrid.copy(&op));
    }
  }
  scf::YieldOp::create(inside, loc, next);

  // Addresses and masks do not depend on what is summed.
  Regrid atZero(kernel, b, b);
  atZero.bindPrograms(programs);
  for (const ScalarExpr &digit : summed)
    atZero.bindDigit(digit, zero, false);
  for (auto [each, sum] : llvm::zip_equal(contributions, loop.getResults()))
    succeeded =
        succeeded &&
        mlir::succeeded(accumulateWhole(b, each.op, atZero, sum, each.check,
                                        programs.number, partials));
  triton::ReturnOp::create(b, loc, ValueRange());
  eraseKernel(succeeded ? backward : kernel);
}

void Persist::transform() {
  triton::FuncOp primal = getDifferentiated(getOperation());
  sites = collectSites(primal);
  digits = findProgramDigits(primal);
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    persistIn(each);
}

void Persist::persistIn(triton::FuncOp kernel) {
  backward = kernel;
  std::vector<Shared> group;
  for (auto &[argument, use] : collectUses(backward)) {
    // Cotangents that are taken out of their buffers stay where they are.
    if (!use.upstreams.empty())
      return;
    std::optional<Shared> shared = examine(argument, use);
    if (shared && (group.empty() || group[0].summed == shared->summed))
      group.push_back(*shared);
  }
  if (!group.empty() && (always || isWorthIt(group)))
    build(group);
}
