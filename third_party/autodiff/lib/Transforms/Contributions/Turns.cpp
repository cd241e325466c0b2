//===- Turns.cpp - Contributions one after the other ----------------------===//
#include "Turns.h"

#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Remarks.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("turns");

namespace {
class TurnFinder {
public:
  /// With `isFirst`, no kernel before contributes.
  TurnFinder(triton::FuncOp kernel, unsigned argument, bool isFirst,
             Contributions &all)
      : kernel(kernel), argument(argument), isFirst(isFirst), all(all) {}

  SmallVector<Turn, 0> find(ArrayRef<Contribution> contributions) const;

private:
  Turn make(ArrayRef<Contribution> ops, const ReasonOr<AccessSpace> &space,
            bool isFirst) const;
  ReasonOr<SmallVector<Turn, 0>>
  findOwned(ArrayRef<Contribution> contributions) const;

  triton::FuncOp kernel;
  unsigned argument;
  bool isFirst;
  Contributions &all;
};
} // namespace

Turn TurnFinder::make(ArrayRef<Contribution> ops,
                      const ReasonOr<AccessSpace> &space, bool isFirst) const {
  Turn turn{kernel, llvm::to_vector(ops)};
  turn.why = space.why();
  if (space) {
    turn.isExact = space->isExact();
    turn.check = space->toCheck(isFirst && turn.isExact ? CheckKind::Bijective
                                                        : CheckKind::Distinct,
                                argument);
  }
  return turn;
}

/// The operation at the outer level of the kernel that `op` is in.
static Operation *getOutermost(Operation *op) {
  while (!isa<triton::FuncOp>(op->getParentOp()))
    op = op->getParentOp();
  return op;
}

Operation *Turn::getOutermost() const { return ::getOutermost(ops.front()); }

/// A turn for each operation at the outer level, if programs touch the same
/// addresses in all of them.
ReasonOr<SmallVector<Turn, 0>>
TurnFinder::findOwned(ArrayRef<Contribution> contributions) const {
  llvm::MapVector<Operation *, SmallVector<Contribution>> byPlace;
  for (Contribution op : contributions)
    byPlace[getOutermost(op)].push_back(op);
  SmallVector<Turn, 0> turns;
  std::optional<AccessSpace> first;
  for (auto &[place, ops] : byPlace) {
    ReasonOr<AccessSpace> space = all.findFor(ops);
    if (!space)
      return space.why();
    if (first && !space->isOwnedLike(*first) &&
        !mutation::isMade("turns:addresses of other programs"))
      return because(place,
                     "it is loaded at {0} and {1}, and what a program loads at "
                     "one of them may be another one's at the other",
                     turns.front().ops.front(), ops.front());
    turns.push_back(make(ops, space, isFirst && !first));
    turns.back().isBehindBarrier = first.has_value();
    if (!first)
      first = space;
  }
  return turns;
}

SmallVector<Turn, 0>
TurnFinder::find(ArrayRef<Contribution> contributions) const {
  if (Contribution op = contributions.front();
      CheckAttr whole = op.getWholeAttr()) {
    Turn turn{kernel, llvm::to_vector(contributions)};
    turn.check = whole;
    turn.isExact = true;
    return {turn};
  }
  if (ReasonOr<AccessSpace> space = all.findFor(contributions))
    return {make(contributions, space, isFirst)};
  ReasonOr<SmallVector<Turn, 0>> turns = findOwned(contributions);
  if (turns)
    return std::move(*turns);
  return {make(contributions, turns.why(), isFirst)};
}

/// What is summed, added or taken elsewhere has its own way.
static bool takesTurns(const GradientUse &use) {
  return use.upstreams.empty() &&
         llvm::none_of(use.contributions, [](Contribution op) {
           return op.getPartial() || op.getRemainder();
         });
}

SmallVector<Turn, 0> mlir::autodiff::findTurns(ArrayRef<triton::FuncOp> kernels,
                                               unsigned argument,
                                               Contributions &all) {
  SmallVector<Turn, 0> turns;
  for (triton::FuncOp kernel : kernels) {
    GradientUses uses = all.in(kernel);
    auto use = uses.find(argument);
    if (use == uses.end())
      continue;
    if (!takesTurns(use->second))
      return {};
    TurnFinder finder(kernel, argument, turns.empty(), all);
    llvm::append_range(turns, finder.find(use->second.contributions));
  }
  for (const Turn &turn : turns)
    if (turn.isAtomic() && (turns.size() > 1 || turn.ops.size() > 1))
      kRemarks.missed(turn.ops.front(), turn.why);
  bool areAtomic =
      llvm::all_of(turns, [](const Turn &t) { return t.isAtomic(); });
  return turns.size() < 2 || areAtomic ? SmallVector<Turn, 0>() : turns;
}
