//===- Moves.h - Operations that only move elements -------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_MOVES_H
#define AUTODIFF_ANALYSIS_MOVES_H

#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::autodiff {

/// Whether `op` only moves elements: a transposition, a reshape, a splat. What
/// a sort swaps is taken for unknown.
bool onlyMoves(Operation *op);
/// Whether `op` only moves elements or changes their bit width.
bool rearranges(Operation *op);
/// Whether `op` moves elements, or changes how they are written.
bool movesElements(Operation *op);

/// A tile that repeats `source` along `axis`: a splat of a scalar (along its
/// only axis), or an expand_dims and a broadcast.
struct Repeated {
  Value source;
  unsigned axis;
};
std::optional<Repeated> matchRepeated(Value tile);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_MOVES_H
