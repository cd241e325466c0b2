//===- ShadowPointers.cpp - The same addresses in another buffer ----------===//
#include "ShadowPointers.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Position.h"

using namespace mlir;
using namespace mlir::autodiff;

BlockArgument mlir::autodiff::appendShadow(triton::FuncOp kernel,
                                           BlockArgument primal,
                                           OperandKind kind, Type element,
                                           Attribute description) {
  auto type = cast<triton::PointerType>(primal.getType());
  unsigned argument = primal.getArgNumber();
  BlockArgument added = appendOperand(
      kernel, triton::PointerType::get(element, type.getAddressSpace()),
      OperandAttr::get(kernel.getContext(), kind, argument), description);
  if (Attribute divisibility = kernel.getArgAttr(argument, "tt.divisibility"))
    kernel.setArgAttr(added.getArgNumber(), "tt.divisibility", divisibility);
  return added;
}

Type ShadowPointers::shadowType(Type pointer) const {
  if (auto tensor = dyn_cast<RankedTensorType>(pointer))
    return tensor.clone(shadow.getType());
  return shadow.getType();
}

/// The pointers for lanes of `pointer` that point into other arguments only.
Value ShadowPointers::anyAddress(Value pointer) {
  OpBuilder builder(shadow.getContext());
  builder.setInsertionPointToStart(shadow.getOwner());
  Type type = shadowType(pointer.getType());
  if (type == shadow.getType())
    return shadow;
  return triton::SplatOp::create(builder, pointer.getLoc(), type, shadow);
}

Value ShadowPointers::get(Value pointer) {
  if (pointer == primal)
    return shadow;
  if (Value value = known.lookup(pointer))
    return value;
  if (!mayPointInto(pointer, primal))
    return known[pointer] = anyAddress(pointer);
  Operation *op = pointer.getDefiningOp();
  OpOperand *source = op ? getPointerSource(op) : nullptr;
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  if (!source && !select) {
    emitError(pointer.getLoc())
        << "the gradient's address cannot be formed as this pointer is; select "
           "an offset instead of a pointer";
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
  copy->setLoc(ofAdjoint(op->getLoc(), findVariable(op->getLoc())));
  builder.insert(copy);
  return known[pointer] = copy->getResult(0);
}

Value ShadowPointers::lanes(Value pointer) {
  if (Value value = knownLanes.lookup(pointer))
    return value;
  Type type = triton::replaceElementType(
      pointer.getType(), IntegerType::get(pointer.getContext(), 1));
  BlockArgument base = getBaseArgument(pointer);
  if (base || !mayPointInto(pointer, primal)) {
    OpBuilder builder(shadow.getContext());
    builder.setInsertionPointToStart(shadow.getOwner());
    TypedAttr value = builder.getBoolAttr(base == primal);
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      value = DenseElementsAttr::get(tensor, Attribute(value));
    return knownLanes[pointer] =
               arith::ConstantOp::create(builder, pointer.getLoc(), value);
  }
  // get() has refused all other operations.
  Operation *op = pointer.getDefiningOp();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value value;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    value = arith::SelectOp::create(
        builder, op->getLoc(), select.getCondition(),
        lanes(select.getTrueValue()), lanes(select.getFalseValue()));
  else if (isa<triton::AddPtrOp>(op))
    value = lanes(op->getOperand(0));
  else
    value = builder
                .create(OperationState(op->getLoc(), op->getName(),
                                       lanes(op->getOperand(0)), type,
                                       op->getAttrs()))
                ->getResult(0);
  return knownLanes[pointer] = value;
}

Value ShadowPointers::mask(Value pointer, Value mask, OpBuilder &builder) {
  if (getBaseArgument(pointer) == primal)
    return mask;
  Value based = lanes(pointer);
  if (!mask)
    return based;
  return arith::AndIOp::create(builder, pointer.getLoc(), mask, based);
}
