//===- RelativeValues.h - What a loop keeps relative to a value -*- C++ -*-===//
//
// A loop carries a value c, and others that are relative to it. If c is shifted
// to c + t (or scaled to c·e^t) before an iteration, and c' to c' + t' after
// it, a relative value A becomes A·e^(−δt) before, and A' becomes A'·e^(−δt')
// after it. Then c may be any other value, as long as it is the same in all
// iterations. If nothing depends on c, it may even be another value in each
// iteration.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H

#include "autodiff/Analysis/ScalingDegrees.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Whether the values that an iteration yields and writes do not depend on
/// `value`, given its carried values, and values that are `held` fixed.
bool nothingDependsOn(scf::ForOp loop, Value value, ValueRange held = {});

/// For each relative carried value, the axes along which c varies.
using RelativeValues = llvm::DenseMap<unsigned, SmallVector<unsigned, 2>>;

/// The carried values of `loop` that are relative to the one at `center`, if
/// the iteration changes nothing else. `degrees` starts with the degrees of c,
/// c' and the other carried values (which are invariant), and then gets those
/// that follow. `know` adds further facts about a relative value.
RelativeValues
findRelative(scf::ForOp loop, unsigned center, double delta,
             ScalingDegrees &degrees,
             llvm::function_ref<Degree(Degree, ArrayRef<unsigned>)> know);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RELATIVEVALUES_H
