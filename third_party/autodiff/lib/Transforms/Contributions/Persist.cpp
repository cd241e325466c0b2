//===- Persist.cpp - Few programs do the work of many ---------------------===//
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PERSIST
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("persist");

namespace {
/// Contributions of every program to the same addresses of an argument.
struct Shared {
  SmallVector<Contribution> ops;
  /// All addresses.
  AccessSpace space;
  /// The digits of program ids that these do not depend on.
  SmallVector<ScalarExpr> summed;
};

/// One of these contributions, and the check of its argument's gradient.
struct CheckedAccumulate {
  AccumulateOp op;
  CheckAttr check;
};

struct Persist : autodiff::impl::PersistBase<Persist> {
  using PersistBase::PersistBase;

  void transform() override;
  void persistIn(triton::FuncOp kernel);
  ReasonOr<Shared> examine(unsigned argument, const GradientUse &use);
  triton::FuncOp findOther(unsigned argument);
  Obstacle findCost(ArrayRef<Shared> group);
  Obstacle build(ArrayRef<Shared> group);

  triton::FuncOp backward;
  ArrayRef<ScalarExpr> digits;
};
} // namespace

/// Another kernel that contributes to an argument, null if there is none: what
/// it does and what is summed here would have to meet once more.
triton::FuncOp Persist::findOther(unsigned argument) {
  for (triton::FuncOp kernel : getBackwards(getOperation()))
    if (kernel != backward &&
        getAnalysis<Contributions>().in(kernel).count(argument) &&
        !mutation::isMade("persist:what other kernels contribute"))
      return kernel;
  return {};
}

ReasonOr<Shared> Persist::examine(unsigned argument, const GradientUse &use) {
  if (llvm::is_contained(atomic, argument))
    return because(backward, "a check of the addresses failed at a launch");
  if (triton::FuncOp other = findOther(argument))
    return because(backward, "{0} contributes to it, too", other.getSymName());
  for (Contribution op : use.contributions) {
    if (Obstacle owned = op.findOwner())
      return *owned;
    if (!op.isOuter())
      return because(backward, "what is contributed is made in the {0} at {1}",
                     isa<scf::IfOp>(op->getParentOp()) ? "branch" : "loop",
                     op->getParentOp());
  }
  ReasonOr<AccessSpace> space =
      exactly(getAnalysis<Contributions>().ofAll(use.contributions));
  if (!space)
    return space.why();
  Shared shared{use.contributions, *space, {}};
  shared.summed = space->findShared(digits);
  if (shared.summed.empty())
    return space->whyUnshared(digits);
  return shared;
}

static int64_t countAdded(const Shared &shared) {
  int64_t added = 0;
  for (AccumulateOp op : shared.ops)
    added += elementsOf(op.getValue().getType());
  return added;
}

/// Why meeting in atomics would cost nothing beside the rest of the work, if
/// so: a kernel without loops adds not much less than it loads or stores at a
/// time.
Obstacle Persist::findCost(ArrayRef<Shared> group) {
  int64_t added = 0, moved = 0;
  for (const Shared &shared : group)
    added += countAdded(shared);
  Operation *loop = nullptr;
  backward.walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op))
      loop = op;
    if (isa<triton::LoadOp, triton::StoreOp>(op))
      moved = std::max(moved, elementsOf(op->getOperand(0).getType()));
  });
  if (loop)
    return because(backward,
                   "the loop at {0} is long beside what is added once for a "
                   "program",
                   loop);
  if (Target::kMovedOfAtomic * added < moved)
    return because(backward,
                   "{0} elements are added, and {1} moved at a time, more than "
                   "{2} times as many, which takes longer",
                   added, moved, Target::kMovedOfAtomic);
  return std::nullopt;
}

/// Replaces the backward by one whose programs each do a part of the work of
/// those that contribute to the same addresses.
Obstacle Persist::build(ArrayRef<Shared> group) {
  Location loc = backward.getLoc();
  ArrayRef<ScalarExpr> summed = group.front().summed;
  SmallVector<ScalarExpr> staying = findUnmentioned(digits, summed);
  triton::FuncOp kernel =
      createBeside(backward, backward.getSymName() + "_persistent");
  kernel->moveBefore(backward);
  OpBuilder b = OpBuilder::atBlockEnd(&kernel.getBody().front());
  double registers = countRegisters(backward);
  SmallVector<CheckedAccumulate> contributions;
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
  for (CheckedAccumulate &each : contributions)
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
  Reason why;
  for (Operation &op : backward.getBody().front().without_terminator()) {
    auto found = llvm::find_if(
        contributions, [&](CheckedAccumulate &each) { return each.op == &op; });
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
    if (!succeeded && !why)
      why =
          because(&op, "one program cannot do the work of several at {0}: {1}",
                  &op, regrid.why());
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
  if (!succeeded) {
    eraseKernel(kernel);
    return why ? why
               : because(backward,
                         "addresses or masks depend on what would be "
                         "summed over: {0}",
                         atZero.why());
  }
  for (const CheckedAccumulate &each : contributions)
    kRemarks.passed(each.op,
                    "programs of {0} do the work of several each, and sum "
                    "over {1} in registers",
                    kernel.getSymName(), summed);
  eraseKernel(backward);
  return std::nullopt;
}

void Persist::transform() {
  digits = getAnalysis<Contributions>().getDigits();
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    persistIn(each);
}

void Persist::persistIn(triton::FuncOp kernel) {
  backward = kernel;
  GradientUses uses = getAnalysis<Contributions>().in(backward);
  auto refuse = [](const GradientUse &use, const Reason &why) {
    for (Contribution op : use.contributions)
      kRemarks.missed(op, why);
  };
  for (auto &[argument, use] : uses)
    if (!use.upstreams.empty()) {
      // Cotangents that are taken out of their buffers stay where they are.
      Reason why = because(backward,
                           "upstream gradients are taken one by one, where the "
                           "kernel stores at {0}",
                           use.upstreams.front());
      for (auto &[other, otherUse] : uses)
        refuse(otherUse, why);
      return;
    }
  std::vector<Shared> group;
  for (auto &[argument, use] : uses) {
    ReasonOr<Shared> shared = examine(argument, use);
    if (!shared)
      refuse(use, shared.why());
    else if (group.empty() || group[0].summed == shared->summed)
      group.push_back(*shared);
    else
      refuse(use, because(backward,
                          "programs would sum over {0}, and do so over {1} for "
                          "another argument",
                          shared->summed, group[0].summed));
  }
  if (group.empty())
    return;
  SmallVector<Contribution> sums;
  for (const Shared &shared : group)
    llvm::append_range(sums, shared.ops);
  Obstacle why = always ? std::nullopt : findCost(group);
  if (!why)
    why = build(group);
  if (why)
    for (Contribution op : sums)
      kRemarks.missed(op, *why);
}
