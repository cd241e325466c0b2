//===- Differentiation.cpp - What a rule sees, either way -----------------===//
#include "autodiff/Rules/Differentiation.h"

#include "autodiff/Builders/FirstOrderStop.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

llvm::BitVector Differentiation::findActive(ValueRange values) const {
  llvm::BitVector active(values.size());
  for (auto [index, value] : llvm::enumerate(values))
    active[index] = isActive(value);
  return active;
}

bool Differentiation::takesPart(Operation &op) const {
  if (isa<triton::StoreOp, triton::AtomicRMWOp>(op))
    return true;
  if (activity.isSpin(&op))
    return false;
  if (op.getNumRegions() && !isa<triton::ReduceOp, triton::ScanOp,
                                 triton::MapElementwiseOp, CustomVjpOp>(op)) {
    // A region counts if there is an active value or an effect inside.
    bool matters = false;
    op.walk([&](Operation *inner) {
      matters |= isa<triton::StoreOp, triton::AtomicRMWOp>(inner) ||
                 llvm::any_of(inner->getResults(),
                              [&](Value result) { return isActive(result); });
    });
    return matters;
  }
  return llvm::any_of(op.getResults(), [&](Value result) {
    return isDifferentiable(result.getType()) && isActive(result);
  });
}

SmallVector<ResidualOp, 1> autodiff::findResiduals(Value value) {
  SmallVector<ResidualOp, 1> residuals;
  if (!matchPattern(value, m_Constant()))
    for (Operation *user : value.getUsers())
      if (auto residual = dyn_cast<ResidualOp>(user))
        residuals.push_back(residual);
  return residuals;
}

Value Differentiation::primal(Value primal) const {
  for (ResidualOp residual : findResiduals(primal))
    if (Value reloadable = primals.lookupOrNull(residual.getResult()))
      return reloadable;
  return primals.lookupOrDefault(primal);
}

Type Differentiation::typeFor(Type primal) {
  Type element = getElementTypeOrSelf(primal);
  if (element.isF64())
    return primal;
  return withElementType(primal, Float32Type::get(primal.getContext()));
}

Value Differentiation::widen(Value value) {
  return castFloat(builder, location, value,
                   getElementTypeOrSelf(typeFor(value.getType())));
}

Value Differentiation::constant(Type primalType, double number) {
  return constantOf(builder, location, typeFor(primalType), number);
}

Operation *Differentiation::clone(Operation &op) {
  // `clone` keeps block arguments that are mapped already. Such a mapping may
  // be from an earlier copy of a block around this one, and belong to another
  // region.
  op.walk([&](Block *inner) {
    for (BlockArgument argument : inner->getArguments())
      primals.erase(argument);
  });
  return builder.clone(op, primals);
}

void mlir::autodiff::keepMarkers(Operation *root, bool withInputs) {
  root->walk([&](Operation *op) {
    OpBuilder b(op);
    auto custom = dyn_cast<CustomVjpOp>(op);
    if (isa<StopGradientOp>(op) && op->hasAttr(kFirstOrderAttr) &&
        !mutation::isMade("markers:stops of first derivatives"))
      op->replaceAllUsesWith(op->getOperands());
    else if (custom && custom.getCall())
      for (auto [result, value] :
           llvm::zip_equal(custom.getResults(), custom.getValues()))
        result.replaceAllUsesWith(
            OnceOp::create(b, op->getLoc(), value,
                           withInputs ? custom.getInputs() : ValueRange()));
    else if (custom)
      op->replaceAllUsesWith(custom.getValues());
    else
      return;
    op->erase();
  });
}

void mlir::autodiff::dropMarkers(Operation *root) {
  root->walk([](Operation *op) {
    op->removeDiscardableAttr(kUnlessZeroAttr);
    if (auto custom = dyn_cast<CustomVjpOp>(op))
      custom->replaceAllUsesWith(custom.getValues());
    else if (isa<StopGradientOp, OnceOp>(op))
      op->replaceAllUsesWith(ValueRange(op->getOperand(0)));
    else
      return;
    op->erase();
  });
}
