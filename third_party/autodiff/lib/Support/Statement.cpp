//===- Statement.cpp - What a value is of the user's statement ------------===//
#include "autodiff/Support/Statement.h"

#include "autodiff/Support/Position.h"
#include "autodiff/Support/RuleLocation.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Operation.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

std::string autodiff::findStatement(Location loc) {
  return StringRef(spellPosition(loc)).rsplit(':').first.str();
}

StringRef autodiff::findVariableOf(Value value) {
  for (unsigned depth = 0; depth < 8; ++depth) {
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
      value = loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()];
    else if (auto branch = dyn_cast_or_null<scf::IfOp>(op))
      value = branch.thenYield().getOperand(
          cast<OpResult>(value).getResultNumber());
    else if (auto transpose = dyn_cast_or_null<triton::TransOp>(op))
      value = transpose.getSrc();
    else
      break;
  }
  return findVariable(value.getLoc());
}

bool autodiff::isPartOfStatement(Value value) {
  StringRef variable = findVariable(value.getLoc());
  std::string statement = findStatement(value.getLoc());
  if (variable.empty() || statement.empty() || isa<BlockArgument>(value))
    return false;
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    // Operations that a rule made for the statement do not count.
    return user->getNumResults() > 0 && findRule(user->getLoc()).empty() &&
           findVariable(user->getLoc()) == variable &&
           findStatement(user->getLoc()) == statement;
  });
}

std::string autodiff::nameInStatement(Value value, StringRef variable) {
  return (variable + (isPartOfStatement(value) ? "_part" : "")).str();
}
