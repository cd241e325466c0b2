//===- PassSizes.cpp - Hand kernels the sizes that the host knows --------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PASSSIZES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PassSizes : autodiff::impl::PassSizesBase<PassSizes> {
  void transform() override;
  void name(triton::FuncOp kernel);
  void bind(triton::FuncOp kernel);
  void keepCounters(triton::FuncOp counting);

  /// Expressions by number, over all kernels.
  SmallVector<ExprAttr> expressions;
  /// The names of expressions in printed kernels.
  llvm::DenseMap<Attribute, std::string> names;
};
} // namespace

/// The user's variable that is below `size`, because it is a remainder by it;
/// empty if there is none.
static StringRef findDigit(Value size) {
  auto isConversion = [](Operation *op) {
    return isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op);
  };
  for (Operation *user : size.getUsers()) {
    StringRef name;
    if (isConversion(user)) {
      name = findDigit(user->getResult(0));
    } else if (isa<arith::RemSIOp, arith::RemUIOp>(user) &&
               user->getOperand(1) == size) {
      name = findVariable(user->getLoc());
      for (Operation *next : user->getUsers())
        if (name.empty() && isConversion(next))
          name = findVariable(next->getLoc());
    }
    // The number of a partial sum is named after the sum.
    if (!name.empty() && !name.starts_with(kAdjointPrefix))
      return name;
  }
  return {};
}

static constexpr llvm::StringLiteral kIterations = "n_iterations";

/// The name of a size that is not the number of values of a variable.
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
    return kIterations;
  return stringifyOperandKind(OperandKind::Size);
}

/// Sizes that are the number of values of a variable have the same name in all
/// kernels.
void PassSizes::name(triton::FuncOp kernel) {
  kernel.walk([&](SizeOp op) {
    StringRef digit = findDigit(op.getResult());
    ExprAttr expression = op.getExpressionAttr();
    if (!digit.empty() && nameOf(expression) == kIterations)
      names.try_emplace(expression, (digit + "_end").str());
  });
}

/// Turns sizes into arguments, one for equal expressions.
void PassSizes::bind(triton::FuncOp kernel) {
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
      if (Location loc = argument.getLoc(); !findVariable(loc).empty()) {
        auto found = names.find(expression);
        StringRef name = found == names.end() ? nameOf(expression)
                                              : StringRef(found->second);
        argument.setLoc(withVariable(kernel.getLoc(), name));
      }
    }
    op.replaceAllUsesWith(argument);
    op.erase();
  });
}

/// Removes the counters that no size depends on; without any, removes the
/// kernel.
void PassSizes::keepCounters(triton::FuncOp counting) {
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
    // A counter without a number has been kept before.
    auto counter = op->getAttrOfType<IntegerAttr>(kCounterAttr);
    if (counter && !counters.contains(counter.getInt()))
      op.erase();
    else
      op->removeAttr(kCounterAttr);
  });
  // Removes computations of the other counters.
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

void PassSizes::transform() {
  expressions.clear();
  names.clear();
  SmallVector<triton::FuncOp> kernels;
  if (triton::FuncOp forward = getForward(getOperation()))
    kernels.push_back(forward);
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    if (isBackward(kernel))
      kernels.push_back(kernel);
  for (triton::FuncOp kernel : kernels)
    name(kernel);
  for (triton::FuncOp kernel : kernels)
    bind(kernel);
  if (triton::FuncOp counting = getCounting(getOperation()))
    keepCounters(counting);
}
