//===- RuleTable.h - The derivative of every operation ----------*- C++ -*-===//
//
// One rule per operation, all in one table. A rule is what reverse mode needs
// to know of an operation y = f(x): how the cotangent ȳ becomes contributions
// to x̄ (its pullback, or VJP). Elementwise operations give their partial
// derivatives, which serve the forward mode (JVP) just as well.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_RULETABLE_H
#define AUTODIFF_RULES_RULETABLE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <string>

namespace mlir::autodiff {

class Adjoint;

struct Rule {
  /// For the documentation, e.g. "x̄ += ȳ · y".
  std::string formula;
  /// Emits the adjoint of `op` into the backward kernel.
  std::function<LogicalResult(Operation *op, Adjoint &adjoint)> pullback;
  /// The result does not move with the operands (floor, sign): no derivative.
  bool piecewiseConstant = false;
};

class RuleTable {
public:
  /// The table of all rules.
  static const RuleTable &get();

  /// The rule of `op`: of the function that it computes, or of its kind.
  const Rule *lookup(Operation *op) const;

  template <typename OpT>
  void add(const llvm::Twine &formula,
           LogicalResult (*pullback)(OpT, Adjoint &)) {
    insert(OpT::getOperationName(),
           Rule{formula.str(), [pullback](Operation *op, Adjoint &adjoint) {
                  return pullback(cast<OpT>(op), adjoint);
                }});
  }
  void insert(llvm::StringRef operation, Rule rule);
  /// The rule of a function by its plain name, whatever computes it.
  void insertFunction(llvm::StringRef name, Rule rule);

  /// The table as Markdown, sorted by operation and function.
  std::string toMarkdown() const;

private:
  llvm::StringMap<Rule> rules, functions;
};

/// Whether `op`'s rule says that its results have no derivative.
bool isPiecewiseConstant(Operation *op);

// One function per file of rules.
void addElementwiseRules(RuleTable &table);
void addFunctionRules(RuleTable &table);
void addCustomVjpRules(RuleTable &table);
void addShapeRules(RuleTable &table);
void addReduceRules(RuleTable &table);
void addScanRules(RuleTable &table);
void addGatherRules(RuleTable &table);
void addMapRules(RuleTable &table);
void addDotRules(RuleTable &table);
void addMemoryRules(RuleTable &table);
void addIfRules(RuleTable &table);
void addForRules(RuleTable &table);
void addWhileRules(RuleTable &table);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_RULETABLE_H
