//===- AskNext.cpp - Which plan to ask for where this one does not do -----===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Dialect/Expr.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include <map>
#include <set>

namespace mlir::autodiff {
#define GEN_PASS_DEF_ASKNEXT
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using Key = RequestKey;
using Numbers = SmallVector<ExprAttr>;

// With at least so many lanes, an axis of a tile may be shorter than the loop
// or digit that it is for.
constexpr int64_t kLeastLanes = 64;

namespace {
/// The change of a request if something about a launch fails, or in any case
/// (Nothing).
struct Answer {
  Failure failure;
  int64_t argument = -1;
};

struct AskNext : autodiff::impl::AskNextBase<AskNext> {
  using AskNextBase::AskNextBase;
  void transform() override;

private:
  void collect();
  void ask(Answer answer, Key key, ArrayRef<ExprAttr> value,
           ArrayRef<ExprAttr> notNegative = {});
  void set(Answer answer, Key key, bool value,
           ArrayRef<ExprAttr> notNegative = {});
  void endStep();

  void askForLaunch();
  void askForAxes();
  void askWithoutLaunch();
  void askWithoutChecks();
  void askForMemory();

  /// Not negative if the launch that the kernels are for has no programs.
  ExprAttr noProgramRuns();
  ExprAttr number(int64_t value) { return ExprAttr::get(&getContext(), value); }
  /// Not negative if a fact of the launch, as a number, is not zero.
  ExprAttr where(ExprKind fact) {
    return subOf(ExprAttr::get(&getContext(), fact, 0), 1);
  }

  PlanOp plan;
  SmallVector<Attribute> step;
  // The gradients by argument, in order.
  std::map<unsigned, GradientAttr> gradients;
  std::set<unsigned> checkedOutputs;
  bool readsOutputs = false, hasTapes = false;
};
} // namespace

/// The arguments that a kernel stores to.
static llvm::DenseSet<unsigned> findOutputs(triton::FuncOp primal) {
  llvm::DenseSet<unsigned> outputs;
  primal.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (pointer && mayWrite(op))
      for (BlockArgument base : getBaseArguments(pointer))
        outputs.insert(base.getArgNumber());
  });
  return outputs;
}

/// Collects what the plan says of gradients and checks.
void AskNext::collect() {
  ModuleOp module = getOperation();
  plan = PlanOp::getOrCreate(module);
  for (auto item : plan.getItems<GradientOp>())
    gradients.try_emplace(item.getGradient().getArgument(), item.getGradient());
  for (auto item : plan.getItems<BufferOp>())
    hasTapes |= item.getBuffer().getKind() == BufferKind::Tape;
  for (auto item : plan.getItems<CheckOp>())
    checkedOutputs.insert(item.getOperand().getIndex());
  llvm::DenseSet<unsigned> outputs = findOutputs(getPrimal(module));
  for (auto kernel : module.getOps<triton::FuncOp>()) {
    if (!isBackward(kernel) && kernel != getCounting(module))
      continue;
    for (unsigned place = 0; place < kernel.getNumArguments(); ++place) {
      auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
      readsOutputs |= operand.getKind() == OperandKind::Argument &&
                      !kernel.getArgument(place).use_empty() &&
                      outputs.contains(operand.getIndex());
    }
  }
}

void AskNext::ask(Answer answer, Key key, ArrayRef<ExprAttr> value,
                  ArrayRef<ExprAttr> notNegative) {
  step.push_back(NextAttr::get(&getContext(), notNegative, answer.failure,
                               answer.argument, key, value));
}

void AskNext::set(Answer answer, Key key, bool value,
                  ArrayRef<ExprAttr> notNegative) {
  ask(answer, key, number(value), notNegative);
}

void AskNext::endStep() {
  if (!step.empty())
    plan.add<NextOp>(ArrayAttr::get(&getContext(), step));
  step.clear();
}

