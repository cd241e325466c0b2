//===- IndirectAddress.cpp - Addresses with an index from memory ----------===//
#include "autodiff/Analysis/IndirectAddress.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "autodiff/Analysis/Pointers.h"

using namespace mlir;
using namespace mlir::autodiff;
using Address = ReasonOr<IndirectAddress>;

namespace {
struct AddressFinder : IndexVisitor<AddressFinder, Address> {
  Address ofSum(Value a, Value b) { return combine(a, b, 1); }
  Address ofDifference(Value a, Value b) { return combine(a, b, -1); }
  Address combine(Value lhs, Value rhs, int64_t factor);
  Address ofProduct(Value a, Value b);
  Address ofSame(Value value) { return IndirectAddress::of(value); }
  Address ofMoved(Value value, const triton::AxisMap &map);
  Address ofRange(triton::MakeRangeOp) { return {}; }
  Address ofOther(Operation *) { return {}; }
};
} // namespace

/// lhs + factor · rhs; none if both have an index.
Address AddressFinder::combine(Value lhs, Value rhs, int64_t factor) {
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

static Address scale(Value value, Value by) {
  Address address = IndirectAddress::of(value);
  std::optional<LinearForm> factor = LinearForm::of(by);
  if (!address || !factor || !factor->isConstant())
    return std::nullopt;
  address->known = address->known.scaled(factor->constant);
  address->coefficient = address->coefficient * factor->constant;
  return address;
}

Address AddressFinder::ofProduct(Value a, Value b) {
  Address address = scale(a, b);
  return address ? address : scale(b, a);
}

/// None if an axis of the index is dropped.
Address AddressFinder::ofMoved(Value value, const triton::AxisMap &map) {
  Address address = IndirectAddress::of(value);
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
  if (Operation *op = value.getDefiningOp())
    address = AddressFinder().visit(op);
  if (address || isPointer(value.getType()) ||
      getElementTypeOrSelf(value.getType()).isInteger(1) ||
      !isa<IntegerType>(getElementTypeOrSelf(value.getType())))
    return address;
  IndirectAddress leaf{{}, ScalarExpr::constant(1), value, {}};
  if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
    leaf.axes = llvm::to_vector(llvm::seq<unsigned>(0, tile.getRank()));
  return leaf;
}
