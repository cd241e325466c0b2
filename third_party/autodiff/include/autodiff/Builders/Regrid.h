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

/// How many values, from 0 on, a digit of program ids has.
ExprAttr extentOf(const ScalarExpr &digit);

/// Splits `number` into digits of these extents, the first one fastest.
SmallVector<Value> takeApart(OpBuilder &builder, Location loc, Value number,
                             ArrayRef<Value> extents);

/// A kernel with the arguments of `kernel` and no body yet, beside the module's
/// backward kernels.
triton::FuncOp createBeside(triton::FuncOp kernel, const llvm::Twine &name);

/// What the programs of a new kernel stand for: a number below `count`, and a
/// value for each of some digits of the old kernel's program ids.
struct ProgramNumbers {
  Value number;
  SmallVector<std::pair<ScalarExpr, Value>> digits;
};

/// Gives `kernel` a grid with a program for each combination of a number below
/// `count`, which is fastest, and values of `digits`.
ProgramNumbers numberPrograms(OpBuilder &builder, triton::FuncOp kernel,
                              ExprAttr count, ArrayRef<ScalarExpr> digits);

/// The number of partial sums, if the work of all `summed` digits is divided
/// among programs and there are `others` programs beside: no more than there is
/// work, and in the range `perProcessor` for every processor. More than the
/// minimum only pays where each program has few iterations. See
/// docs/decisions/persistent-programs.md.
ExprAttr countPartials(ArrayRef<ScalarExpr> summed, ExprAttr others,
                       ProgramRange perProcessor);

/// The product of the extents of digits, times `factor`.
ExprAttr countPrograms(ArrayRef<ScalarExpr> digits, ExprAttr factor);

/// Clones values of a kernel into another one, in which other numbers stand for
/// its program ids. Values that depend on numbers which vary within a program
/// of the new kernel are emitted at one insertion point, all others at another.
class Regrid {
public:
  /// The new kernel's first arguments are the old kernel's.
  Regrid(triton::FuncOp target, OpBuilder once, OpBuilder varying)
      : target(target), once(once), varying(varying) {}

  void bind(Value source, Value value, bool varies);
  /// Uses the old kernel's value `other` wherever `source` is needed.
  void redirect(Value source, Value other) { redirected[source] = other; }
  void bindDigit(ScalarExpr digit, Value value, bool varies);
  /// Binds the digits for which the new kernel has programs.
  void bindPrograms(const ProgramNumbers &programs);

  /// The clone of a value; null if it depends on something that is not bound (a
  /// program id, a carried value), or on an operation that writes to memory. Of
  /// loops that contribute to gradients on the way, the clones do not.
  Value get(Value source);

  /// Why `get` returned null last.
  const Reason &why() const { return reason; }

  /// Clones an operation with memory effects to the second insertion point.
  LogicalResult copy(Operation *op);

private:
  struct Digit {
    ScalarExpr expression;
    Value value;
    bool varies;
  };
  Elsewhere ask(Value source);
  Operation *clone(Operation *op, bool varies);
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

/// Adds to a new kernel the contribution `op`, with `sum` as its value: the
/// whole gradient at its addresses, or with `partial` one of `partials` sums.
/// Address and mask do not depend on the digits that were summed over; `atZero`
/// binds these to zero. Fails if address or mask cannot be computed.
LogicalResult accumulateWhole(OpBuilder &builder, AccumulateOp op,
                              Regrid &atZero, Value sum, CheckAttr check,
                              Value partial, ExprAttr partials);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_REGRID_H
