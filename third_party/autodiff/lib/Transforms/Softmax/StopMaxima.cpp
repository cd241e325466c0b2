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
  bool capturesNothing(const RescaledLoop &later);
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

static Operation *getScope(scf::ForOp loop) {
  Operation *parent = loop->getParentOp();
  while (!isa<scf::ForOp, scf::WhileOp, triton::FuncOp>(parent))
    parent = parent->getParentOp();
  return parent;
}

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
      scope(getScope(own.loop)) {
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

static bool isSame(const Degree::Vector &a, const Degree::Vector &b) {
  return std::abs(a[0] - b[0]) < 1e-9 && std::abs(a[1] - b[1]) < 1e-9;
}

/// Whether nothing else of `later` changes: what it captures may.
bool LastMaximum::capturesNothing(const RescaledLoop &later) {
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
  bool moves = start && !isSame(start->shift, {0, 0});
  if (!start || !isSame(start->scale, {0, 0}) ||
      (moves && !isSame(start->shift, {1, 0})))
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
    if (!isSame(degree->shift, {0, 0}) || !isSame(degree->scale, scale) ||
        (isRelative && degree->axes != start->axes))
      return false;
  }
  return true;
}

bool LastMaximum::isFree() {
  if (mutation::isMade("stop-maxima:without a proof"))
    return true;
  if (isa<scf::WhileOp>(scope))
    return false;
  if (auto around = dyn_cast<scf::ForOp>(scope))
    for (Value next : around.getYieldedValues())
      if (!degrees.isInvariant(next))
        return false;
  return llvm::all_of(all,
                      [&](const RescaledLoop &each) {
                        return each.loop == own.loop ||
                               (capturesNothing(each) && begins(each));
                      }) &&
         degrees.hasInvariantEffects(scope, /*orLocal=*/isFinite);
}

/// The loops of `kernel` whose maxima may all be any numbers.
static SmallVector<RescaledLoop> findFreeLoops(triton::FuncOp kernel) {
  SmallVector<RescaledLoop> found;
  for (scf::ForOp loop : getLoops(kernel))
    for (auto next = RescaledLoop::match(loop); next;
         next = RescaledLoop::match(loop, next->maximum + 1))
      found.push_back(*next);
  for (bool changed = true; changed;) {
    SmallVector<RescaledLoop> free =
        llvm::filter_to_vector(found, [&](const RescaledLoop &each) {
          return LastMaximum(each, found, /*isFinite=*/false).isFree() ||
                 LastMaximum(each, found, /*isFinite=*/true).isFree();
        });
    changed = free.size() != found.size();
    found = std::move(free);
  }
  return found;
}

static void stop(Value value) {
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  auto stopped = createFirstOrderStop(b, value.getLoc(), value);
  value.replaceAllUsesExcept(stopped, stopped);
}

void StopMaxima::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  for (const RescaledLoop &found : findFreeLoops(kernel))
    stop(found.next);
  SmallVector<Value> maxima;
  kernel.walk([&](triton::ReduceOp reduce) {
    if (isMaximum(reduce.getResult()[0]))
      maxima.push_back(reduce.getResult()[0]);
  });
  llvm::for_each(findFreeMaxima(kernel, std::move(maxima)), stop);
}
