//===- ShortLoops.h - Loops of few iterations, taken apart ------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H

#include "Recordings.h"

namespace mlir::autodiff {

/// Unrolls a loop that records values together with the one that reads them, if
/// their number of iterations is known and small: then nothing is read from a
/// tape. Unrolls one pair, an inner one first; returns whether there was one.
bool takeShortLoopsApart(Recordings &recordings);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H
