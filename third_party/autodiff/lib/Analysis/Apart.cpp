//===- Apart.cpp - Accesses that never touch one element ------------------===//
#include "autodiff/Analysis/Apart.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <numeric>

using namespace mlir;
using namespace mlir::autodiff;

/// Whether the two lie on different sides of a branch that all programs of a
/// launch take alike.
static bool excludeEachOther(Operation *a, Operation *b) {
  for (auto branch = a->getParentOfType<scf::IfOp>(); branch;
       branch = branch->getParentOfType<scf::IfOp>()) {
    Region *side = b->getParentRegion();
    while (side && side->getParentOp() != branch)
      side = side->getParentRegion();
    if (!side || side->isAncestor(a->getParentRegion()))
      continue;
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    if (failed(getBackwardSlice(branch.getCondition(), &slice, options)))
      continue;
    auto isUniform = [](Operation *op) {
      return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
             !isa<triton::GetProgramIdOp>(op) &&
             llvm::all_of(op->getOperands(), [](Value operand) {
               auto argument = dyn_cast<BlockArgument>(operand);
               return !argument ||
                      isa<triton::FuncOp>(argument.getOwner()->getParentOp());
             });
    };
    if (llvm::all_of(slice, isUniform))
      return true;
  }
  return false;
}

/// Whether all addresses of one leave another remainder than those of the
/// other.
static bool differInRemainder(const LinearForm &a, const LinearForm &b) {
  std::optional<int64_t> distance = (a - b).constant.getConstant();
  int64_t divisor = 0;
  for (const LinearForm *form : {&a, &b})
    for (const LinearForm::Term &term : form->terms)
      divisor = std::gcd(divisor, term.coefficient.asMultiple().second);
  return distance && (divisor ? *distance % divisor : *distance) != 0;
}

/// Whether an address depends on what is loaded.
static bool isLoaded(Value pointer) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = false;
  return succeeded(getBackwardSlice(pointer, &slice, options)) &&
         llvm::any_of(slice, llvm::IsaPred<triton::LoadOp>);
}

bool mlir::autodiff::areApart(Operation *a, Operation *b) {
  if (excludeEachOther(a, b))
    return true;
  // Atomics on the bits of floats have a cast pointer.
  Value one = withoutBitcast(a->getOperand(0));
  Value other = withoutBitcast(b->getOperand(0));
  if (one == other)
    return false;
  auto form = LinearForm::of(one), otherForm = LinearForm::of(other);
  if (form && otherForm)
    return differInRemainder(*form, *otherForm);
  return isLoaded(one) || isLoaded(other);
}
