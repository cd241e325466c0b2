//===- DropReferences.cpp - What exponents are taken relative to ----------===//
//
// The decay from position j to i is e^(gᵢ − gⱼ). To be a matrix product, it is
// written e^(gᵢ − r) · e^(r − gⱼ). The reference r is one of the g that is near
// both, and keeps the factors in range. The result does not depend on r, so the
// derivative by r is zero: a sum of two terms that cancel, but in low precision
// not exactly. Where scaling degrees (ScalingDegrees.h) prove that, no
// derivative flows through r.
//
//===----------------------------------------------------------------------===//
#include "FreeMaxima.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/FirstOrderStop.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPREFERENCES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether `value`, or a sum with it, becomes an exponent: then a shift of it
/// is a factor of what is computed, and factors may cancel.
static bool leadsToExponents(Value value) {
  llvm::SetVector<Value> moved;
  moved.insert(value);
  bool found = false;
  for (unsigned next = 0; next < moved.size(); ++next)
    for (Operation *user : moved[next].getUsers()) {
      if (isa<math::ExpOp, math::Exp2Op>(user))
        found = true;
      else if (rearranges(user) ||
               isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
                   arith::SelectOp, ResidualOp>(user))
        moved.insert(user->getResult(0));
      else
        return false;
    }
  return found;
}

/// The value that an operand of a difference is, up to its shape and a
/// constant.
static Value findReference(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto isFixed = [](Value operand) {
      return matchPattern(operand, m_Constant());
    };
    bool isShifted = isa<arith::AddFOp, arith::SubFOp>(op);
    if (rearranges(op) || (isShifted && isFixed(op->getOperand(1))))
      value = op->getOperand(0);
    else
      // Other maxima are handled by autodiff-drop-maxima.
      return isFixed(value) || isa<ResidualOp>(op) ? Value() : value;
  }
  return {};
}

namespace {
struct DropReferences : autodiff::impl::DropReferencesBase<DropReferences> {
  void transform() override {
    triton::FuncOp kernel = getDifferentiated(getOperation());
    if (mutation::isMade("references:not dropped"))
      return;
    llvm::SetVector<Value> references;
    kernel.walk([&](arith::SubFOp difference) {
      for (Value operand : difference->getOperands())
        if (Value reference = findReference(operand);
            reference && leadsToExponents(reference))
          references.insert(reference);
    });
    llvm::for_each(findFree(kernel, references.takeVector()), stopFirstOrder);
  }
};
} // namespace
