//===- MinimumCut.h - Minimum cuts of small networks ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_MINIMUMCUT_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_MINIMUMCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::autodiff {

/// A flow network with real capacities. Source: Edmonds and Karp, "Theoretical
/// improvements in algorithmic efficiency for network flow problems", 1972.
class FlowNetwork {
public:
  static constexpr double kInfinite = 1e30;

  /// A new node's number.
  unsigned addNode();
  void addEdge(unsigned from, unsigned to, double capacity);

  /// The nodes on the sink's side of the minimum cut that lies nearest to the
  /// sink.
  llvm::BitVector cut(unsigned source, unsigned sink);

private:
  struct Edge {
    unsigned to;
    double capacity;
  };
  bool augment(unsigned source, unsigned sink);

  /// Edge 2k and its reverse 2k + 1.
  llvm::SmallVector<Edge> edges;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>> outgoing;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_MINIMUMCUT_H
