//===- ShortLoops.h - Loops of few iterations, taken apart ------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H

#include "Recordings.h"

namespace mlir::autodiff {

/// Where a loop that records and the one that reads back have few iterations,
/// and their number is known: puts the iterations of both one after the other,
/// so that nothing is read back. Takes one such pair apart, an inner one first;
/// whether there was any.
bool takeShortLoopsApart(Recordings &recordings);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_SHORTLOOPS_H
