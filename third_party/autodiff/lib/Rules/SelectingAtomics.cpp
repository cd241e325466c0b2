//===- SelectingAtomics.cpp - Maxima, minima and exchanges ----------------===//
#include "autodiff/Rules/SelectingAtomics.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Apart.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/UserName.h"

using namespace mlir;
using namespace mlir::autodiff;

/// An access through `base` that may change what `select` leaves in memory, in
/// another way than it does; null if there is none.
static Operation *findOther(triton::AtomicRMWOp select, BlockArgument base) {
  Operation *found = nullptr;
  base.getOwner()->walk([&](Operation *op) {
    if (op->getNumOperands() == 0 || isMemoryEffectFree(op) ||
        op->getNumRegions() || !isPointer(op->getOperand(0).getType()) ||
        !mayPointInto(op->getOperand(0), base))
      return WalkResult::advance();
    auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
    if (atomic && selectsContent(atomic))
      return WalkResult::advance();
    if (atomic && isBlindSum(atomic) &&
        (areApart(select, atomic) ||
         mutation::isMade("atomics:sums of what is selected")))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

bool mlir::autodiff::selectsFloats(triton::AtomicRMWOp op) {
  Type type = withoutBitcast(op.getVal()).getType();
  return selectsContent(op) && isDifferentiable(type) &&
         getPointee(withoutBitcast(op.getPtr()).getType()) ==
             getElementTypeOrSelf(type);
}

LogicalResult mlir::autodiff::checkSelects(triton::AtomicRMWOp select,
                                           BlockArgument base) {
  Operation *other = findOther(select, base);
  if (!other)
    return success();
  std::string position = spellPosition(other->getLoc());
  return select.emitError()
         << "no derivative rule for " << spellForUser(select)
         << " on a differentiated tensor that the kernel accesses in "
            "another way, too"
         << (position.empty() ? "" : ", at ") << position
         << ": both may go to one element, and what it holds in the end "
            "does not tell whose value that is; pass the parts of the "
            "tensor as arguments of their own, or use two tensors";
}

Value mlir::autodiff::createIsFinal(OpBuilder &b, Location loc, Value pointer,
                                    Value value, Value mask) {
  Value other;
  if (mask)
    other = zeroOf(b, loc, value.getType());
  Value final = triton::LoadOp::create(b, loc, pointer, mask, other);
  Type bits = withElementType(
      value.getType(),
      b.getIntegerType(
          getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth()));
  auto asBits = [&](Value x) -> Value {
    return triton::BitcastOp::create(b, loc, bits, x);
  };
  Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      asBits(final), asBits(value));
  if (!mask)
    return equal;
  return mutation::isMade("atomics:every value is the final one")
             ? mask
             : Value(arith::AndIOp::create(b, loc, mask, equal));
}
