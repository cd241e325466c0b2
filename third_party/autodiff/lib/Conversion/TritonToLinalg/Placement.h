//===- Placement.h - Which tiles are built as a whole -----------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_PLACEMENT_H
#define AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_PLACEMENT_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::autodiff::cpu {

/// How a carried tile of a loop changes if it only moves: each iteration adds
/// these uniform tiles.
struct Movement {
  SmallVector<Value> steps;
};

/// Decides, for every tile of a function, whether its elements are stored once
/// or computed wherever they are used.
class Placement {
public:
  explicit Placement(triton::FuncOp func);

  /// Whether the tile has to be stored where it is defined.
  bool isStored(Value tile);
  /// Whether all elements are equal, and computable from scalars.
  bool isUniform(Value tile);
  /// The movement of carried value `index` of a loop, or null if it does not
  /// just move.
  const Movement *getMovement(scf::ForOp loop, unsigned index);
  /// Whether the operation defines its elements from elements of its operands.
  static bool isElementwise(Operation *op);
  /// Whether it only rearranges elements.
  static bool isRearranging(Operation *op);
  /// The operations that evaluate a tile.
  const llvm::SmallPtrSet<Operation *, 2> &getRoots(Value tile) {
    return getUses(tile).roots;
  }

private:
  /// The operations that evaluate a tile, and how.
  struct Uses {
    llvm::SmallPtrSet<Operation *, 2> roots;
    /// More than once per element: by broadcasting, or in an inner loop.
    bool repeated = false;
  };

  const Uses &getUses(Value tile);
  void addUses(Value tile, Block *home, Uses &uses);
  int getCost(Value tile);
  bool decide(Value tile);
  bool canDefer(triton::LoadOp load, const Uses &uses);

  llvm::DenseMap<Value, bool> stored, uniform;
  llvm::DenseMap<Value, Uses> uses;
  llvm::DenseMap<Value, int> costs;
  llvm::DenseMap<std::pair<Operation *, unsigned>, std::optional<Movement>>
      movements;
};

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_PLACEMENT_H
