//===- IndirectAddress.cpp - Addresses with an index from memory ----------===//
#include "autodiff/Analysis/IndirectAddress.h"

#include "autodiff/Analysis/Pointers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using Address = ReasonOr<IndirectAddress>;

/// lhs + factor · rhs; none if both have an index.
static Address sum(Value lhs, Value rhs, int64_t factor) {
  Address a = IndirectAddress::of(lhs), b = IndirectAddress::of(rhs);
  if (!a || !b)
    return a ? b.why() : a.why();
  if (a->index && b->index)
    return because(lhs, "its address depends on two indices, at {0} and {1}",
                   a->index.getLoc(), b->index.getLoc());
  ScalarExpr scale = ScalarExpr::constant(factor);
  IndirectAddress total = b->index ? *b : *a;
  if (b->index)
    total.coefficient = b->coefficient * scale;
  total.known = a->known + b->known.scaled(scale);
  return total;
}

static Address product(Value lhs, Value rhs) {
  Address address = IndirectAddress::of(lhs);
  std::optional<LinearForm> factor = LinearForm::of(rhs);
  if (!address || !factor || !factor->isConstant())
    return std::nullopt;
  address->known = address->known.scaled(factor->constant);
  address->coefficient = address->coefficient * factor->constant;
  return address;
}

/// None if an axis of the index is dropped.
static Address moveAxes(Address address, const triton::AxisMap &map) {
  if (!address)
    return address;
  address->known.moveAxes(map);
  for (unsigned &axis : address->axes) {
    std::optional<unsigned> moved = map.toResult(axis);
    if (!moved)
      return std::nullopt;
    axis = *moved;
  }
  return address;
}

Address IndirectAddress::of(Value value) {
  if (std::optional<LinearForm> known = LinearForm::of(value))
    return IndirectAddress{*known, ScalarExpr::constant(0), {}, {}};
  Address address;
  if (Operation *op = value.getDefiningOp()) {
    if (isa<arith::AddIOp, triton::AddPtrOp>(op))
      address = sum(op->getOperand(0), op->getOperand(1), 1);
    else if (isa<arith::SubIOp>(op))
      address = sum(op->getOperand(0), op->getOperand(1), -1);
    else if (isa<arith::MulIOp>(op)) {
      address = product(op->getOperand(0), op->getOperand(1));
      if (!address)
        address = product(op->getOperand(1), op->getOperand(0));
    } else if (isa<arith::ExtSIOp>(op))
      address = of(op->getOperand(0));
    else if (auto map = triton::AxisMap::ofMove(op))
      address = moveAxes(of(op->getOperand(0)), *map);
  }
  if (address || isPointer(value.getType()) ||
      getElementTypeOrSelf(value.getType()).isInteger(1) ||
      !isa<IntegerType>(getElementTypeOrSelf(value.getType())))
    return address;
  IndirectAddress leaf{{}, ScalarExpr::constant(1), value, {}};
  if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
    leaf.axes = llvm::to_vector(llvm::seq<unsigned>(0, tile.getRank()));
  return leaf;
}
