//===- MinimumCut.h - Minimum cuts of small networks ------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_MINIMUMCUT_H
#define AUTODIFF_SUPPORT_MINIMUMCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::autodiff {

/// A flow network with real capacities. Source: Dinic, "Algorithm for solution
/// of a problem of maximum flow in networks with power estimation", 1970.
class FlowNetwork {
public:
  static constexpr double kInfinite = 1e30;

  /// A new node's number.
  unsigned addNode();
  void addEdge(unsigned from, unsigned to, double capacity);

  /// The nodes on the sink's side of a minimum cut; of several, the one nearest
  /// to the sink.
  llvm::BitVector cut(unsigned source, unsigned sink);

  /// Whether every cut has an edge of infinite capacity; known after `cut`.
  bool isEndless() const { return endless; }

private:
  struct Edge {
    unsigned to;
    double capacity;
  };
  void saturate(unsigned source, unsigned sink);
  bool findLevels(unsigned source, unsigned sink);
  double augment(unsigned source, unsigned sink,
                 llvm::MutableArrayRef<unsigned> tried);

  /// Edge 2k is followed by its reverse, 2k + 1.
  llvm::SmallVector<Edge> edges;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> outgoing;
  /// The level of each node.
  llvm::SmallVector<unsigned> levels;
  bool endless = false;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_MINIMUMCUT_H
