//===- LinearMap.h - Derivatives of linear operations -----------*- C++ -*-===//
//
// An operation that is linear in its floats does with tangents what it does
// with values; cotangents go through the transpose.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_LINEARMAP_H
#define AUTODIFF_RULES_LINEARMAP_H

#include "mlir/IR/Operation.h"
#include <functional>

namespace mlir::autodiff {

class Adjoint;
class Differentiation;
class Tangents;

/// A linear map and its transpose, of values where null is zero.
struct LinearMap {
  using Map = std::function<FailureOr<SmallVector<Value>>(
      Operation *op, ArrayRef<Value> values, Differentiation &in)>;
  /// Tangents of the results of `op`, from those of its operands.
  Map push;
  /// Cotangents of the operands, from those of the results.
  Map pull;
};

/// What `op` itself makes of values, be they tangents or cotangents, in place
/// of its float operands.
FailureOr<SmallVector<Value>> applyItself(Operation *op, ArrayRef<Value> values,
                                          Differentiation &in);

/// A map of one value, which is not null, to one.
template <typename OpT>
LinearMap::Map mapOf(Value (*map)(OpT op, Value value, Differentiation &in)) {
  return [map](Operation *op, ArrayRef<Value> values,
               Differentiation &in) -> FailureOr<SmallVector<Value>> {
    return SmallVector<Value>{map(cast<OpT>(op), values.front(), in)};
  };
}

LogicalResult pullBackLinear(Operation *op, Adjoint &adjoint,
                             const LinearMap &map);
LogicalResult pushLinear(Operation *op, Tangents &tangents,
                         const LinearMap &map);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_LINEARMAP_H
