//===- Reciprocals.cpp - Products with 1/l as quotients -------------------===//
#include "Reciprocals.h"

#include "Combination.h"
#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// Whether an exponential is the reciprocal of `sum`, e^(−log l).
static bool isReciprocal(Operation *exponential, Value sum) {
  Combination exponent = Combination::of(exponential->getOperand(0));
  double base = isa<math::ExpOp>(exponential) ? 1 : M_LN2;
  return exponent.size() == 1 &&
         areClose(base * exponent.factorOfLog(sum), -1, sum.getType());
}

/// The reciprocals of `sum`.
static SmallVector<Operation *> findReciprocals(Value sum) {
  SmallVector<Operation *> found;
  llvm::SetVector<Value> pending;
  pending.insert(sum);
  for (unsigned next = 0; next < pending.size(); ++next)
    for (Operation *user : pending[next].getUsers()) {
      if (isa<arith::DivFOp>(user) && pending[next] == sum &&
          matchPattern(user->getOperand(0), m_OneFloat()))
        found.push_back(user);
      else if (isa<math::ExpOp, math::Exp2Op>(user) && isReciprocal(user, sum))
        found.push_back(user);
      else if (isa<math::LogOp, math::Log2Op, arith::AddFOp, arith::SubFOp,
                   arith::NegFOp, arith::MulFOp, ResidualOp>(user))
        pending.insert(user->getResult(0));
    }
  return found;
}

/// Replaces multiplications by `reciprocal` by divisions by `divisor`.
static void divide(Value reciprocal, Value divisor) {
  for (Operation *user : llvm::make_early_inc_range(reciprocal.getUsers())) {
    OpBuilder b(user);
    if (triton::isRepetition(user)) {
      IRMapping map;
      map.map(reciprocal, divisor);
      divide(user->getResult(0), b.clone(*user, map)->getResult(0));
    } else if (isa<arith::MulFOp>(user) &&
               user->getOperand(0) != user->getOperand(1)) {
      Value other = user->getOperand(user->getOperand(0) == reciprocal);
      user->getResult(0).replaceAllUsesWith(
          arith::DivFOp::create(b, user->getLoc(), other, divisor));
      user->erase();
    }
  }
}

void mlir::autodiff::divideBy(Value sum) {
  for (Operation *reciprocal : findReciprocals(sum))
    divide(reciprocal->getResult(0), sum);
}
