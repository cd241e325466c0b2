//===- RelativeValues.cpp - What a loop keeps relative to a value ---------===//
#include "RelativeValues.h"

#include "Maxima.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::nothingDependsOn(scf::ForOp loop, Value value,
                                      ValueRange held) {
  ScalingDegrees degrees;
  for (ValueRange fixed : {ValueRange(loop.getRegionIterArgs()), held})
    for (Value still : fixed)
      degrees.seed(still, Degree());
  degrees.seed(value, Degree::shifted({1, 0}, seedAxes(value)));
  return llvm::all_of(loop.getYieldedValues(),
                      [&](Value next) { return degrees.isInvariant(next); }) &&
         degrees.hasInvariantEffects(loop);
}

/// Whether a value of degree −δ in the first shift has degree −δ in the second
/// one after the iteration.
static bool isRelative(const std::optional<Degree> &next, double delta,
                       ArrayRef<unsigned> axes) {
  return (next && next->isScale() && std::abs(next->scale[0]) < 1e-9 &&
          std::abs(next->scale[1] + delta) < 1e-9 && next->axes == axes) ||
         mutation::isMade("relative:any value");
}

RelativeValues mlir::autodiff::findRelative(
    scf::ForOp loop, unsigned center, double delta, ScalingDegrees &degrees,
    llvm::function_ref<Degree(Degree, ArrayRef<unsigned>)> know) {
  const ScalingDegrees seeded = degrees;
  unsigned count = loop.getNumResults();
  // The axes along which c varies follow from what is added.
  SmallVector<unsigned, 2> axes = seedAxes(loop.getRegionIterArg(center));
  SmallVector<bool> relative(count);
  for (unsigned index = 0; index < count; ++index)
    relative[index] =
        index != center && isFloat(loop.getRegionIterArg(index).getType());
  for (bool changed = true; changed;) {
    changed = false;
    degrees = seeded;
    for (unsigned index = 0; index < count; ++index)
      if (relative[index])
        degrees.seed(loop.getRegionIterArg(index),
                     know(Degree::scaled({-delta, 0}, axes), axes));
    for (unsigned index = 0; index < count; ++index) {
      if (index == center)
        continue;
      std::optional<Degree> next = degrees.of(loop.getYieldedValues()[index]);
      if (!relative[index] && !(next && next->isInvariant()))
        return RelativeValues();
      if (!relative[index] || isRelative(next, delta, axes))
        continue;
      relative[index] = false;
      changed = true;
    }
  }
  if (!degrees.hasInvariantEffects(loop))
    return RelativeValues();
  RelativeValues found;
  for (unsigned index = 0; index < count; ++index)
    if (relative[index])
      found[index] = axes;
  return found;
}
