//===- UnseenRows.h - Sums of which no term is seen yet ---------*- C++ -*-===//
//
// A row in which all values so far are −∞ (masked) is *unseen*: its running
// maximum is −∞, and no sum can be relative to it. A loop gives the same as one
// with a finite M from the start if, row by row,
//   - the first iteration with a value above −∞ makes the same of any sum as
//     with M of zero;
// and in loops that treat unseen rows separately,
//   - as long as the row is unseen, the sum is zero after any iteration, and
//   - a sum that is zero stays zero with M.
// Each is a statement about one iteration. It is proved from facts about rows
// in a state: what is −∞, zero or finite (ScalingDegrees.h).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H

#include "RescaledLoop.h"

namespace mlir::autodiff {

/// Whether a loop that may use another maximum where all maxima are finite may
/// do so in unseen rows, too.
bool proveUnseenRows(const RescaledLoop &candidate);

/// Whether a row may still be unseen after an iteration of the loop.
bool mayStayUnseen(const RescaledLoop &candidate);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_UNSEENROWS_H
