//===- AxisMap.h - Along which axes operations move -------------*- C++ -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_DIALECT_TRITON_IR_AXISMAP_H
#define TRITON_DIALECT_TRITON_IR_AXISMAP_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir {
namespace triton {

/// What becomes of an operand's axes, and where a result's come from. A scalar
/// has none. Axes of which nothing is said are mixed.
class AxisMap {
public:
  enum class Kind {
    Kept,     ///< of both: position i here is position i there
    New,      ///< of a result: its one position has all of the operand
    Repeated, ///< of a result: all positions have the same of the operand
    Dropped,  ///< of an operand: it has one position
    Summed,   ///< of an operand: each element of the result has all positions
    Mixed     ///< of both: any other position, or several
  };

  AxisMap(unsigned operandRank, unsigned resultRank)
      : operand(operandRank), result(resultRank) {}
  static AxisMap identity(unsigned rank);
  /// Along which axes an operation moves what it has of `use`; none if it does
  /// not say so. Its results are alike.
  static std::optional<AxisMap> of(OpOperand &use);
  /// That of an operation which gives its one operand other axes, and computes
  /// nothing; none for others.
  static std::optional<AxisMap> ofMove(Operation *op);

  void keep(unsigned from, unsigned to);
  /// An axis of length one is repeated.
  void stretch(unsigned from, unsigned to);
  void repeat(unsigned to) { result[to].kind = Kind::Repeated; }
  void add(unsigned to) { result[to].kind = Kind::New; }
  void drop(unsigned from) { operand[from].kind = Kind::Dropped; }
  void sum(unsigned from) { operand[from].kind = Kind::Summed; }

  unsigned getOperandRank() const { return operand.size(); }
  unsigned getResultRank() const { return result.size(); }
  Kind ofOperand(unsigned axis) const { return operand[axis].kind; }
  Kind ofResult(unsigned axis) const { return result[axis].kind; }
  /// The operand's axis that an axis of the result keeps.
  std::optional<unsigned> toOperand(unsigned axis) const {
    return ofResult(axis) == Kind::Kept ? result[axis].other : std::nullopt;
  }
  /// The result's axis that keeps an axis of the operand.
  std::optional<unsigned> toResult(unsigned axis) const {
    return ofOperand(axis) == Kind::Kept ? operand[axis].other : std::nullopt;
  }
  /// The operand's axis, of length one, that is repeated along an axis of the
  /// result.
  std::optional<unsigned> getStretched(unsigned axis) const {
    return ofResult(axis) == Kind::Repeated ? result[axis].other : std::nullopt;
  }
  /// The operand's axis that is summed, if one is.
  std::optional<unsigned> getSummed() const;
  bool isMixed() const;
  /// Whether the operand's axes are there in their order, or one of length one
  /// is longer, and all is the same along others.
  bool isRepetition() const;

  void print(llvm::raw_ostream &os) const;

private:
  struct Axis {
    Kind kind = Kind::Mixed;
    std::optional<unsigned> other; ///< of the other side
  };
  SmallVector<Axis, 4> operand, result;
};

/// Whether all that an operation does is to give the elements of its one
/// operand other places in its one result: a reshape, a transposition, a splat.
/// Null does no such thing.
bool isMove(Operation *op);
/// Whether it repeats them, and keeps them in order: a splat, a broadcast.
bool isRepetition(Operation *op);
/// Whether elements of its results are elements of operands.
bool takesElements(Operation *op);

} // namespace triton
} // namespace mlir

#include "triton/Dialect/Triton/IR/AxisMapInterface.h.inc"

#endif // TRITON_DIALECT_TRITON_IR_AXISMAP_H
