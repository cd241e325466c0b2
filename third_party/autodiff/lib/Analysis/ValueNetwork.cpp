//===- ValueNetwork.cpp - What to compute, and what to load ---------------===//
#include "autodiff/Analysis/ValueNetwork.h"

#include "autodiff/Support/UsedValues.h"

using namespace mlir;
using namespace mlir::autodiff;

void ValueNetwork::need(Value value) {
  network.addEdge(nodesOf(value).out, needs, kImpossible);
}

ValueNetwork::Nodes ValueNetwork::nodesOf(Value value) {
  if (auto it = nodes.find(value); it != nodes.end())
    return it->second;
  Nodes pair{network.addNode(), network.addNode()};
  nodes.insert({value, pair});
  network.addEdge(pair.in, pair.out, costOfTaking(value));
  if (isAtHand(value))
    return pair;
  network.addEdge(memory, pair.in, costOfComputing(value));
  for (Value operand : getUsedValues(value.getDefiningOp()))
    network.addEdge(nodesOf(operand).out, pair.in, kImpossible);
  return pair;
}

ValueNetwork::Choice ValueNetwork::choose() {
  llvm::BitVector side = network.cut(memory, needs);
  Choice choice;
  choice.isImpossible = network.isEndless();
  for (auto &[value, pair] : nodes) {
    if (isAtHand(value))
      continue;
    if (side.test(pair.in)) {
      choice.cost += costOfComputing(value);
    } else if (side.test(pair.out)) {
      choice.cost += costOfTaking(value);
      choice.taken.push_back(value);
    }
  }
  return choice;
}
