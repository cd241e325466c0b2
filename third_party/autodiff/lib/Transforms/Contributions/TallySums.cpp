//===- TallySums.cpp - Find who adds to a part of a sum alone -------------===//
#include "Runs.h"
#include "Tally.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/SharedQuotient.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Cleanup.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Pass/PassManager.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_TALLYSUMS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("tally-sums");

// With fewer runs, counts fit into 32 bits, even twice as many.
constexpr int64_t kMostRuns = int64_t(1) << 30;

namespace {
struct TallySums : autodiff::impl::TallySumsBase<TallySums> {
  void transform() override;
  std::optional<AtomicSum> examine(BlockArgument buffer);
  ExprAttr countAll(const AtomicSum &sum,
                    llvm::function_ref<int64_t(triton::AtomicRMWOp)> together);
  ExprAttr findCondition(const AtomicSum &sum, const SumBlocks &blocks);
  LogicalResult tally(const AtomicSum &sum);
  triton::FuncOp deriveAdditions(const AtomicSum &sum);

  triton::FuncOp primal;
  llvm::DenseMap<unsigned, Operation *> sites;
};
} // namespace

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// A half-precision type, whose sum is in a wider one: the pass saves the
/// rounding.
static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

/// The memory that `op` adds to, if it does nothing else.
static Value getSum(Operation *op) {
  auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
  return atomic && isBlindSum(atomic) ? atomic.getPtr() : Value();
}

std::optional<AtomicSum> TallySums::examine(BlockArgument buffer) {
  auto kernel = cast<triton::FuncOp>(buffer.getOwner()->getParentOp());
  unsigned place = buffer.getArgNumber();
  auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
  PlanOp plan = PlanOp::of(getOperation());
  auto gradient =
      plan ? dyn_cast_or_null<GradientAttr>(plan.getDescription(operand))
           : GradientAttr();
  if (!gradient)
    return std::nullopt;
  Type pointee = getPointee(primal.getArgument(operand.getIndex()).getType());
  if (gradient.getAccumulate() != Accumulate::Atomic ||
      gradient.getInit() != GradientInit::Zero ||
      !gradient.getChecks().empty() || !gradient.getReturned() ||
      !isHalf(pointee))
    return std::nullopt;
  AtomicSum sum{kernel, place, operand.getIndex(), {}};
  bool addsAlone = true;
  kernel.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (!pointer || !mayPointInto(pointer, buffer))
      return;
    // Lanes that share an element never add to it alone.
    addsAlone &= getSum(op) != nullptr && getBaseArgument(pointer) == buffer &&
                 !findSharedQuotient(pointer);
    if (addsAlone)
      sum.adds.push_back(cast<triton::AtomicRMWOp>(op));
  });
  return addsAlone ? std::optional(sum) : std::nullopt;
}

/// An upper bound of the elements that all additions of a launch touch, by the
/// size of a run; null if it is not known before the kernel runs.
ExprAttr
TallySums::countAll(const AtomicSum &sum,
                    llvm::function_ref<int64_t(triton::AtomicRMWOp)> together) {
  ExprAttr total = ExprAttr::get(&getContext(), 0);
  for (triton::AtomicRMWOp add : sum.adds) {
    auto site = add->getAttrOfType<IntegerAttr>(kSiteAttr);
    Operation *load = site ? sites.lookup(site.getInt()) : nullptr;
    ExprAttr times = load ? mostExecutions(load) : ExprAttr();
    if (!times)
      return {};
    int64_t each = elementsOf(load->getResult(0).getType()) / together(add);
    total = addOf(total, mulOf(times, each));
  }
  for (int axis : {0, 1, 2})
    total = mulOf(total, gridOf(&getContext(), axis));
  return dependsOnCounters(total) ? ExprAttr() : total;
}

/// An expression that is not zero in launches where counting pays.
ExprAttr TallySums::findCondition(const AtomicSum &sum,
                                  const SumBlocks &blocks) {
  ExprAttr touched = countAll(sum, [](triton::AtomicRMWOp) { return 1; });
  ExprAttr runs = countAll(sum, Runs::getLanes);
  if (!touched || !runs)
    return {};
  // Without counting, the whole sum is cleared, and read to be rounded: 8 bytes
  // for each element of the tensor, besides the gradient. With it, there are at
  // most 10 bytes for each element that is touched, and 12 for each block, the
  // gradient is cleared, and there are three more launches.
  ExprAttr more =
      addOf(mulOf(10, touched), addOf(mulOf(12, blocks.count()),
                                      Target::of(primal).traffic.ofTally));
  ExprAttr all = ExprAttr::get(&getContext(), ExprKind::Extent, sum.argument);
  ExprAttr gain = subOf(mulOf(8, all), more);
  return maxOf(0, minOf(gain, subOf(kMostRuns, runs)));
}

