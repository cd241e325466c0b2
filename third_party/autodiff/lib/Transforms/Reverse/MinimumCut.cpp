//===- MinimumCut.cpp - Minimum cuts of small networks --------------------===//
#include "MinimumCut.h"

#include <algorithm>

using namespace mlir::autodiff;

// Below this a residual capacity counts as used up.
static constexpr double kEpsilon = 1e-9;

unsigned FlowNetwork::addNode() {
  outgoing.emplace_back();
  return outgoing.size() - 1;
}

void FlowNetwork::addEdge(unsigned from, unsigned to, double capacity) {
  outgoing[from].push_back(edges.size());
  edges.push_back({to, capacity});
  outgoing[to].push_back(edges.size());
  edges.push_back({from, 0});
}

/// Pushes flow along a shortest augmenting path; false if there is none.
bool FlowNetwork::augment(unsigned source, unsigned sink) {
  constexpr unsigned none = ~0u;
  llvm::SmallVector<unsigned> reachedBy(outgoing.size(), none);
  llvm::SmallVector<unsigned> queue{source};
  for (unsigned next = 0; next < queue.size() && reachedBy[sink] == none;
       ++next)
    for (unsigned edge : outgoing[queue[next]])
      if (edges[edge].capacity > kEpsilon && edges[edge].to != source &&
          reachedBy[edges[edge].to] == none) {
        reachedBy[edges[edge].to] = edge;
        queue.push_back(edges[edge].to);
      }
  if (reachedBy[sink] == none)
    return false;
  double flow = kInfinite;
  for (unsigned node = sink; node != source;
       node = edges[reachedBy[node] ^ 1].to)
    flow = std::min(flow, edges[reachedBy[node]].capacity);
  for (unsigned node = sink; node != source;
       node = edges[reachedBy[node] ^ 1].to) {
    edges[reachedBy[node]].capacity -= flow;
    edges[reachedBy[node] ^ 1].capacity += flow;
  }
  // A path of infinite capacity cannot be cut; more flow would not end.
  return flow < kInfinite / 2;
}

llvm::BitVector FlowNetwork::cut(unsigned source, unsigned sink) {
  while (augment(source, sink)) {
  }
  // Nodes from which the sink can still be reached.
  llvm::BitVector side(outgoing.size());
  llvm::SmallVector<unsigned> queue{sink};
  side.set(sink);
  for (unsigned next = 0; next < queue.size(); ++next)
    for (unsigned edge : outgoing[queue[next]]) {
      unsigned from = edges[edge].to;
      if (edges[edge ^ 1].capacity > kEpsilon && !side.test(from)) {
        side.set(from);
        queue.push_back(from);
      }
    }
  return side;
}
