//===- LinearMap.h - Derivatives of linear operations -----------*- C++ -*-===//
//
// An operation that is linear in its floats is its own pushforward: it is
// applied to tangents. Cotangents go through its transpose.
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

/// A linear map and its transpose. Null operands and results are zero.
struct LinearMap {
  using Map = std::function<FailureOr<SmallVector<Value>>(
      Operation *op, ArrayRef<Value> values, Differentiation &in)>;
  /// Tangents of the results of `op`, given those of its operands.
  Map push;
  /// Cotangents of the operands, given those of the results.
  Map pull;
};

/// Applies `op` itself to tangents or cotangents in place of its float
/// operands.
FailureOr<SmallVector<Value>> applyItself(Operation *op, ArrayRef<Value> values,
                                          Differentiation &in);

/// Wraps a map of one value, which is never null, to one value.
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
