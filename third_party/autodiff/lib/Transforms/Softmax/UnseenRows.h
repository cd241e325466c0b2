//===- UnseenRows.h - Sums of which no term is seen yet ---------*- C++ -*-===//
//
// As long as a row has seen nothing but −∞, so is its running maximum, and no
// sum can be relative to it. A loop agrees with one in the frame of any finite
// M if, row by row,
//   - the first term that is seen makes of any sum what the frame makes of
//   zero,
// and, in loops that tell such rows apart,
//   - before, the sum is zero after any iteration, and
//   - a sum that is zero stays so in the frame of M.
// Each is a statement about one iteration, from what is known of rows in a
// state: what is −∞, zero, finite (ScalingDegrees.h).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H

#include "RescaledLoop.h"

namespace mlir::autodiff {

/// Whether the loop, which changes frame where all maxima are finite, does so
/// in rows that have seen nothing, too.
bool proveUnseenRows(const RescaledLoop &candidate);

/// Whether a row may have seen nothing after an iteration of the loop.
bool mayStayUnseen(const RescaledLoop &candidate);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H
