//===- TileFunction.h - Scalar code as a function of tiles ------*- C++ -*-===//
#ifndef AUTODIFF_RULES_TILEFUNCTION_H
#define AUTODIFF_RULES_TILEFUNCTION_H

#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Tangents.h"
#include "mlir/IR/OwningOpRef.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// The scalar code in the region of a reduction, scan or map as a function of
/// tiles: its operations are applied element by element. So it can be evaluated
/// and differentiated, forward or backward, with the usual rules.
class TileFunction {
public:
  /// Makes a function of `region`, for tiles of `shape`, or for scalars if
  /// there is no shape. Emits an error at operations that do not exist for
  /// tiles.
  static FailureOr<TileFunction> lift(Region &region,
                                      std::optional<ArrayRef<int64_t>> shape);

  /// Gives the derivative of a maximum or minimum of equal numbers to the first
  /// one alone. Equal shares would not add up where a tuple is combined in more
  /// than one order.
  void preferFirstOnTies();

  unsigned getNumArguments() const { return numArguments; }
  unsigned getNumResults() const {
    return body().getTerminator()->getNumOperands();
  }

  /// The results for these arguments, as operations of the derived kernel.
  SmallVector<Value> evaluate(Differentiation &in, ValueRange arguments) const;

  /// The results, and their tangents, given those of the arguments; null is
  /// zero.
  struct Pairs {
    SmallVector<Value> values, tangents;
  };
  FailureOr<Pairs> push(Tangents &outer, ValueRange arguments,
                        ArrayRef<Value> tangents) const;

  /// The adjoints of the `wanted` arguments, given those of the results; null
  /// is zero. A cotangent is zero where its mask does not hold, whatever the
  /// arguments are there; null is everywhere, and so is an empty list.
  FailureOr<SmallVector<Value>> pullBack(Adjoint &adjoint, ValueRange arguments,
                                         ArrayRef<Value> cotangents,
                                         const llvm::BitVector &wanted,
                                         ArrayRef<Value> masks = {}) const;

  /// The results that depend on the `varied` arguments.
  llvm::BitVector findVaried(const llvm::BitVector &varied) const;

  /// For a combine function: the members of the tuple that carry a derivative
  /// in any combination, if the `active` members of the elements do.
  llvm::BitVector findMembers(const llvm::BitVector &active) const;

  /// A value from outside of the region that the code uses and that carries a
  /// derivative; null if there is none.
  Value findActiveCapture(const Differentiation &in) const;

private:
  TileFunction(OwningOpRef<triton::FuncOp> function, unsigned numArguments,
               SmallVector<Value> captures)
      : function(std::move(function)), numArguments(numArguments),
        captures(std::move(captures)) {}

  Block &body() const {
    return const_cast<OwningOpRef<triton::FuncOp> &>(function)
        ->getBody()
        .front();
  }
  void bind(Differentiation &outer, ValueRange arguments,
            IRMapping &mapping) const;

  OwningOpRef<triton::FuncOp> function;
  unsigned numArguments;
  /// Scalars from outside of the region: the function's last arguments.
  SmallVector<Value> captures;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_TILEFUNCTION_H
