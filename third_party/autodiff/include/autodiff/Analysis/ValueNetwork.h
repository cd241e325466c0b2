//===- ValueNetwork.h - What to compute, and what to load -------*- C++ -*-===//
//
// Chooses which values to compute and which to load. A value can be computed
// from its operands, or loaded: that is a flow network from memory to the
// values that are needed, and the cheapest choice is a minimum cut.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_VALUENETWORK_H
#define AUTODIFF_ANALYSIS_VALUENETWORK_H

#include "autodiff/Support/MinimumCut.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// Costs are in bytes: those that are moved, or that could be moved in the time
/// that something takes.
class ValueNetwork {
public:
  static constexpr double kImpossible = FlowNetwork::kInfinite;

  virtual ~ValueNetwork() = default;

  /// Notes that a value is needed.
  void need(Value value);

  /// The values to load, and the cost of loading them and of computing the
  /// others.
  struct Choice {
    SmallVector<Value> taken;
    double cost = 0;
    /// Whether some needed value can be neither loaded nor computed.
    bool isImpossible = false;
  };
  /// The cheapest choice; among equal ones, the one that computes least.
  Choice choose();

protected:
  /// The needed values, and all that they are computed from.
  auto getValues() const { return llvm::make_first_range(nodes); }

  /// Whether `value` costs nothing, such as a block argument.
  virtual bool isAtHand(Value value) = 0;
  virtual double costOfTaking(Value value) = 0;
  virtual double costOfComputing(Value value) = 0;

private:
  struct Nodes {
    unsigned in, out;
  };
  Nodes nodesOf(Value value);

  FlowNetwork network;
  unsigned memory = network.addNode(), needs = network.addNode();
  llvm::MapVector<Value, Nodes> nodes;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_VALUENETWORK_H
