//===- RuleTable.h - The derivative of every operation ----------*- C++ -*-===//
//
// One rule per operation y = f(x), all in one table. A rule states the
// derivative once. Of an elementwise operation that is its partial derivatives,
// of a linear one its map and the transpose: the cotangent ȳ becomes
// contributions to x̄ by them (the pullback, or VJP), and the tangent ẋ a
// tangent ẏ (the pushforward, or JVP). What is neither has a function for each
// way.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_RULETABLE_H
#define AUTODIFF_RULES_RULETABLE_H

#include "autodiff/Rules/LinearMap.h"
#include "autodiff/Rules/Partials.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <string>
#include <variant>

namespace mlir::autodiff {

struct Rule {
  /// For the documentation, e.g. "x̄ += ȳ · y".
  std::string formula;

  /// The result does not move with the operands (floor, sign): no derivative.
  struct Constant {};
  /// Of an elementwise operation.
  using PartialsOf = std::function<Partials(Operation *op)>;
  /// Of any other: both ways, or the way back alone.
  struct Ways {
    std::function<LogicalResult(Operation *op, Adjoint &)> pullBack;
    std::function<LogicalResult(Operation *op, Tangents &)> push;
  };
  std::variant<Constant, PartialsOf, LinearMap, Ways> derivative;

  /// Emits the contributions of `op` to the adjoints of its operands.
  LogicalResult pullBack(Operation *op, Adjoint &adjoint) const;
  /// Emits what the tangents of the operands of `op` add to those of its
  /// results; an error if no way forward is known.
  LogicalResult push(Operation *op, Tangents &tangents) const;
};

class RuleTable {
public:
  /// The table of all rules.
  static const RuleTable &get();

  /// The rule of `op`: of the function that it computes, or of its kind.
  const Rule *lookup(Operation *op) const;

  /// The same, with an error where there is none.
  const Rule *require(Operation *op) const;

  /// An elementwise operation, whose partial derivatives may depend on what
  /// `op` says besides its operands.
  template <typename OpT>
  void addElementwise(const llvm::Twine &formula, Partials (*partials)(OpT)) {
    insert(OpT::getOperationName(),
           {formula.str(), Rule::PartialsOf([partials](Operation *op) {
              return partials(cast<OpT>(op));
            })});
  }
  template <typename OpT>
  void addElementwise(const llvm::Twine &formula, Partials partials) {
    insert(OpT::getOperationName(),
           {formula.str(),
            Rule::PartialsOf([partials](Operation *) { return partials; })});
  }
  template <typename OpT>
  void addLinear(const llvm::Twine &formula, LinearMap map) {
    insert(OpT::getOperationName(), {formula.str(), std::move(map)});
  }
  /// Any other operation.
  template <typename OpT>
  void add(const llvm::Twine &formula,
           LogicalResult (*pullBack)(OpT, Adjoint &),
           LogicalResult (*push)(OpT, Tangents &)) {
    Rule::Ways ways;
    ways.pullBack = [pullBack](Operation *op, Adjoint &adjoint) {
      return pullBack(cast<OpT>(op), adjoint);
    };
    if (push)
      ways.push = [push](Operation *op, Tangents &tangents) {
        return push(cast<OpT>(op), tangents);
      };
    insert(OpT::getOperationName(), {formula.str(), std::move(ways)});
  }
  void insert(llvm::StringRef operation, Rule rule);
  /// The rule of a function by its plain name, whatever computes it.
  void insertFunction(llvm::StringRef name, Rule rule);

  /// The table as Markdown, sorted by operation and function.
  std::string toMarkdown() const;

private:
  llvm::StringMap<Rule> rules, functions;
};

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
