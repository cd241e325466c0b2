//===- LaneSteps.h - How far lanes lie from their neighbours ----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LANESTEPS_H
#define AUTODIFF_ANALYSIS_LANESTEPS_H

#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::autodiff {

/// By how much an integer or a pointer (counted in elements) grows from one
/// lane of a tile to the next along `axis`, if it is the same constant for all
/// lanes; none otherwise.
std::optional<int64_t> findLaneStep(Value value, unsigned axis);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LANESTEPS_H
