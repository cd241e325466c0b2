//===- TileResizes.h - How values of a kernel change with tiles -*- C++ -*-===//
//
// How tiles of a kernel can get longer or shorter. The *digit* is the number
// that differs between neighbouring programs, or iterations.
//
// Longer tiles: if a value is a function of digit · size + position along an
// axis, the tiles of `factor` neighbours are one longer tile. Integers, and the
// operands of comparisons, have to be linear forms (LinearForm.h) of this kind.
// Values that are computed from these elementwise, by loads, or by products
// then are such functions, too.
//
// Shorter tiles: a part of a tile along an axis only depends on that part of
// its operands. A sum over the axis is the sum over the parts, if an iteration
// only adds it to a carried value.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_TILERESIZES_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_TILERESIZES_H

#include "autodiff/Analysis/LinearForm.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// How a value of the new kernel corresponds to one of the old kernel: the
/// number of an axis that has another length, or one of the constants below.
using Resize = int;
constexpr Resize kSame = -1;
/// It is one of several summands of the old value.
constexpr Resize kSummand = -2;

using Resizes = std::optional<SmallVector<Resize>>;

/// The resizes in which the new kernel needs the values of the old one.
class TileResizes {
public:
  /// The digit is a result of autodiff.programs, whose neighbours are joined,
  /// or the induction variable of a loop, whose iterations are divided. In the
  /// second case, tiles that the loop stores are divided along `storedAxis`.
  TileResizes(triton::FuncOp source, Value digit, unsigned factor)
      : source(source), digit(digit), factor(factor),
        loop(isa<BlockArgument>(digit)
                 ? cast<scf::ForOp>(digit.getParentBlock()->getParentOp())
                 : scf::ForOp()) {}

  /// Starts from the kernel's stores. Fails if tiles cannot be resized.
  LogicalResult collect();

  Value getDigit() const { return digit; }
  unsigned getFactor() const { return factor; }
  /// The loop whose iterations are divided; null if tiles become longer.
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
  /// The resize of a result of a loop or branch; none if it is not needed.
  std::optional<Resize> ofCarried(Operation *op, unsigned number) const;
  Resize ofStore(Operation *op) const { return stores.lookup(op); }
  /// Whether `op` writes tiles to memory, and has no result that is used.
  static bool isStore(Operation *op);

  /// The resizes of operands for which a result has this resize; none if that
  /// is impossible.
  static Resizes ofOperands(Operation *op, Resize resize);
  /// The resize that `value` really has if it is needed in `resize`.
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

  /// Values that may change with the digit.
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
