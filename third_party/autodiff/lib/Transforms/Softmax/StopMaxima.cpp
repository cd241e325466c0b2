//===- StopMaxima.cpp - Maxima without tangents ---------------------------===//
//
// The tangent of a maximum is that of the elements that attain it, which have
// to be found and counted. What a softmax stores is the same whatever it
// subtracts, so no tangent needs that of its maximum.
//
// An online softmax has a maximum in each iteration. RescaledLoop.h proves that
// each may be any number, if the sums that leave the loop are relative to the
// last one. What is left to prove is that nothing outside of the loop changes
// if the last maximum is shifted, with these sums. A later loop may begin with
// all of them.
//
//===----------------------------------------------------------------------===//
#include "FreeMaxima.h"
#include "Maxima.h"
#include "RescaledLoop.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/FirstOrderStop.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_STOPMAXIMA
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct StopMaxima : autodiff::impl::StopMaximaBase<StopMaxima> {
  void runOnOperation() override;
};

/// A proof that a loop's last maximum is free, given those of other loops.
class LastMaximum {
public:
  LastMaximum(const RescaledLoop &own, ArrayRef<RescaledLoop> all,
              bool isFinite);

  bool isFree();

private:
  void fix(scf::ForOp loop);
  bool capturesFixed(const RescaledLoop &later);
  bool begins(const RescaledLoop &later);

  Degree guard(Degree degree) { return isFinite ? degree.at(axes) : degree; }

  const RescaledLoop &own;
  ArrayRef<RescaledLoop> all;
  bool isFinite;
  SmallVector<unsigned, 2> axes;
  Operation *scope;
  ScalingDegrees degrees;
};
} // namespace

/// What a loop does is known; it does not change.
void LastMaximum::fix(scf::ForOp loop) {
  for (Value carried : loop.getRegionIterArgs())
    degrees.seed(carried, Degree());
  for (Value result : loop.getResults())
    degrees.seed(result, Degree());
}

LastMaximum::LastMaximum(const RescaledLoop &own, ArrayRef<RescaledLoop> all,
                         bool isFinite)
    : own(own), all(all), isFinite(isFinite), axes(seedAxes(own.getCurrent())),
      scope(findScope(own.loop->getBlock())) {
  if (auto around = dyn_cast<scf::ForOp>(scope))
    for (Value carried : around.getRegionIterArgs())
      degrees.seed(carried, Degree());
  for (const RescaledLoop &each : all)
    fix(each.loop);
  scf::ForOp loop = own.loop;
  for (auto &[index, varying] : own.accumulators)
    degrees.seed(loop.getResult(index),
                 guard(Degree::scaled({-own.delta, 0}, varying)));
  Degree shifted = guard(Degree::shifted({1, 0}, axes));
  degrees.seed(loop.getResult(own.maximum),
               isFinite ? shifted.with(Degree::Special::Finite) : shifted);
}

/// Whether what `later` takes from outside, other than what it carries, does
/// not change.
bool LastMaximum::capturesFixed(const RescaledLoop &later) {
  scf::ForOp loop = later.loop;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(loop.getRegion(), captured);
  captured.insert(loop.getLowerBound());
  captured.insert(loop.getUpperBound());
  captured.insert(loop.getStep());
  return llvm::all_of(captured,
                      [&](Value value) { return degrees.isInvariant(value); });
}

/// Whether what `later` carries begins as it is relative to its own maximum.
bool LastMaximum::begins(const RescaledLoop &later) {
  scf::ForOp loop = later.loop;
  auto inits = loop.getInitArgs();
  std::optional<Degree> start = degrees.of(inits[later.maximum]);
  bool moves = start && !equal(start->shift, {0, 0});
  if (!start || !equal(start->scale, {0, 0}) ||
      (moves && !equal(start->shift, {1, 0})))
    return false;
  for (auto [index, init] : llvm::enumerate(inits)) {
    if (index == later.maximum)
      continue;
    std::optional<Degree> degree = degrees.of(init);
    if (!degree)
      return false;
    bool isRelative = moves && later.accumulators.contains(index);
    Degree::Vector scale{isRelative ? -later.delta : 0, 0};
    if (degree->is(Degree::Special::Zero))
      continue;
    if (!equal(degree->shift, {0, 0}) || !equal(degree->scale, scale) ||
        (isRelative && degree->axes != start->axes))
      return false;
  }
  return true;
}

bool LastMaximum::isFree() {
  if (mutation::isMade("stop-maxima:without a proof"))
    return true;
  return llvm::all_of(all,
                      [&](const RescaledLoop &each) {
                        return each.loop == own.loop ||
                               (capturesFixed(each) && begins(each));
                      }) &&
         isUnseen(degrees, scope, /*orLocal=*/isFinite);
}

/// The loops of `kernel` whose maxima may all be any numbers.
static SmallVector<RescaledLoop> findFreeLoops(triton::FuncOp kernel) {
  SmallVector<RescaledLoop> found;
  for (scf::ForOp loop : getLoops(kernel))
    for (auto next = RescaledLoop::match(loop); next;
         next = RescaledLoop::match(loop, next->maximum + 1))
      found.push_back(*next);
  return keepFree(std::move(found), [](const RescaledLoop &each,
                                       ArrayRef<RescaledLoop> all) {
    return LastMaximum(each, all, /*isFinite=*/false).isFree() ||
           LastMaximum(each, all, /*isFinite=*/true).isFree();
  });
}

void StopMaxima::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  for (const RescaledLoop &found : findFreeLoops(kernel))
    stopFirstOrder(found.next);
  SmallVector<Value> maxima;
  kernel.walk([&](triton::ReduceOp reduce) {
    if (isMaximum(reduce.getResult()[0]))
      maxima.push_back(reduce.getResult()[0]);
  });
  llvm::for_each(findFreeMaxima(kernel, std::move(maxima)), stopFirstOrder);
}
