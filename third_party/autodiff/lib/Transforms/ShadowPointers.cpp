//===- ShadowPointers.cpp - The same addresses in another buffer ----------===//
#include "ShadowPointers.h"

#include "autodiff/Analysis/Pointers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::autodiff;

Type ShadowPointers::shadowType(Type pointer) const {
  if (auto tensor = dyn_cast<RankedTensorType>(pointer))
    return tensor.clone(shadow.getType());
  return shadow.getType();
}

Value ShadowPointers::get(Value pointer) {
  if (pointer == primal)
    return shadow;
  if (Value value = known.lookup(pointer))
    return value;
  Operation *op = pointer.getDefiningOp();
  OpOperand *source = op ? getPointerSource(op) : nullptr;
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  if (!source && !select) {
    emitError(pointer.getLoc())
        << "this pointer is chosen by control flow, so the gradient's address "
           "cannot be formed; select an offset instead of a pointer";
    return {};
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *copy = op->clone();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isPointer(operand.get().getType()))
      continue;
    Value mapped = get(operand.get());
    if (!mapped) {
      copy->destroy();
      return {};
    }
    copy->setOperand(operand.getOperandNumber(), mapped);
  }
  copy->getResult(0).setType(shadowType(pointer.getType()));
  builder.insert(copy);
  return known[pointer] = copy->getResult(0);
}
