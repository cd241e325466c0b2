//===- TrimOperands.cpp - Drop what no kernel of a plan uses --------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_TRIMOPERANDS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct TrimOperands : autodiff::impl::TrimOperandsBase<TrimOperands> {
  void runOnOperation() override;
  void dropItems(PlanOp plan);
  void numberBuffers(PlanOp plan);
};
} // namespace

/// The operand that a check is about: without it in a kernel, the check is
/// pointless. A check that a whole tensor is overwritten is also about its
/// gradient, which then starts from zero.
static OperandAttr findSubject(CheckOp check) {
  OperandAttr operand = check.getOperand();
  bool isOfGradient = check.getFact().getKind() == CheckKind::Bijective &&
                      operand.getKind() == OperandKind::Cotangent &&
                      !mutation::isMade("trim-operands:checks of gradients");
  return isOfGradient
             ? OperandAttr::get(check.getContext(), OperandKind::Gradient,
                                operand.getIndex())
             : operand;
}

/// Removes the plan's items about operands that no kernel takes.
void TrimOperands::dropItems(PlanOp plan) {
  llvm::DenseSet<OperandAttr> taken = collectOperands(getOperation()), read;
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    if (isBackward(kernel))
      collectOperands(kernel, read);
  auto drop = [&](Operation *item, OperandKind kind, unsigned number) {
    if (!taken.contains(OperandAttr::get(&getContext(), kind, number)))
      item->erase();
  };
  for (auto item : llvm::make_early_inc_range(plan.getItems<BufferOp>()))
    drop(item, OperandKind::Buffer, item.getNumber());
  for (auto item : llvm::make_early_inc_range(plan.getItems<GradientOp>()))
    drop(item, OperandKind::Gradient, item.getGradient().getArgument());
  for (auto item : llvm::make_early_inc_range(plan.getItems<CheckOp>()))
    if (!read.contains(item.getOperand()) && !read.contains(findSubject(item)))
      item.erase();
}

/// Passes have removed some buffers: numbers the others consecutively.
void TrimOperands::numberBuffers(PlanOp plan) {
  llvm::DenseMap<unsigned, unsigned> places;
  for (auto buffer : plan.getItems<BufferOp>()) {
    unsigned place = places.size();
    places[buffer.getNumber()] = place;
    buffer.setNumber(place);
  }
  if (mutation::isMade("trim-operands:numbers of other buffers"))
    for (auto &[number, place] : places)
      place = places.size() - 1 - place;
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
      auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
      if (operand && operand.getKind() == OperandKind::Buffer &&
          places.contains(operand.getIndex()))
        kernel.setArgAttr(index, kOperandAttr,
                          OperandAttr::get(&getContext(), OperandKind::Buffer,
                                           places.lookup(operand.getIndex())));
    }
}

void TrimOperands::runOnOperation() {
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    if (getRole(kernel) == "forward" || isBackward(kernel))
      dropUnusedArguments(kernel);
  if (PlanOp plan = PlanOp::of(getOperation())) {
    dropItems(plan);
    numberBuffers(plan);
  }
}
