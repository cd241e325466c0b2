//===- ValueNetwork.h - What to compute, and what to load -------*- C++ -*-===//
//
// Values that are made of one another are a flow network from memory to what
// needs them: one is computed from its operands, or taken from memory. What
// costs least is a minimum cut.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_VALUENETWORK_H
#define AUTODIFF_ANALYSIS_VALUENETWORK_H

#include "autodiff/Support/MinimumCut.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// Costs are bytes that are moved, or might be in the same time.
class ValueNetwork {
public:
  static constexpr double kImpossible = FlowNetwork::kInfinite;

  virtual ~ValueNetwork() = default;

  /// Notes that a value must be there.
  void need(Value value);

  /// What to take from memory, and what that costs with what is computed.
  struct Choice {
    SmallVector<Value> taken;
    double cost = 0;
    /// Whether something can neither be taken nor computed.
    bool isImpossible = false;
  };
  /// Of the best choices, the one that computes least.
  Choice choose();

protected:
  /// What must be there, and all that it is made of.
  auto getValues() const { return llvm::make_first_range(nodes); }

  /// Whether `value` is there anyway, as are the arguments of a block.
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
