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

/// Whether `part` occurs in an expression, in another place than in `except`.
static bool occurs(const ScalarExpr &part, const ScalarExpr &expression,
                   ArrayRef<ScalarExpr> except = {}) {
  if (llvm::is_contained(except, expression))
    return false;
  return expression == part ||
         llvm::any_of(expression.getOperands(), [&](const ScalarExpr &operand) {
           return occurs(part, operand, except);
         });
}

/// The other one of the remainder and the quotient that `digit` is; none if it
/// is neither, or the divisor is not the same in all programs.
static std::optional<ScalarExpr> findSibling(const ScalarExpr &digit) {
  using Kind = ScalarExpr::Kind;
  Kind kind = digit.getKind();
  if ((kind != Kind::Div && kind != Kind::Rem) ||
      digit.getRhs().dependsOnProgramId())
    return std::nullopt;
  return ScalarExpr::binary(kind == Kind::Div ? Kind::Rem : Kind::Div,
                            digit.getLhs(), digit.getRhs());
}

/// Whether some load moves with `part`, a quotient or remainder, but not with
/// the rest of what is divided there.
static bool isSharedByLoad(triton::FuncOp kernel, const ScalarExpr &part) {
  return kernel
      .walk([&](triton::LoadOp load) {
        auto form = LinearForm::of(load.getPtr(), {}, ScalarExpr::From::Memory);
        if (!form)
          return WalkResult::advance();
        bool moves = false, rest = false;
        for (const LinearForm::Term &term : form->terms)
          if (const std::optional<ScalarExpr> &digit = term.dimension.digit) {
            moves |= *digit == part;
            rest |= occurs(part.getLhs(), *digit, part);
          }
        return moves && !rest ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether an expression uses `whole` other than divided.
static bool usesWhole(const ScalarExpr &expression, const ScalarExpr &whole) {
  if (expression == whole)
    return true;
  bool isPart = findSibling(expression) && expression.getLhs() == whole;
  return llvm::any_of(
      llvm::drop_begin(expression.getOperands(), isPart),
      [&](const ScalarExpr &operand) { return usesWhole(operand, whole); });
}

/// Replaces the number that `part` is the quotient or the remainder of, and all
/// that this is a part of; false if something else is made of one of them.
static bool split(const ScalarExpr &part, SmallVectorImpl<ScalarExpr> &digits) {
  SmallVector<ScalarExpr> chain{part};
  size_t replaced = 0;
  while (findSibling(chain.back())) {
    chain.push_back(chain.back().getLhs());
    if (llvm::is_contained(digits, chain.back()))
      replaced = chain.size() - 1;
  }
  for (size_t level = 0; level < replaced; ++level) {
    ScalarExpr half = chain[level], whole = chain[level + 1];
    ScalarExpr sibling = *findSibling(half);
    llvm::erase(digits, whole);
    if (llvm::any_of(digits, [&](const ScalarExpr &digit) {
          return occurs(whole, digit, {half, sibling});
        }))
      return false;
    if (!llvm::is_contained(digits, sibling))
      digits.push_back(sibling);
  }
  return true;
}

/// Takes numbers apart where some load moves with a part only.
static void splitDigits(triton::FuncOp kernel,
                        SmallVectorImpl<ScalarExpr> &digits) {
  for (const ScalarExpr &digit : llvm::to_vector(digits)) {
    if (!findSibling(digit) || !isSharedByLoad(kernel, digit))
      continue;
    SmallVector<ScalarExpr> parts = llvm::to_vector(digits);
    if (split(digit, parts))
      digits.assign(parts.begin(), parts.end());
  }
}

/// Whether program ids decide about an expression by way of `digits` alone.
static bool isDecidedBy(ArrayRef<ScalarExpr> digits,
                        const ScalarExpr &expression) {
  if (!expression.dependsOnProgramId() ||
      llvm::is_contained(digits, expression))
    return true;
  SmallVector<ScalarExpr, 2> operands = expression.getOperands();
  return !operands.empty() &&
         llvm::all_of(operands, [&](const ScalarExpr &operand) {
           return isDecidedBy(digits, operand);
         });
}

/// Drops what others determine (how much of a sequence is left in a chunk).
static void dropDependent(SmallVectorImpl<ScalarExpr> &digits) {
  for (const ScalarExpr &digit : llvm::to_vector(digits)) {
    SmallVector<ScalarExpr> others = llvm::to_vector(digits);
    llvm::erase(others, digit);
    if (isDecidedBy(others, digit))
      digits.assign(others.begin(), others.end());
  }
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

  splitDigits(kernel, digits);
  dropDependent(digits);

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
      digits.push_back(ScalarExpr::programId(kernel.getContext(), axis));
  return digits;
}

/// A quotient or remainder of `whole` in an expression.
static std::optional<ScalarExpr> findPart(const ScalarExpr &expression,
                                          const ScalarExpr &whole) {
  if (findSibling(expression) && expression.getLhs() == whole)
    return expression;
  for (const ScalarExpr &operand : expression.getOperands())
    if (std::optional<ScalarExpr> part = findPart(operand, whole))
      return part;
  return std::nullopt;
}

std::optional<Division>
mlir::autodiff::findDivision(const ScalarExpr &whole,
                             ArrayRef<ScalarExpr> digits) {
  for (const ScalarExpr &digit : digits)
    if (std::optional<ScalarExpr> part = findPart(digit, whole)) {
      ScalarExpr other = *findSibling(*part);
      if (part->getKind() == ScalarExpr::Kind::Div)
        return Division{*part, other, part->getRhs()};
      return Division{other, *part, part->getRhs()};
    }
  return std::nullopt;
}

bool mlir::autodiff::isMadeOf(ArrayRef<ScalarExpr> digits,
                              const ScalarExpr &number) {
  if (llvm::is_contained(digits, number))
    return true;
  std::optional<Division> division = findDivision(number, digits);
  return division && isMadeOf(digits, division->quotient) &&
         isMadeOf(digits, division->remainder);
}

bool mlir::autodiff::dependsOnDigit(const ScalarExpr &expression,
                                    const ScalarExpr &digit) {
  if (occurs(digit, expression))
    return true;
  // A number moves with all parts of it.
  for (ScalarExpr part = digit; findSibling(part); part = part.getLhs())
    if (usesWhole(expression, part.getLhs()))
      return true;
  return false;
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

bool mlir::autodiff::areIndependent(const ScalarExpr &a, const ScalarExpr &b) {
  constexpr unsigned kAxes = 3;
  bool shareAxis = llvm::any_of(llvm::seq(kAxes), [&](unsigned axis) {
    return a.mentionsAxis(axis) && b.mentionsAxis(axis);
  });
  if (!shareAxis)
    return true;
  using Numbers = ScalarExpr::Kind;
  auto isPair = [](const ScalarExpr &quotient, const ScalarExpr &remainder) {
    return quotient.getKind() == Numbers::Div &&
           remainder.getKind() == Numbers::Rem;
  };
  return (isPair(a, b) || isPair(b, a)) && a.getLhs() == b.getLhs() &&
         a.getRhs() == b.getRhs();
}
