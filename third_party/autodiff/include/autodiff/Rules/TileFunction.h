//===- TileFunction.h - Scalar code as a function of tiles ------*- C++ -*-===//
#ifndef AUTODIFF_RULES_TILEFUNCTION_H
#define AUTODIFF_RULES_TILEFUNCTION_H

#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Tangents.h"
#include "mlir/IR/OwningOpRef.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// The scalar code in the region of a reduction, scan or map, lifted to tiles:
/// its operations work element by element there, so that it can be evaluated
/// and differentiated, either way, with the rules that all other operations
/// have.
class TileFunction {
public:
  /// Lifts `region`, to be applied to tiles of `shape`, or to scalars if there
  /// is none. Emits an error at code that has no counterpart on tiles.
  static FailureOr<TileFunction> lift(Region &region,
                                      std::optional<ArrayRef<int64_t>> shape);

  /// Makes the derivative of maxima and minima of equal numbers that of the
  /// first one. Where a tuple is combined in more than one order, even shares
  /// would not add up.
  void preferFirstOnTies();

  unsigned getNumArguments() const { return numArguments; }
  unsigned getNumResults() const {
    return body().getTerminator()->getNumOperands();
  }

  /// The results for these arguments, computed in the derived kernel.
  SmallVector<Value> evaluate(Differentiation &in, ValueRange arguments) const;

  /// The results, and their tangents (null for zero) given those of the
  /// arguments (null for zero, too).
  struct Pairs {
    SmallVector<Value> values, tangents;
  };
  FailureOr<Pairs> push(Tangents &outer, ValueRange arguments,
                        ArrayRef<Value> tangents) const;

  /// The adjoints of the `wanted` arguments, null for zero, given those of the
  /// results (null for zero, too).
  FailureOr<SmallVector<Value>> pullBack(Adjoint &adjoint, ValueRange arguments,
                                         ArrayRef<Value> cotangents,
                                         const llvm::BitVector &wanted) const;

  /// The results that vary with the `varied` arguments.
  llvm::BitVector findVaried(const llvm::BitVector &varied) const;

  /// Of a combine function, the members of the tuple that carry a derivative in
  /// combinations of elements of which `active` members do.
  llvm::BitVector findMembers(const llvm::BitVector &active) const;

  /// A value from outside that the code uses and that carries a derivative.
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
  /// Scalars from outside: the function's last arguments.
  SmallVector<Value> captures;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_TILEFUNCTION_H