ExprAttr AskNext::noProgramRuns() {
  RearrangedLaunch launch = RearrangedLaunch::of(getOperation());
  return subOf(0, mulOf(mulOf(launch.grid[0], launch.grid[1]), launch.grid[2]));
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

/// Asks for facts of the launch that the compiler could not know.
void AskNext::askForLaunch() {
  Answer anyway{Failure::Nothing};
  if (reload && readsOutputs && !mutation::isMade("ask-next:no reload"))
    set(anyway, Key::Reload, false, where(ExprKind::Parts));
  if (takesAxes)
    askForAxes();
  // What is atomic already stays so if no program runs.
  if (!deterministic && !adds) {
    MLIRContext *context = &getContext();
    ExprAttr programs = mulOf(mulOf(gridOf(context, 0), gridOf(context, 1)),
                              gridOf(context, 2));
    set(anyway, Key::Deterministic, true,
        {where(ExprKind::Deterministic), subOf(programs, 1)});
  }
  endStep();
}

/// The length of an axis for a digit below `limit`, if lanes are left.
///
/// A multiple of it should be little more than the limit: by an eighth at most,
/// or up to the next multiple of 64.
static ExprAttr chooseLength(ExprAttr limit, ExprAttr lanes) {
  ExprAttr close = maxOf(addOf(limit, divOf(limit, 8)),
                         mulOf(ceilDivOf(limit, kLeastLanes), kLeastLanes));
  return minOf(minOf(powerOfTwoFrom(limit), coarsestOf(limit, close)), lanes);
}

/// Asks for axes of tiles in place of iterations, or digits of positions. That
/// is not possible if arguments share memory that the kernel writes, since
/// iterations may then depend on each other.
void AskNext::askForAxes() {
  MLIRContext *context = &getContext();
  Numbers holds{subOf(0, ExprAttr::get(context, ExprKind::Shared, 0))}, axes;
  auto offers = plan.getItems<OfferOp>();
  Attribute offer =
      offers.empty() ? Attribute() : (*offers.begin()).getRearrangement();
  if (auto batch = dyn_cast_or_null<BatchAttr>(offer)) {
    ExprAttr trips = batch.getTrips(), length = powerOfTwoFrom(trips);
    holds.append({subOf(trips, 1), subOf(batch.getMost(), length)});
    if (batch.getExact())
      holds.push_back(subOf(trips, length));
    axes.push_back(length);
  } else if (auto unravel = dyn_cast_or_null<UnravelAttr>(offer)) {
    // Lower digits, whose elements are contiguous in memory, get their lanes
    // first.
    ExprAttr lanes = number(unravel.getLanes());
    for (ExprAttr limit : unravel.getLimits()) {
      holds.push_back(subOf(limit, 1));
      axes.push_back(chooseLength(limit, lanes));
      lanes = divOf(lanes, axes.back());
    }
  }
  if (!axes.empty())
    ask({Failure::Nothing}, Key::Axes, axes, holds);
}

/// Asks for a plan without the rearranged launch, and without assumptions: axes
/// are given up first.
void AskNext::askWithoutLaunch() {
  bool hasLaunch = !plan.getItems<RearrangedOp>().empty();
  auto giveUp = [&](Answer answer, ArrayRef<ExprAttr> notNegative = {}) {
    if (hasAxes)
      ask(answer, Key::Axes, {}, notNegative);
    else if (assume)
      set(answer, Key::Assume, false, notNegative);
  };
  if (hasLaunch || !plan.getItems<AssumeOp>().empty())
    giveUp({Failure::Launch});
  if (hasLaunch && !mutation::isMade("ask-next:no memory shared"))
    giveUp({Failure::Nothing}, where(ExprKind::Shared));
  endStep();
}

/// If a check of distinct addresses fails, asks for atomics, if these are
/// allowed.
void AskNext::askWithoutChecks() {
  SmallVector<std::pair<Answer, Key>> answers;
  for (auto [argument, gradient] : gradients)
    if (!gradient.getChecks().empty())
      answers.push_back({{Failure::Gradient, argument}, Key::Atomic});
  for (unsigned argument : checkedOutputs)
    answers.push_back({{Failure::Output, argument}, Key::Repeated});
  Numbers holds;
  // If no program runs, checks fail, but nothing is added atomically.
  if (deterministic)
    holds.push_back(noProgramRuns());
  for (auto [answer, key] : answers) {
    ask(answer, key, number(answer.argument), holds);
    if (deterministic)
      set(answer, Key::Deterministic, false, holds);
  }
  endStep();
  if (deterministic)
    for (auto [answer, key] : answers)
      ask(answer, Key::None, {});
  endStep();
}

/// Whether a launch may find contributions far away from the tensor: where they
/// reach, or what they store if that need not be all of the tensor.
static bool mayReachFar(GradientAttr gradient) {
  bool isStored = gradient.getAccumulate() != Accumulate::Partial &&
                  !gradient.getChecks().empty();
  return gradient.getConfined() != Confined::All &&
         (isStored || !gradient.getReach().empty()) &&
         !mutation::isMade("ask-next:stores stay near");
}

/// Asks for other plans if buffers would be too large.
void AskNext::askForMemory() {
  for (auto [argument, gradient] : gradients)
    if (mayReachFar(gradient))
      ask({Failure::Reach, argument}, Key::Confine, number(argument));
  endStep();
  if (hasTapes && !checkpoint)
    set({Failure::Tapes}, Key::Checkpoint, true);
  endStep();
}

void AskNext::transform() {
  collect();
  askForLaunch();
  askWithoutLaunch();
  askWithoutChecks();
  askForMemory();
}
