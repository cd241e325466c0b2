//===- ProgramDigits.cpp - What program ids are taken apart into ----------===//
#include "autodiff/Analysis/ProgramDigits.h"

#include "autodiff/Analysis/LinearForm.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The expression of a scalar that only program ids and the launch determine.
static std::optional<ScalarExpr> ofProgram(Value value) {
  if (isa<ShapedType>(value.getType()))
    return std::nullopt;
  std::optional<ScalarExpr> expression = ScalarExpr::of(value);
  if (expression && !expression->dependsOnProgramId())
    return std::nullopt;
  return expression;
}

SmallVector<ScalarExpr>
mlir::autodiff::findProgramDigits(triton::FuncOp kernel) {
  // Where other operations use such scalars: the digits of their sums.
  SmallVector<ScalarExpr> digits;
  auto insert = [&](const ScalarExpr &digit) {
    if (!llvm::is_contained(digits, digit))
      digits.push_back(digit);
  };
  kernel.walk([&](Operation *op) {
    if (op->getNumResults() == 1 && ofProgram(op->getResult(0)))
      return;
    for (Value operand : op->getOperands()) {
      if (!ofProgram(operand))
        continue;
      std::optional<LinearForm> form = LinearForm::of(operand);
      for (const LinearForm::Term &term : form->terms)
        insert(*term.dimension.digit);
    }
  });

  // What is a function of a program id that is a digit itself is none; one that
  // mixes such an id with another makes that one a digit, too.
  bool axes[3] = {};
  for (bool changed = true; changed;) {
    changed = false;
    for (const ScalarExpr &digit : digits) {
      bool known = digit.isProgramId();
      for (unsigned axis = 0; axis < 3; ++axis)
        known |= axes[axis] && digit.mentionsAxis(axis);
      for (unsigned axis = 0; known && axis < 3; ++axis)
        if (digit.mentionsAxis(axis) && !axes[axis])
          changed = axes[axis] = true;
    }
  }
  llvm::erase_if(digits, [&](const ScalarExpr &digit) {
    for (unsigned axis = 0; axis < 3; ++axis)
      if (axes[axis] && digit.mentionsAxis(axis))
        return true;
    return false;
  });
  for (unsigned axis = 0; axis < 3; ++axis)
    if (axes[axis])
      digits.push_back(ScalarExpr::programId(axis));
  return digits;
}

bool mlir::autodiff::dependsOnDigit(const ScalarExpr &expression,
                                    const ScalarExpr &digit) {
  if (expression == digit)
    return true;
  return digit.isProgramId() && expression.mentionsAxis(digit.getAxis());
}

SmallVector<ScalarExpr>
mlir::autodiff::findUnmentioned(ArrayRef<ScalarExpr> digits,
                                ArrayRef<ScalarExpr> mentioned) {
  return llvm::filter_to_vector(digits, [&](const ScalarExpr &digit) {
    return llvm::none_of(mentioned, [&](const ScalarExpr &number) {
      return dependsOnDigit(number, digit);
    });
  });
}
