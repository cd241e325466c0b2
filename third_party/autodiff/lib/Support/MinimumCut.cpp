//===- MinimumCut.cpp - Minimum cuts of small networks --------------------===//
#include "autodiff/Support/MinimumCut.h"

#include <algorithm>

using namespace mlir::autodiff;

// Smaller residual capacities count as used up.
static constexpr double kEpsilon = 1e-9;
static constexpr unsigned kUnreached = ~0u;

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

/// Computes each node's distance from the source; false if the sink cannot be
/// reached.
bool FlowNetwork::findLevels(unsigned source, unsigned sink) {
  levels.assign(outgoing.size(), kUnreached);
  levels[source] = 0;
  llvm::SmallVector<unsigned> queue{source};
  for (unsigned next = 0; next < queue.size(); ++next)
    for (unsigned edge : outgoing[queue[next]])
      if (unsigned to = edges[edge].to;
          edges[edge].capacity > kEpsilon && levels[to] == kUnreached) {
        levels[to] = levels[queue[next]] + 1;
        queue.push_back(to);
      }
  return levels[sink] != kUnreached;
}

/// Sends flow along a shortest augmenting path; zero if there is none. Each
/// call continues the search where the last one ended.
double FlowNetwork::augment(unsigned source, unsigned sink,
                            llvm::MutableArrayRef<unsigned> tried) {
  llvm::SmallVector<unsigned> path;
  for (unsigned node = source; node != sink;) {
    if (tried[node] < outgoing[node].size()) {
      unsigned edge = outgoing[node][tried[node]];
      if (edges[edge].capacity > kEpsilon &&
          levels[edges[edge].to] == levels[node] + 1) {
        path.push_back(edge);
        node = edges[edge].to;
      } else {
        ++tried[node];
      }
    } else if (path.empty()) {
      return 0;
    } else {
      node = edges[path.pop_back_val() ^ 1].to;
      ++tried[node];
    }
  }
  double flow = kInfinite;
  for (unsigned edge : path)
    flow = std::min(flow, edges[edge].capacity);
  for (unsigned edge : path) {
    edges[edge].capacity -= flow;
    edges[edge ^ 1].capacity += flow;
  }
  return flow;
}

void FlowNetwork::saturate(unsigned source, unsigned sink) {
  while (findLevels(source, sink)) {
    llvm::SmallVector<unsigned> tried(outgoing.size());
    while (double flow = augment(source, sink, tried))
      // A path of infinite capacity cannot be cut, and its flow is unbounded.
      if ((endless = flow >= kInfinite / 2))
        return;
  }
}

llvm::BitVector FlowNetwork::cut(unsigned source, unsigned sink) {
  saturate(source, sink);
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