//===----------------------------------------------------------------------===//
// Addresses alone
//===----------------------------------------------------------------------===//

/// Whether a kernel that only adds zeros computes addresses and masks from
/// memory as it is before the backward, with integers only, and with little
/// work. Floats must not decide, since they may be rounded differently than in
/// the kernel that adds.
static bool repeatsAddresses(triton::FuncOp kernel) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    if (operand.getKind() == OperandKind::Buffer)
      return false;
  }
  return !kernel
              ->walk([](Operation *op) {
                bool isLong = isa<triton::DotOp, triton::ReduceOp,
                                  triton::ScanOp, scf::WhileOp>(op);
                bool isZero = isa<arith::ConstantOp>(op) || getSum(op);
                bool hasFloats = llvm::any_of(op->getOperandTypes(), isFloat) ||
                                 llvm::any_of(op->getResultTypes(), isFloat);
                return isLong || (hasFloats && !isZero)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Removes all effects but the additions to `buffer`, which then add zeros.
/// Fails if something depends on a removed one.
static LogicalResult keepAdditions(triton::FuncOp kernel,
                                   BlockArgument buffer) {
  SmallVector<Operation *> effects;
  kernel.walk([&](Operation *op) {
    if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
        !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      effects.push_back(op);
  });
  for (Operation *op : effects) {
    if (!op->use_empty())
      return failure();
    auto add = dyn_cast<triton::AtomicRMWOp>(op);
    if (!add || getBaseArgument(add.getPtr()) != buffer) {
      op->erase();
      continue;
    }
    OpBuilder b(add);
    add.getValMutable().assign(
        constantOf(b, add.getLoc(), add.getVal().getType(), 0.0));
  }
  return success();
}

/// Derives a kernel that adds zeros where the sum's kernel adds, and does
/// nothing else; null if it might add at other addresses.
triton::FuncOp TallySums::deriveAdditions(const AtomicSum &sum) {
  OpBuilder builder(sum.kernel);
  builder.setInsertionPointAfter(sum.kernel);
  auto kernel = cast<triton::FuncOp>(builder.clone(*sum.kernel));
  OpPassManager cleanup(triton::FuncOp::getOperationName());
  addCleanup(cleanup);
  if (succeeded(keepAdditions(kernel, kernel.getArgument(sum.place))) &&
      succeeded(runPipeline(cleanup, kernel))) {
    dropUnusedArguments(kernel, [](OperandKind) { return true; });
    if (repeatsAddresses(kernel))
      return kernel;
  }
  kernel.erase();
  return {};
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult TallySums::tally(const AtomicSum &sum) {
  // For runs of single lanes: the float32 elements in a sector of memory.
  int64_t length = Target::of(primal).traffic.sector / 4;
  for (triton::AtomicRMWOp add : sum.adds) {
    Runs::mark(add);
    length = std::max<int64_t>(length, llvm::PowerOf2Ceil(Runs::getSpan(add)));
  }
  SumBlocks blocks(&getContext(), sum.argument, length);
  ExprAttr when = findCondition(sum, blocks);
  triton::FuncOp additions = when ? deriveAdditions(sum) : triton::FuncOp();
  Subject subject(sum.adds.front(), sum.argument);
  if (additions) {
    kRemarks.passed(subject,
                    "in launches that touch few elements, contributions "
                    "are counted first, and those that are alone in a "
                    "block of {0} elements are stored",
                    length);
    return Tally(sum, blocks, when).lower(additions);
  }
  if (!when)
    kRemarks.missed(subject,
                    "a launch does not know how many elements are added "
                    "to");
  else
    kRemarks.missed(subject,
                    "the addresses alone cannot be computed by integers, "
                    "or with little work");
  for (triton::AtomicRMWOp add : sum.adds)
    add->removeAttr(kRunAxisAttr);
  return success();
}

void TallySums::transform() {
  primal = getDifferentiated(getOperation());
  sites = collectSites(primal);
  SmallVector<triton::FuncOp> backwards = getBackwards(getOperation());
  llvm::DenseMap<unsigned, unsigned> kernels; // that have a gradient
  for (triton::FuncOp backward : backwards)
    for (unsigned i = 0; i < backward.getNumArguments(); ++i) {
      auto operand = backward.getArgAttrOfType<OperandAttr>(i, kOperandAttr);
      if (operand.getKind() == OperandKind::Gradient)
        ++kernels[operand.getIndex()];
    }
  for (triton::FuncOp backward : backwards) {
    // In a kernel with another grid, additions do not correspond to the
    // forward's loads.
    if (!getGrid(backward).empty())
      continue;
    unsigned places = backward.getNumArguments();
    for (unsigned i = 0; i < places; ++i) {
      std::optional<AtomicSum> sum = examine(backward.getArgument(i));
      if (sum && kernels.lookup(sum->argument) == 1 && failed(tally(*sum)))
        return signalPassFailure();
    }
  }
}
