//===- RelativeValues.h - What a loop keeps relative to a value -*- C++ -*-===//
//
// A loop carries a value c, and others relative to it: if c goes to c + t (or
// c·e^t) before an iteration, and c' to c' + t' after it, they go in as
// A·e^(−δt), and A'·e^(−δt') comes out. Then c may be any other value, as long
// as it is the same all the time. A value that nothing depends on may be
// another one in each iteration.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H

#include "autodiff/Analysis/ScalingDegrees.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Whether what an iteration hands on, and what it writes, is the same for any
/// `value`, if what it takes over, and what is `held`, stays as it is.
bool nothingDependsOn(scf::ForOp loop, Value value, ValueRange held = {});

/// For each carried value that is relative: the axes along which c runs.
using RelativeValues = llvm::DenseMap<unsigned, SmallVector<unsigned, 2>>;

/// What `loop` keeps relative to the value that it carries at `center`, if
/// nothing else that it carries or writes moves. `degrees` knows how c, c' and,
/// not at all, the other carried values move, and then what follows from that.
/// What is known of a relative value beyond its degree, `know` adds.
RelativeValues
findRelative(scf::ForOp loop, unsigned center, double delta,
             ScalingDegrees &degrees,
             llvm::function_ref<Degree(Degree, ArrayRef<unsigned>)> know);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H
