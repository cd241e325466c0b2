//===- Regrid.h - A kernel whose programs are numbered anew -----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_REGRID_H
#define AUTODIFF_BUILDERS_REGRID_H

#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Reason.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Builders/Slice.h"

namespace mlir::autodiff {

/// The size that the host evaluates from `expression`, as an i32.
Value createSize(OpBuilder &builder, Location loc, ExprAttr expression);

/// How many values a digit of program ids has, from 0 on.
ExprAttr extentOf(const ScalarExpr &digit);

/// Takes `number` apart into digits of these extents, the first one fastest.
SmallVector<Value> takeApart(OpBuilder &builder, Location loc, Value number,
                             ArrayRef<Value> extents);

/// A kernel without a body beside the backward kernels of its module, with the
/// arguments of `kernel`.
triton::FuncOp createBeside(triton::FuncOp kernel, const llvm::Twine &name);

/// What the programs of a new kernel stand for: a number below `count`, and
/// values of digits of the old kernel's program ids.
struct ProgramNumbers {
  Value number;
  SmallVector<std::pair<ScalarExpr, Value>> digits;
};

/// Gives `kernel` a grid of one program for each number below `count`, fastest,
/// and each value of `digits`.
ProgramNumbers numberPrograms(OpBuilder &builder, triton::FuncOp kernel,
                              ExprAttr count, ArrayRef<ScalarExpr> digits);

/// The number of partial sums when the work of all `summed`
/// digits is divided among programs of which there are `others` already: no
/// more than there is work, and within `perProcessor` for every processor. More
/// than the least of these pay where each has only few iterations. See
/// docs/decisions/persistent-programs.md.
ExprAttr countPartials(ArrayRef<ScalarExpr> summed, ExprAttr others,
                       ProgramRange perProcessor);

/// The product of the extents of digits, times `factor`.
ExprAttr countPrograms(ArrayRef<ScalarExpr> digits, ExprAttr factor);

/// Computes values of a kernel in another one, in which other numbers take the
/// place of program ids. What depends on numbers that vary within the new
/// kernel's programs goes to one place, and everything else to another.
class Regrid {
public:
  /// The new kernel's first arguments are the old ones.
  Regrid(triton::FuncOp target, OpBuilder once, OpBuilder varying)
      : target(target), once(once), varying(varying) {}

  void bind(Value source, Value value, bool varies);
  /// Whoever needs `source` gets `other`, another value of the old kernel.
  void redirect(Value source, Value other) { redirected[source] = other; }
  void bindDigit(ScalarExpr digit, Value value, bool varies);
  /// Binds the digits that the new kernel's programs stand for.
  void bindPrograms(const ProgramNumbers &programs);

  /// The value in the new kernel; null if it depends on something that is not
  /// bound (a program id, what a loop carries) or has effects on memory.
  Value get(Value source);

  /// Why the last value that has none has none.
  const Reason &why() const { return reason; }

  /// Copies an operation with effects to where what varies goes.
  LogicalResult copy(Operation *op);

private:
  struct Digit {
    ScalarExpr expression;
    Value value;
    bool varies;
  };
  Elsewhere ask(Value source);
  void clone(Operation *op, bool varies);
  Value ofDigit(Value source);
  Value ofNumber(const ScalarExpr &number, Location loc, bool &varies);
  Elsewhere refuse(Operation *op);

  triton::FuncOp target;
  OpBuilder once, varying;
  SmallVector<Digit> digits;
  IRMapping map;
  llvm::DenseSet<Value> variant;
  llvm::DenseMap<Value, Value> redirected;
  Reason reason;
};

/// Adds `op` to a new kernel as the whole gradient at its addresses, or, with
/// `partial`, one of `partials` sums: `sum` has all contributions but those of
/// other values of the digits that `atZero` binds to zero. Neither the address
/// nor the mask depends on these. Fails if one cannot be computed.
LogicalResult accumulateWhole(OpBuilder &builder, AccumulateOp op,
                              Regrid &atZero, Value sum, CheckAttr check,
                              Value partial, ExprAttr partials);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_REGRID_H
