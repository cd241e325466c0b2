//===- ListSteps.cpp - What the host does to carry out a plan -------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <set>

namespace mlir::autodiff {
#define GEN_PASS_DEF_LISTSTEPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ListSteps : autodiff::impl::ListStepsBase<ListSteps> {
  void runOnOperation() override;

private:
  void look();
  void listForward();
  void listPreparations();
  void listLaunches();
  void listResults();

  OperandAttr operandOf(OperandKind kind, unsigned index) {
    return OperandAttr::get(&getContext(), kind, index);
  }
  void add(HostStage stage, StepKind kind, triton::FuncOp kernel = {},
           ArrayRef<OperandAttr> operands = {});
  void add(HostStage stage, StepKind kind, OperandKind of, unsigned index) {
    add(stage, kind, {}, operandOf(of, index));
  }
  /// One step for all of these; none for nothing.
  void addTogether(HostStage stage, StepKind kind, OperandKind of,
                   ArrayRef<unsigned> indices);
  void evaluateAndAllocate(HostStage stage, ArrayRef<HostSizeOp> sizes);

  PlanOp plan;
  triton::FuncOp primal, forward, counting;
  SmallVector<triton::FuncOp> backwards;
  llvm::DenseSet<OperandAttr> taken;
  /// Arguments: pointers that a kernel reads after the forward, outputs whose
  /// upstream gradient is read, and gradients whose additions are counted.
  std::set<unsigned> reread, cotangents, tallied;
};
} // namespace

/// The operands of a kernel of this kind.
static std::set<unsigned> operandsOf(triton::FuncOp kernel, OperandKind kind) {
  llvm::DenseSet<OperandAttr> operands;
  collectOperands(kernel, operands);
  std::set<unsigned> found;
  for (OperandAttr operand : operands)
    if (operand.getKind() == kind)
      found.insert(operand.getIndex());
  return found;
}

