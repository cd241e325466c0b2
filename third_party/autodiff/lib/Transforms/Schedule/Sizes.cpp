//===- Sizes.cpp - Hand kernels the sizes that the host knows -------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SIZES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Sizes : autodiff::impl::SizesBase<Sizes> {
  void transform() override;
  void bind(triton::FuncOp kernel);
  void keepCounters(triton::FuncOp counting);

  /// Expressions by number, over all kernels.
  SmallVector<ExprAttr> expressions;
};
} // namespace

/// What a size is called in printed kernels.
static StringRef nameOf(ExprAttr expression) {
  auto isAbout = [&](ExprKind kind) {
    return expression.hasSubexpression(
        [&](ExprAttr part) { return part.getKind() == kind; });
  };
  if (expression.getKind() == ExprKind::Sub &&
      expression.getLhs() == expression.getRhs())
    return "zero";
  if (expression.getKind() == ExprKind::Grid)
    return "n_programs";
  if (expression.getKind() == ExprKind::Extent)
    return "extent";
  if (isAbout(ExprKind::Processors))
    return "n_partials";
  if (isAbout(ExprKind::MostOfPrograms) || isAbout(ExprKind::Counted))
    return "n_iterations";
  return stringifyOperandKind(OperandKind::Size);
}

/// Every size becomes an argument, one for equal expressions.
void Sizes::bind(triton::FuncOp kernel) {
  llvm::DenseMap<Attribute, Value> arguments;
  kernel.walk([&](SizeOp op) {
    ExprAttr expression = op.getExpressionAttr();
    Value &argument = arguments[expression];
    if (!argument) {
      unsigned index =
          llvm::find(expressions, expression) - expressions.begin();
      if (index == expressions.size())
        expressions.push_back(expression);
      argument = appendOperand(
          kernel, op.getType(),
          OperandAttr::get(&getContext(), OperandKind::Size, index),
          expression);
      if (Location loc = argument.getLoc(); !findVariable(loc).empty())
        argument.setLoc(withVariable(kernel.getLoc(), nameOf(expression)));
    }
    op.replaceAllUsesWith(argument);
    op.erase();
  });
}

/// Removes the counters that no size depends on, and the kernel without any.
void Sizes::keepCounters(triton::FuncOp counting) {
  llvm::DenseSet<int64_t> counters;
  PlanOp plan = PlanOp::of(getOperation());
  for (OperandAttr operand : collectOperands(getOperation()))
    if (Attribute description =
            plan ? plan.getDescription(operand) : Attribute())
      description.walk([&](ExprAttr part) {
        if (part.getKind() == ExprKind::Counted)
          counters.insert(part.getNumber());
      });
  if (counters.empty())
    return eraseKernel(counting);
  counting.walk([&](triton::AtomicRMWOp op) {
    // One without a number has been kept before.
    auto counter = op->getAttrOfType<IntegerAttr>(kCounterAttr);
    if (counter && !counters.contains(counter.getInt()))
      op.erase();
    else
      op->removeAttr(kCounterAttr);
  });
  // What the other counters needed goes, too.
  OpPassManager cleanup(triton::FuncOp::getOperationName());
  cleanup.addPass(createSimplify());
  cleanup.addPass(createCanonicalizerPass());
  if (failed(runPipeline(cleanup, counting)))
    return signalPassFailure();
  counting.walk([&](UnavailableOp op) {
    op.emitError() << "how often a loop runs depends on this access to memory "
                      "that the kernel changes, so the backward cannot know "
                      "how much memory its tape needs; pass the bound as an "
                      "argument";
    signalPassFailure();
  });
  dropUnusedArguments(counting);
}

void Sizes::transform() {
  expressions.clear();
  if (triton::FuncOp forward = getForward(getOperation()))
    bind(forward);
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    if (isBackward(kernel))
      bind(kernel);
  if (triton::FuncOp counting = getCounting(getOperation()))
    keepCounters(counting);
}
