//===- Partials.h - Derivatives of elementwise operations -------*- C++ -*-===//
//
// Tangents and cotangents use the same partial derivatives: for y = f(x), ẏ = Σ
// ẋₖ · ∂y/∂xₖ and x̄ₖ += ȳ · ∂y/∂xₖ.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_PARTIALS_H
#define AUTODIFF_RULES_PARTIALS_H

#include "autodiff/Builders/Tile.h"
#include <functional>

namespace mlir::autodiff {

class Adjoint;
class Tangents;

/// One partial derivative applied to a tangent or cotangent `t`:
/// t · ∂y/∂x_k, where `x` are the operands and `y` the result.
using Partial = std::function<Tile(Tile t, llvm::ArrayRef<Tile> x, Tile y)>;

/// The partial derivatives of an operation with one result, by operand; null
/// for zero.
using Partials = SmallVector<Partial>;

/// x̄_k += ȳ · ∂y/∂x_k for every active operand of `op`.
LogicalResult pullBackPartials(Operation *op, Adjoint &adjoint,
                               llvm::ArrayRef<Partial> partials);

/// ẏ = Σ ẋ_k · ∂y/∂x_k.
LogicalResult pushPartials(Operation *op, Tangents &tangents,
                           llvm::ArrayRef<Partial> partials);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_PARTIALS_H