/// Whether Triton rounds to what a pointer points to as PyTorch does;
/// programs/partials.py has the same list.
static bool roundsAsPyTorch(Type pointer) {
  if (!isa<triton::PointerType>(pointer))
    return false;
  Type type = triton::getPointeeType(pointer);
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

void ListSteps::look() {
  ModuleOp module = getOperation();
  plan = PlanOp::getOrCreate(module);
  primal = getPrimal(module);
  forward = getForward(module);
  counting = getCounting(module);
  backwards = getBackwards(module);
  taken = collectOperands(module);
  for (auto launch : plan.getItems<LaunchOp>()) {
    triton::FuncOp kernel = getKernel(launch);
    if (kernel == forward)
      continue;
    for (unsigned argument : operandsOf(kernel, OperandKind::Argument))
      if (isa<triton::PointerType>(primal.getArgument(argument).getType()))
        reread.insert(argument);
    if (getRole(kernel) == "tally")
      tallied.merge(operandsOf(kernel, OperandKind::Gradient));
  }
  for (triton::FuncOp backward : backwards)
    cotangents.merge(operandsOf(backward, OperandKind::Cotangent));
  // What is only overwritten keeps the upstream gradient of elements that a
  // launch leaves out.
  for (auto item : plan.getItems<GradientOp>())
    if (item.getGradient().getInit() == GradientInit::Cotangent ||
        item.getGradient().getOverwritten())
      cotangents.insert(item.getGradient().getArgument());
}

void ListSteps::add(HostStage stage, StepKind kind, triton::FuncOp kernel,
                    ArrayRef<OperandAttr> operands) {
  FlatSymbolRefAttr name;
  if (kernel)
    name = FlatSymbolRefAttr::get(kernel.getSymNameAttr());
  ArrayAttr list;
  if (!operands.empty())
    list = ArrayAttr::get(&getContext(), SmallVector<Attribute>(operands));
  plan.add<StepOp>(stage, kind, name, list);
}

void ListSteps::addTogether(HostStage stage, StepKind kind, OperandKind of,
                            ArrayRef<unsigned> indices) {
  auto operands = llvm::map_to_vector(
      indices, [&](unsigned index) { return operandOf(of, index); });
  if (!operands.empty())
    add(stage, kind, {}, operands);
}

/// Computes sizes, and makes the buffers of a stage: those that a forward
/// saves, or all others. If a number depends on trips of loops, they are
/// counted first.
void ListSteps::evaluateAndAllocate(HostStage stage,
                                    ArrayRef<HostSizeOp> sizes) {
  SmallVector<BufferOp> buffers;
  llvm::DenseSet<int64_t> counters;
  for (auto item : plan.getItems<BufferOp>()) {
    bool isSaved = item.getBuffer().getKind() == BufferKind::Saved;
    if (isSaved != (stage == HostStage::Forward))
      continue;
    buffers.push_back(item);
    item.getBuffer().getSize().collectCounters(counters);
  }
  for (HostSizeOp item : sizes)
    item.getValue().collectCounters(counters);
  if (!counters.empty())
    add(stage, StepKind::Count, counting);
  for (HostSizeOp item : sizes)
    add(stage, StepKind::Evaluate, OperandKind::Size, item.getNumber());
  for (BufferOp item : buffers)
    add(stage, StepKind::Allocate, OperandKind::Buffer, item.getNumber());
}

void ListSteps::listForward() {
  for (unsigned argument : reread)
    add(HostStage::Forward, StepKind::Copy, OperandKind::Argument, argument);
  SmallVector<HostSizeOp> sizes;
  if (forward) {
    std::set<unsigned> taken = operandsOf(forward, OperandKind::Size);
    for (auto item : plan.getItems<HostSizeOp>())
      if (taken.count(item.getNumber()))
        sizes.push_back(item);
  }
  evaluateAndAllocate(HostStage::Forward, sizes);
  add(HostStage::Forward, StepKind::LaunchForward, forward ? forward : primal);
  // What the backward gets.
  SmallVector<unsigned> saved;
  for (auto item : plan.getItems<BufferOp>())
    if (item.getBuffer().getKind() == BufferKind::Saved)
      saved.push_back(item.getNumber());
  addTogether(HostStage::Forward, StepKind::Keep, OperandKind::Argument,
              llvm::to_vector(reread));
  addTogether(HostStage::Forward, StepKind::Save, OperandKind::Buffer, saved);
}

/// Makes memory and numbers.
void ListSteps::listPreparations() {
  for (unsigned output : cotangents)
    add(HostStage::Prepare, StepKind::LayOut, OperandKind::Cotangent, output);
  evaluateAndAllocate(HostStage::Prepare,
                      llvm::to_vector(plan.getItems<HostSizeOp>()));
  for (auto item : plan.getItems<GradientOp>()) {
    unsigned argument = item.getGradient().getArgument();
    if (taken.contains(operandOf(OperandKind::Rounded, argument)))
      add(HostStage::Prepare, StepKind::StandIn, OperandKind::Rounded,
          argument);
  }
  for (auto item : plan.getItems<GradientOp>())
    add(HostStage::Prepare, StepKind::Make, OperandKind::Gradient,
        item.getGradient().getArgument());
}

void ListSteps::listLaunches() {
  for (unsigned argument : tallied)
    add(HostStage::Launch, StepKind::Tally, OperandKind::Gradient, argument);
  for (triton::FuncOp kernel : backwards)
    add(HostStage::Launch, StepKind::Launch, kernel);
  if (!mutation::isMade("list-steps:gradients that are not rounded"))
    for (unsigned argument : tallied)
      add(HostStage::Launch, StepKind::Round, OperandKind::Gradient, argument);
}

/// Makes gradients of tensors. As many partial sums of several are added up
/// together.
void ListSteps::listResults() {
  llvm::MapVector<std::pair<ExprAttr, unsigned>, SmallVector<OperandAttr>> sums;
  SmallVector<unsigned> others;
  for (auto item : plan.getItems<GradientOp>()) {
    GradientAttr gradient = item.getGradient();
    unsigned argument = gradient.getArgument();
    if (!gradient.getPartials()) {
      others.push_back(argument);
      continue;
    }
    bool isAlike = roundsAsPyTorch(primal.getArgument(argument).getType());
    sums[{gradient.getPartials(), isAlike}].push_back(
        operandOf(OperandKind::Gradient, argument));
  }
  for (auto &[key, gradients] : sums)
    add(HostStage::Finish, StepKind::AddUp, {}, gradients);
  for (unsigned argument : others)
    add(HostStage::Finish, StepKind::Convert, OperandKind::Gradient, argument);
  SmallVector<unsigned> returned;
  for (auto item : plan.getItems<GradientOp>())
    if (item.getGradient().getReturned())
      returned.push_back(item.getGradient().getArgument());
  addTogether(HostStage::Finish, StepKind::Return, OperandKind::Gradient,
              returned);
}

void ListSteps::runOnOperation() {
  if (!getPrimal(getOperation()))
    return;
  look();
  for (auto step : llvm::make_early_inc_range(plan.getItems<StepOp>()))
    step.erase();
  listForward();
  listPreparations();
  listLaunches();
  listResults();
}
