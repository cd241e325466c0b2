//===- GatheredForm.cpp - Addresses with an index from memory -------------===//
#include "autodiff/Analysis/GatheredForm.h"

#include "autodiff/Analysis/Pointers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using Form = ReasonOr<GatheredForm>;

/// lhs + factor · rhs; none if both have an index.
static Form sum(Value lhs, Value rhs, int64_t factor) {
  Form a = GatheredForm::of(lhs), b = GatheredForm::of(rhs);
  if (!a || !b)
    return a ? b.why() : a.why();
  if (a->index && b->index)
    return because(lhs, "its address depends on two indices, at {0} and {1}",
                   a->index.getLoc(), b->index.getLoc());
  ScalarExpr scale = ScalarExpr::constant(factor);
  GatheredForm total = b->index ? *b : *a;
  if (b->index)
    total.coefficient = b->coefficient * scale;
  total.known = a->known + b->known.scaled(scale);
  return total;
}

static Form product(Value lhs, Value rhs) {
  Form form = GatheredForm::of(lhs);
  std::optional<LinearForm> factor = LinearForm::of(rhs);
  if (!form || !factor || !factor->isConstant())
    return std::nullopt;
  form->known = form->known.scaled(factor->constant);
  form->coefficient = form->coefficient * factor->constant;
  return form;
}

/// None if an axis of the index is dropped.
static Form moveAxes(Form form, const triton::AxisMap &map) {
  if (!form)
    return form;
  form->known.moveAxes(map);
  for (unsigned &axis : form->axes) {
    std::optional<unsigned> moved = map.toResult(axis);
    if (!moved)
      return std::nullopt;
    axis = *moved;
  }
  return form;
}

Form GatheredForm::of(Value value) {
  if (std::optional<LinearForm> known = LinearForm::of(value))
    return GatheredForm{*known, ScalarExpr::constant(0), {}, {}};
  Form form;
  if (Operation *op = value.getDefiningOp()) {
    if (isa<arith::AddIOp, triton::AddPtrOp>(op))
      form = sum(op->getOperand(0), op->getOperand(1), 1);
    else if (isa<arith::SubIOp>(op))
      form = sum(op->getOperand(0), op->getOperand(1), -1);
    else if (isa<arith::MulIOp>(op)) {
      form = product(op->getOperand(0), op->getOperand(1));
      if (!form)
        form = product(op->getOperand(1), op->getOperand(0));
    } else if (isa<arith::ExtSIOp>(op))
      form = of(op->getOperand(0));
    else if (auto map = triton::AxisMap::ofMove(op))
      form = moveAxes(of(op->getOperand(0)), *map);
  }
  if (form || isPointer(value.getType()) ||
      getElementTypeOrSelf(value.getType()).isInteger(1) ||
      !isa<IntegerType>(getElementTypeOrSelf(value.getType())))
    return form;
  GatheredForm leaf{{}, ScalarExpr::constant(1), value, {}};
  if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
    leaf.axes = llvm::to_vector(llvm::seq<unsigned>(0, tile.getRank()));
  return leaf;
}
