//===- Writes.cpp - Why writes stay inside of memory ----------------------===//
#include "autodiff/Analysis/Writes.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"

using namespace mlir;
using namespace mlir::autodiff;

llvm::StringRef mlir::autodiff::stringifyInside(Inside inside) {
  switch (inside) {
  case Inside::Proof:
    return "proof";
  case Inside::Mask:
    return "mask";
  case Inside::Check:
    return "check";
  case Inside::Room:
    return "room";
  case Inside::Nothing:
    break;
  }
  return "nothing";
}

static Inside findInside(Operation *op, GradientAttr gradient, bool isSum) {
  if (gradient.getConfined() == Confined::All ||
      (isSum && gradient.getConfined() == Confined::Sums))
    return getMask(op) ? Inside::Mask : Inside::Nothing;
  // An upstream gradient is taken where the user's kernel stores.
  auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
  if (atomic && atomic.getAtomicRmwOp() == triton::RMWOp::XCHG)
    return Inside::Proof;
  ArrayRef<CheckAttr> checks = gradient.getChecks();
  bool areExact = !checks.empty() && llvm::all_of(checks, [](CheckAttr check) {
    return check.getKind() == CheckKind::Bijective;
  });
  bool isChecked = areExact && !gradient.getRemainder() &&
                   gradient.getAccumulate() != Accumulate::Atomic;
  if (isChecked)
    return Inside::Check;
  // What is beyond a partial sum is another one.
  bool hasRoom = gradient.getAccumulate() != Accumulate::Partial &&
                 !(checks.empty() && gradient.getReach().empty());
  return hasRoom ? Inside::Room : Inside::Nothing;
}

/// Why a write of a kernel with this role, through an operand, stays inside.
static Inside findInside(Operation *op, OperandAttr operand,
                         llvm::StringRef role, PlanOp plan) {
  OperandKind kind = operand.getKind();
  switch (kind) {
  case OperandKind::Gradient:
  case OperandKind::Rounded: {
    // They go through the blocks of the buffer.
    if (role == "clear" || role == "round")
      return Inside::Proof;
    auto gradient = OperandAttr::get(plan.getContext(), OperandKind::Gradient,
                                     operand.getIndex());
    auto described =
        dyn_cast_or_null<GradientAttr>(plan.getDescription(gradient));
    // A part of the sum that is rounded has the mask of what is added.
    bool isSum = kind == OperandKind::Rounded || !isa<triton::StoreOp>(op);
    return described ? findInside(op, described, isSum) : Inside::Nothing;
  }
  // A place for each program and iteration, or each access.
  case OperandKind::Buffer:
  case OperandKind::Counters:
  case OperandKind::Claims:
  case OperandKind::Violations:
    return Inside::Proof;
  case OperandKind::Argument:
    return role == "forward" ? Inside::Proof : Inside::Nothing;
  default:
    return Inside::Nothing;
  }
}

SmallVector<Write> mlir::autodiff::findWrites(triton::FuncOp kernel,
                                              PlanOp plan) {
  llvm::StringRef role = getRole(kernel);
  SmallVector<Write> writes;
  kernel.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (!pointer || !mayWrite(op))
      return;
    SmallVector<BlockArgument> bases = getBaseArguments(pointer);
    if (bases.empty())
      writes.push_back({op, kernel.getNumArguments(),
                        role == "forward" ? Inside::Proof : Inside::Nothing});
    for (BlockArgument base : bases) {
      unsigned place = base.getArgNumber();
      auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
      writes.push_back(
          {op, place,
           operand ? findInside(op, operand, role, plan) : Inside::Nothing});
    }
  });
  return writes;
}
