//===- CotangentRange.cpp - How large cotangents may become ---------------===//
#include "autodiff/Rules/CotangentRange.h"

#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Support/Constants.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The plain name of the function that `op` computes; empty for others.
static std::string nameOf(Operation *op) {
  std::string name;
  (void)findFunction(op, &name);
  return name;
}

/// Whether a value is a constant that is not small.
static bool isLargeConstant(Value value) {
  constexpr double kNotSmall = 1.0 / 16;
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  std::optional<APFloat> number = getNumber(constant);
  return number && std::abs(number->convertToDouble()) >= kNotSmall;
}

/// Whether a sum contains a constant that is not small, or exponentials. A
/// quotient by such a sum is a share of a whole (softmax, the logistic
/// function).
static bool isWhole(Value value) {
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!isFloat(next.getType()) || !seen.insert(next).second)
      continue;
    if (auto values = findHandedOn(next)) {
      llvm::append_range(pending, *values);
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op)
      continue;
    std::string name = nameOf(op);
    bool collects = name == "add" || name == "fmax" || name == "maximum";
    if (name == "exp" || name == "exp2" ||
        (collects && llvm::any_of(op->getOperands(), isLargeConstant)))
      return true;
    if (collects || name == "mul" || movesElements(op) ||
        isa<arith::SelectOp, triton::ReduceOp>(op))
      llvm::append_range(pending, op->getOperands());
  }
  return false;
}

/// Whether `divisor` may be small, as far as its computation tells.
static bool mayBeSmall(Value divisor) {
  while (Operation *op = divisor.getDefiningOp()) {
    if (matchPattern(op, m_Constant()) ||
        isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      return false;
    if (!movesElements(op))
      break;
    divisor = op->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(divisor);
  bool isGiven =
      argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return !isGiven && !isWhole(divisor);
}

/// Whether `factor` is a quotient that may be large, or a product with such a
/// quotient.
static bool mayBeLarge(Value factor) {
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> pending = {factor};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !seen.insert(next).second)
      continue;
    std::string name = nameOf(op);
    if (name == "div" || name == "rcp" || name == "rsqrt") {
      if (mayBeSmall(op->getOperands().back()))
        return true;
    } else if (movesElements(op) || isa<arith::SelectOp>(op) || name == "mul" ||
               name == "neg") {
      llvm::append_range(pending, op->getOperands());
    }
  }
  return false;
}

/// Whether the partial derivative of an operation by this operand may be large.
static bool enlarges(OpOperand &use) {
  Operation *op = use.getOwner();
  std::string name = nameOf(op);
  if (name == "div" || name == "rcp" || name == "sqrt" || name == "rsqrt" ||
      name == "log" || name == "log2" || name == "log10")
    return mayBeSmall(op->getOperands().back());
  unsigned number = use.getOperandNumber();
  return (name == "mul" || name == "fma") && number < 2 &&
         mayBeLarge(op->getOperand(1 - number));
}

//===----------------------------------------------------------------------===//
// From a value to what is stored
//===----------------------------------------------------------------------===//

bool mlir::autodiff::mayLeaveHalf(Value value, const Activity &activity) {
  if (mutation::isMade("dot:a cotangent of any size in half precision"))
    return false;
  llvm::SmallPtrSet<Value, 32> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!activity.isActive(next) || !seen.insert(next).second)
      continue;
    auto follow = [&](Operation *op) {
      return followFlow(op, [&](Value from, Value to) {
        if (from == next)
          pending.push_back(to);
      });
    };
    if (auto carried = dyn_cast<BlockArgument>(next))
      follow(carried.getOwner()->getParentOp());
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      if (getWrittenValue(user) == next &&
          !getPointee(user->getOperand(0).getType()).isF16())
        return true;
      bool isHandedOn = user->hasTrait<OpTrait::IsTerminator>();
      if (follow(isHandedOn ? user->getParentOp() : user))
        continue;
      if (enlarges(use))
        return true;
      llvm::append_range(pending, user->getResults());
    }
  }
  return false;
}
