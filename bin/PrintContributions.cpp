//===- PrintContributions.cpp - a pass that shows contributions -----------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "PrintContributions.h"

#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Needs.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PrintContributions
    : PassWrapper<PrintContributions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintContributions)
  StringRef getArgument() const final { return "print-contributions"; }
  StringRef getDescription() const final {
    return "Say what is known of contributions to gradients";
  }
  void runOnOperation() override;
  void print(Contribution contribution, bool isOwned);
};
} // namespace

static std::string describeLoops(Contribution contribution) {
  std::string text = "no loop or branch";
  if (std::optional<LoopNest> nest = contribution.getNest()) {
    if (!nest->empty())
      text = std::to_string(nest->size()) + " parallel loops";
  } else {
    text = contribution.getLoop() ? "an ordered loop" : "a branch";
  }
  return text + (contribution.getPrimalLoop() ? ", its site in a loop" : "");
}

void PrintContributions::print(Contribution contribution, bool isOwned) {
  auto remark = [&](StringRef part) {
    return contribution.emitRemark(part) << ": ";
  };
  auto &all = getAnalysis<Contributions>();
  remark("domain") << contribution.getPtr().getType() << ", "
                   << describeLoops(contribution);
  if (ReasonOr<AccessSpace> space = contribution.getSpace()) {
    remark("elements") << (contribution.getExactSpace() ? "exactly "
                                                        : "at most ")
                       << space->toCheck(CheckKind::Distinct,
                                         contribution.getArgument());
    InFlightDiagnostic sharing = remark("shared");
    for (const ScalarExpr &digit : space->findShared(all.getDigits()))
      sharing << "by programs along " << reasons::spell(&getContext(), digit)
              << ", ";
    sharing << (all.findSharing(*space, contribution) ? "owned by several"
                                                      : "owned by one");
  } else {
    remark("elements") << "not known";
  }
  remark("guards") << (contribution.getMask() ? "a mask" : "no mask") << ", "
                   << contribution.getBranches().size() << " branches";
  remark("gradient") << "of argument " << contribution.getArgument()
                     << (isOwned ? ", this kernel's alone"
                                 : ", other kernels add to it");
}

void PrintContributions::runOnOperation() {
  if (failed(checkNeeds(getArgument(), getOperation(),
                        {Need::Kernel, Need::OneBlock, Need::Backward})))
    return signalPassFailure();
  auto &all = getAnalysis<Contributions>();
  for (triton::FuncOp kernel : getBackwards(getOperation())) {
    GradientUses owned = all.ownedBy(kernel);
    for (auto &[argument, use] : all.in(kernel))
      for (Contribution contribution : use.contributions)
        print(contribution, owned.count(argument));
  }
}

void mlir::autodiff::registerPrintContributions() {
  PassRegistration<PrintContributions>();
}
