//===- Sign.cpp - Values that cannot be negative --------------------------===//
#include "autodiff/Analysis/Sign.h"

#include "autodiff/Analysis/Moves.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

static Sign ofConstant(const APFloat &number) {
  if (number.isZero())
    return Sign::NotNegative;
  return number.isNegative() || number.isNaN() ? Sign::Unknown : Sign::Positive;
}

/// A carried value is not negative if its initial value is not, and an
/// iteration that starts so keeps it so.
Sign Signs::ofLoop(OpResult result) {
  auto loop = cast<scf::ForOp>(result.getOwner());
  unsigned index = result.getResultNumber();
  if (of(loop.getInitArgs()[index]) == Sign::Unknown)
    return Sign::Unknown;
  Signs inside = *this;
  inside.known[loop.getRegionIterArg(index)] = Sign::NotNegative;
  return inside.of(loop.getYieldedValues()[index]);
}

Sign Signs::compute(Value value) {
  APFloat number(0.0);
  if (matchPattern(value, m_ConstantFloat(&number)))
    return ofConstant(number);
  Operation *op = value.getDefiningOp();
  if (!op)
    return Sign::Unknown;
  if (isa<scf::ForOp>(op))
    return ofLoop(cast<OpResult>(value));
  auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return Sign::Positive;
  // A sum is positive if one of its terms is, and none is negative.
  if (isa<arith::AddFOp>(op)) {
    auto [less, more] = std::minmax(operand(0), operand(1));
    return less == Sign::Unknown ? less : more;
  }
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return std::min(operand(0), operand(1));
  if (isa<arith::SelectOp>(op))
    return std::min(operand(1), operand(2));
  if (auto reduce = dyn_cast<triton::ReduceOp>(op))
    return isa_and_present<arith::AddFOp>(reduce.getSingleCombiner())
               ? operand(0)
               : Sign::Unknown;
  if (isa<ResidualOp>(op) || rearranges(op))
    return operand(0);
  return Sign::Unknown;
}

Sign Signs::of(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  Sign sign = compute(value);
  known[value] = sign;
  return sign;
}
