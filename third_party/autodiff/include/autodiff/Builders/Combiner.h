//===- Combiner.h - What a reduction or scan combines with ------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_COMBINER_H
#define AUTODIFF_BUILDERS_COMBINER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"

namespace mlir::autodiff {

enum class Combiner { Sum, Max, Min, Other };

/// The kind of a combine region of a one-value reduction or scan: a single
/// operation on its two arguments.
Combiner classifyCombiner(Region &region);

/// Whether the region returns all of its left arguments or all of its right
/// ones, by one condition, as an arg-max does.
bool isChoice(Region &region);

/// Emits a combine function, given the arguments for the combination so far and
/// for the next element.
using CombineBuilder = llvm::function_ref<SmallVector<Value>(
    OpBuilder &, ValueRange running, ValueRange next)>;

/// The scan, or the reduction, of `tiles` with the combine function that
/// `build` emits.
SmallVector<Value> scanWith(OpBuilder &builder, Location loc, ValueRange tiles,
                            unsigned axis, bool reverse, CombineBuilder build);
SmallVector<Value> reduceWith(OpBuilder &builder, Location loc,
                              ValueRange tiles, unsigned axis,
                              CombineBuilder build);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_COMBINER_H
