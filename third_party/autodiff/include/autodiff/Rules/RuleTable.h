//===- RuleTable.h - The derivative of every operation ----------*- C++ -*-===//
//
// One rule per operation y = f(x), all in one table. A rule states the
// derivative once. For an elementwise operation it states the partial
// derivatives, for a linear one the map and its transpose. From these come the
// pullback (VJP), from the cotangent ȳ to contributions to x̄, and the
// pushforward (JVP), from the tangent ẋ to ẏ. Other operations have a function
// for each.
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
  /// The formula that the documentation shows, e.g. "x̄ += ȳ · y".
  std::string formula;

  /// The derivative is zero: the result does not change with the operands
  /// (floor, sign).
  struct Constant {};
  /// The rule of an elementwise operation.
  using PartialsOf = std::function<Partials(Operation *op)>;
  /// The rule of any other operation.
  struct Ways {
    std::function<LogicalResult(Operation *op, Adjoint &)> pullBack;
    std::function<LogicalResult(Operation *op, Tangents &)> push;
  };
  std::variant<Constant, PartialsOf, LinearMap, Ways> derivative;

  /// Emits the contributions of `op` to the adjoints of its operands.
  LogicalResult pullBack(Operation *op, Adjoint &adjoint) const;
  /// Emits the contributions of `op` to the tangents of its results.
  LogicalResult push(Operation *op, Tangents &tangents) const;
};

class RuleTable {
public:
  /// The table of all rules.
  static const RuleTable &get();

  /// The rule of `op`: that of the function it computes, or of its kind of
  /// operation.
  const Rule *lookup(Operation *op) const;

  /// The same, with an error where there is none.
  const Rule *require(Operation *op) const;

  /// Adds an elementwise operation, whose partial derivatives may depend on its
  /// attributes.
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
  /// Adds any other operation.
  template <typename OpT>
  void add(const llvm::Twine &formula,
           LogicalResult (*pullBack)(OpT, Adjoint &),
           LogicalResult (*push)(OpT, Tangents &)) {
    Rule::Ways ways;
    ways.pullBack = [pullBack](Operation *op, Adjoint &adjoint) {
      return pullBack(cast<OpT>(op), adjoint);
    };
    ways.push = [push](Operation *op, Tangents &tangents) {
      return push(cast<OpT>(op), tangents);
    };
    insert(OpT::getOperationName(), {formula.str(), std::move(ways)});
  }
  void insert(llvm::StringRef operation, Rule rule);
  /// Adds the rule of a function by its plain name, whichever operation
  /// computes it.
  void insertFunction(llvm::StringRef name, Rule rule);

  /// The table as Markdown, sorted by operation and function.
  std::string toMarkdown() const;

private:
  llvm::StringMap<Rule> rules, functions;
};

// Each adds the rules of one file.
void addElementwiseRules(RuleTable &table);
void addSelectRules(RuleTable &table);
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
