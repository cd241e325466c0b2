//===- LiftAssembly.cpp - Inline assembly between differentiated values ---===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Assembly/Lift.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LIFTASSEMBLY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LiftAssembly : autodiff::impl::LiftAssemblyBase<LiftAssembly> {
  using LiftAssemblyBase::LiftAssemblyBase;

  void runOnOperation() override;
};
} // namespace

namespace {
/// Floats that assembly makes of bits.
struct Reinterpreted {
  std::string text;
  SmallVector<Operation *> casts;
};
} // namespace

void LiftAssembly::runOnOperation() {
  triton::FuncOp kernel = getOrCreateDifferentiated(getOperation());
  if (!kernel)
    return;
  auto analyse = [&] {
    return Activity(kernel,
                    allWanted ? findLoaded(kernel)
                              : ArgumentSet(wanted.begin(), wanted.end()),
                    allCotangents
                        ? findStored(kernel)
                        : ArgumentSet(cotangents.begin(), cotangents.end()));
  };
  constexpr llvm::StringLiteral kWayOut =
      "; give its rule with register_vjp (docs/python.md), or detach the "
      "tensors that it depends on";
  Activity activity = analyse();
  SmallVector<triton::ElementwiseInlineAsmOp> active;
  kernel.walk([&](triton::ElementwiseInlineAsmOp op) {
    auto isActive = [&](Value value) { return activity.isActive(value); };
    auto isVaried = [&](Value value) { return activity.isVaried(value); };
    if (llvm::any_of(op->getResults(), isActive) &&
        llvm::any_of(op->getOperands(), isVaried))
      active.push_back(op);
  });
  std::vector<Reinterpreted> reinterpreted;
  for (triton::ElementwiseInlineAsmOp op : active) {
    Reinterpreted bits{op.getAsmString().trim().str(), {}};
    SmallVector<Operation *> emitted;
    if (llvm::Error reason = liftAssembly(op, &emitted)) {
      op->emitError() << "no derivative rule for the inline assembly \""
                      << bits.text << "\" ('" << op->getName()
                      << "'), which lies between a differentiated input and an "
                         "output: "
                      << llvm::toString(std::move(reason)) << kWayOut;
      return signalPassFailure();
    }
    for (Operation *cast : emitted)
      if (isa<triton::BitcastOp>(cast) && isFloat(cast->getResult(0).getType()))
        bits.casts.push_back(cast);
    if (!bits.casts.empty())
      reinterpreted.push_back(std::move(bits));
  }
  if (reinterpreted.empty())
    return;
  // Bits of a float have a derivative only if it is zero.
  Activity remaining = analyse();
  for (Reinterpreted &bits : reinterpreted)
    for (Operation *cast : bits.casts)
      if (remaining.isActive(cast->getResult(0))) {
        cast->emitError() << "derivative lost in the inline assembly \""
                          << bits.text << "\" ('"
                          << triton::ElementwiseInlineAsmOp::getOperationName()
                          << "'), which computes with the bits of a float that "
                             "depends on a differentiated input"
                          << kWayOut;
        return signalPassFailure();
      }
}
