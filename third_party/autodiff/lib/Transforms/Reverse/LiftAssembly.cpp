//===- LiftAssembly.cpp - Inline assembly between differentiated values ---===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Assembly/Lift.h"
#include "autodiff/Builders/DerivedKernels.h"
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

  void transform() override;
};
} // namespace

namespace {
/// Floats that assembly computes from bits.
struct Reinterpreted {
  std::string text;
  SmallVector<Operation *> casts;
};
} // namespace

void LiftAssembly::transform() {
  triton::FuncOp kernel = getOrCreateDifferentiated(getOperation());
  auto analyse = [&] {
    return Activity(kernel, findWanted(kernel, allWanted, wanted),
                    findWithCotangents(kernel, allCotangents, cotangents));
  };
  constexpr llvm::StringLiteral kWayOut =
      "; give its rule with register_vjp (docs/python.md), or detach the "
      "tensors that it depends on";
  SmallVector<triton::ElementwiseInlineAsmOp> assembly;
  kernel.walk(
      [&](triton::ElementwiseInlineAsmOp op) { assembly.push_back(op); });
  if (assembly.empty())
    return;
  Activity activity = analyse();
  auto isActive = [&](Value value) { return activity.isActive(value); };
  auto isVaried = [&](Value value) { return activity.isVaried(value); };
  // Activity is not known for values that replaced others.
  llvm::erase_if(assembly, [&](triton::ElementwiseInlineAsmOp op) {
    return llvm::none_of(op->getResults(), isActive) ||
           llvm::none_of(op->getOperands(), isVaried);
  });
  auto refuse = [&](triton::ElementwiseInlineAsmOp op, llvm::Error reason) {
    op->emitError() << "no derivative rule for the inline assembly \""
                    << op.getAsmString().trim() << "\" ('" << op->getName()
                    << "'), which lies between a differentiated input and an "
                       "output: "
                    << llvm::toString(std::move(reason)) << kWayOut;
    return signalPassFailure();
  };
  ptx::Copies copies(kernel);
  for (triton::ElementwiseInlineAsmOp op : assembly)
    if (llvm::Error reason = checkRegisters(op, copies))
      return refuse(op, std::move(reason));
  std::vector<Reinterpreted> reinterpreted;
  for (triton::ElementwiseInlineAsmOp op : assembly) {
    Reinterpreted bits{op.getAsmString().trim().str(), {}};
    SmallVector<Operation *> emitted;
    if (llvm::Error reason = liftAssembly(op, &emitted))
      return refuse(op, std::move(reason));
    for (Operation *cast : emitted)
      if (isa<triton::BitcastOp, arith::SIToFPOp, arith::UIToFPOp>(cast) &&
          isFloat(cast->getResult(0).getType()))
        bits.casts.push_back(cast);
    if (!bits.casts.empty())
      reinterpreted.push_back(std::move(bits));
  }
  if (reinterpreted.empty())
    return;
  // The derivative of a float's bits has to be zero.
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
