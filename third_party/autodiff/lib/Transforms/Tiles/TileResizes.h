//===- TileResizes.h - How values of a kernel change with tiles -*- C++ -*-===//
//
// Two theorems about a number, the digit, that tells neighbours apart.
//
// Longer tiles: where a value is a function of digit · size + position along an
// axis, the tiles of `factor` neighbours are one tile. Integers have to be such
// sums (LinearForm), and so has what a comparison compares; whatever is
// computed from them elementwise, loaded, or multiplied then is, too.
//
// Shorter tiles: a part of a tile along an axis depends on that part of its
// operands. What is summed over the axis is the sum over the parts, if an
// iteration only adds it to what the loop carries.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_TILERESIZES_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_TILERESIZES_H

#include "autodiff/Analysis/LinearForm.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// How a value of the new kernel stands for one of the old kernel: an axis that
/// has another length, or one of these.
using Resize = int;
constexpr Resize kSame = -1;
/// One of several summands.
constexpr Resize kSummand = -2;

using Resizes = std::optional<SmallVector<Resize>>;

/// The resizes in which a kernel with longer or shorter tiles needs the values
/// of a kernel.
class TileResizes {
public:
  /// The digit is a place of the programs, whose neighbours are joined, or the
  /// induction variable of a loop, whose iterations are divided. What such a
  /// loop stores is divided along `storedAxis`.
  TileResizes(triton::FuncOp source, Value digit, unsigned factor)
      : source(source), digit(digit), factor(factor),
        loop(isa<BlockArgument>(digit)
                 ? cast<scf::ForOp>(digit.getParentBlock()->getParentOp())
                 : scf::ForOp()) {}

  /// Starts from what the kernel stores. Fails if the theorem does not hold.
  LogicalResult collect();

  Value getDigit() const { return digit; }
  unsigned getFactor() const { return factor; }
  /// The loop whose iterations are divided, null where tiles become longer.
  scf::ForOp getLoop() const { return loop; }
  bool isWidening() const { return !loop; }
  /// The length of tiles in the new kernel.
  int64_t getLength() const {
    return isWidening() ? size * factor : size / factor;
  }
  /// Expressions that must not be zero when the kernel is launched.
  ArrayRef<ExprAttr> getConditions() const { return conditions; }

  llvm::SmallSetVector<Resize, 2> ofResults(Operation *op) const {
    return needed.lookup(op);
  }
  /// The resize of a result of a loop or branch; none if nobody needs it.
  std::optional<Resize> ofCarried(Operation *op, unsigned number) const;
  Resize ofStore(Operation *op) const { return stores.lookup(op); }
  /// Whether `op` writes tiles to memory, and nothing comes of it.
  static bool isStore(Operation *op);

  /// The resizes of operands that make a result of this resize; none if none
  /// do.
  static Resizes ofOperands(Operation *op, Resize resize);
  /// The resize in which `value` is there where it is needed in `resize`.
  static Resize simplify(Value value, Resize resize);

private:
  LogicalResult need(Value value, Resize resize);
  LogicalResult need(Operation *user, Value value, Resize resize);
  LogicalResult needStore(Operation *op);
  LogicalResult needCarried(scf::ForOp op, unsigned number, Resize resize);
  LogicalResult needYielded(scf::IfOp op, unsigned number, Resize resize);
  LogicalResult needOperands(OpResult result, Resize resize);
  LogicalResult needOperands(BlockArgument argument, Resize resize);
  LogicalResult noteSize(Value value, Resize resize);

  void collectDependent();
  bool isOneIndex(Value value, Resize resize);
  std::optional<LinearForm> formOf(Value value) const;
  bool isFormOfIndex(const std::optional<LinearForm> &form, Resize axis,
                     int64_t length) const;
  std::optional<Resize> axisOf(Value pointer);
  bool comparesIndex(Operation *op, Resize resize) const;
  bool noteProduct(arith::MulIOp op, Resize axis);

  triton::FuncOp source;
  Value digit;
  unsigned factor;
  scf::ForOp loop;

  /// What may change with the digit.
  llvm::DenseSet<Value> dependent;
  int64_t size = 0; // of tiles, in the old kernel
  llvm::DenseSet<std::pair<Value, Resize>> visited;
  SmallVector<std::pair<Value, Resize>> worklist;
  llvm::DenseMap<Operation *, llvm::SmallSetVector<Resize, 2>> needed;
  /// The resizes of results of loops and branches.
  llvm::DenseMap<std::pair<Operation *, unsigned>, Resize> carried;
  llvm::DenseMap<Operation *, Resize> stores;
  SmallVector<ExprAttr> conditions;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_TILERESIZES_H
