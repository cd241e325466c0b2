//===- Line.h - Kernels that go along a line of positions -------*- C++ -*-===//
//
// A kernel without loops goes along a *line* if its tiles are ranges of
// positions,
//
//   p = program · T + [0, T)   while p < n,
//
// and it does the same for each position by itself. Then it may visit positions
// in any order, in tiles of any shape: in rows and columns, for example, if it
// divides p into these (p / n, p % n).
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
  /// A set of digits of positions (DivisorChain.h): bit j is the j-th digit.
  using Digits = unsigned;

  /// The line that a kernel goes along. Fails if it does anything else, or does
  /// not divide positions.
  static ReasonOr<Line> match(triton::FuncOp kernel);

  /// The arguments that are loaded at addresses which are no sums over programs
  /// and lanes, but depend on digits.
  ArrayRef<BlockArgument> getTakenApart() const { return takenApart; }
  /// The axis of the grid that counts tiles, and the length of a tile.
  unsigned getAxis() const { return axis; }
  int64_t getTile() const { return tile; }
  /// A quotient or remainder of a position.
  Operation *getDivision() const { return division; }

  const DivisorChain &getChain() const { return chain; }
  Digits getAllDigits() const { return (1u << chain.getLength()) - 1; }
  /// Where all stores end; if none, where the programs end.
  const std::optional<ScalarExpr> &getEnd() const { return end; }

  /// The operations that are done for each position, in order.
  ArrayRef<Operation *> getOps() const { return mapped.getArrayRef(); }
  /// The digits of the position that a value consists of, if it does.
  std::optional<DigitRange> getRange(Value value) const;
  /// The digits on which a value, or an operation, depends.
  Digits getDigits(Value value) const;
  Digits getDigits(Operation *op) const { return digits.lookup(op); }
  /// The conditions of a mask, except the one that a position is on the line.
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
  /// The positions of the lanes; all of these are equal.
  Value position;
  llvm::DenseMap<Value, DigitRange> ranges;
  llvm::SetVector<Operation *> mapped;
  llvm::DenseMap<Operation *, Digits> digits;
  SmallVector<BlockArgument> takenApart;
};

/// Whether all elements of a tile are the same constant.
bool isUniform(Value tile);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_LINE_H
