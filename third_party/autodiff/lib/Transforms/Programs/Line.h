//===- Line.h - Kernels that go along a line of positions -------*- C++ -*-===//
//
// A kernel without loops whose tiles are pieces of a line,
//
//   p = program · T + [0, T)   while p < n,
//
// and which does the same for each position by itself, may visit them in any
// order, and in tiles of any shape: as rows, columns and so on, where it takes
// p apart into these (p / n, p % n).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_LINE_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_LINE_H

#include "DivisorChain.h"
#include "autodiff/Analysis/Reason.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

class Line {
public:
  /// Digits of positions: bit j is the j-th.
  using Digits = unsigned;

  /// The line that a kernel goes along; none if it does anything else, or does
  /// not take positions apart.
  static ReasonOr<Line> match(triton::FuncOp kernel);

  /// The arguments that are loaded from where only digits tell, and no sum over
  /// programs and lanes.
  ArrayRef<BlockArgument> getTakenApart() const { return takenApart; }
  /// The axis of the grid that the programs are on, and the length of a tile.
  unsigned getAxis() const { return axis; }
  int64_t getTile() const { return tile; }
  /// A quotient or remainder of a position.
  Operation *getDivision() const { return division; }

  const DivisorChain &getChain() const { return chain; }
  Digits getAllDigits() const { return (1u << chain.getLength()) - 1; }
  /// Where the line ends for all stores; none: where the programs do.
  const std::optional<ScalarExpr> &getEnd() const { return end; }

  /// The operations that do something at each position, in order.
  ArrayRef<Operation *> getOps() const { return mapped.getArrayRef(); }
  /// What a value takes of the position, if it is such a number.
  std::optional<DigitRange> getRange(Value value) const;
  /// The digits on which a value, or what an operation does, depends.
  Digits getDigits(Value value) const;
  Digits getDigits(Operation *op) const { return digits.lookup(op); }
  /// The conditions of a mask but for that of being on the line.
  SmallVector<Value> getConditions(Operation *access) const;

private:
  explicit Line(triton::FuncOp kernel) : kernel(kernel) {}

  Obstacle collect();
  bool isPosition(Value value);
  std::optional<DigitRange> takeApart(Operation *op);
  bool isMapped(Operation *op) const;
  bool asksForProgram();
  bool findEnd();
  std::optional<ScalarExpr> getLimit(Value condition) const;
  void findDigits();
  void findTakenApart();

  triton::FuncOp kernel;
  int64_t tile = 0;
  unsigned axis = 0;
  Operation *division = nullptr;
  DivisorChain chain;
  std::optional<ScalarExpr> end;
  /// Positions of lanes, all alike.
  Value position;
  llvm::DenseMap<Value, DigitRange> ranges;
  llvm::SetVector<Operation *> mapped;
  llvm::DenseMap<Operation *, Digits> digits;
  SmallVector<BlockArgument> takenApart;
};

/// Whether a tile is the same number everywhere.
bool isUniform(Value tile);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_LINE_H
