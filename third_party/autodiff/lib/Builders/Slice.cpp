//===- Slice.cpp - What computes a value, once more elsewhere -------------===//
#include "autodiff/Builders/Slice.h"

#include "autodiff/Support/UsedValues.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::visitSlice(Value value, AskElsewhere ask,
                                llvm::function_ref<void(Operation *)> visit) {
  Elsewhere answer = ask(value);
  if (answer != Elsewhere::Computed)
    return answer == Elsewhere::Known;
  Operation *op = value.getDefiningOp();
  for (Value used : getUsedValues(op))
    if (!visitSlice(used, ask, visit))
      return false;
  visit(op);
  return true;
}

bool mlir::autodiff::collectSlice(Value value, SetVector<Operation *> &slice,
                                  AskElsewhere ask) {
  auto askOthers = [&](Value each) {
    return slice.contains(each.getDefiningOp()) ? Elsewhere::Known : ask(each);
  };
  return visitSlice(value, askOthers, [&](Operation *op) { slice.insert(op); });
}

Value mlir::autodiff::recompute(OpBuilder &builder, Value value, IRMapping &map,
                                AskElsewhere ask) {
  auto askOthers = [&](Value each) {
    return map.contains(each) ? Elsewhere::Known : ask(each);
  };
  auto copy = [&](Operation *op) { builder.clone(*op, map); };
  return visitSlice(value, askOthers, copy) ? map.lookupOrDefault(value)
                                            : Value();
}

Operation *mlir::autodiff::cloneOnto(OpBuilder &builder, Operation *op,
                                     ValueRange operands,
                                     llvm::function_ref<Type(Type)> typeFor,
                                     IRMapping map) {
  Operation *copy = builder.clone(*op, map);
  copy->setOperands(operands);
  for (Value result : copy->getResults())
    result.setType(typeFor(result.getType()));
  return copy;
}
