//===- Turns.cpp - Contributions one after the other ----------------------===//
#include "Turns.h"

#include "autodiff/Analysis/AccessSpace.h"
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
             const llvm::DenseMap<unsigned, Operation *> &sites,
             AccessSpaces &spaces)
      : kernel(kernel), argument(argument), isFirst(isFirst), sites(sites),
        spaces(spaces) {}

  SmallVector<Turn, 0> find(ArrayRef<AccumulateOp> accumulates) const;

private:
  ReasonOr<AccessSpace> findSpace(ArrayRef<AccumulateOp> ops) const;
  Turn make(ArrayRef<AccumulateOp> ops, const ReasonOr<AccessSpace> &space,
            bool isFirst) const;
  ReasonOr<SmallVector<Turn, 0>>
  findOwned(ArrayRef<AccumulateOp> accumulates) const;

  triton::FuncOp kernel;
  unsigned argument;
  bool isFirst;
  const llvm::DenseMap<unsigned, Operation *> &sites;
  AccessSpaces &spaces;
};
} // namespace

ReasonOr<AccessSpace> TurnFinder::findSpace(ArrayRef<AccumulateOp> ops) const {
  SmallVector<Operation *> loads;
  for (AccumulateOp op : ops)
    loads.push_back(sites.lookup(op.getSite()));
  return spaces.findFor(loads);
}

Turn TurnFinder::make(ArrayRef<AccumulateOp> ops,
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

Operation *Turn::getOutermost() const {
  return ::getOutermost(AccumulateOp(ops.front()));
}

/// A turn for each operation at the outer level, if programs touch the same
/// addresses in all of them.
ReasonOr<SmallVector<Turn, 0>>
TurnFinder::findOwned(ArrayRef<AccumulateOp> accumulates) const {
  llvm::MapVector<Operation *, SmallVector<AccumulateOp>> byPlace;
  for (AccumulateOp op : accumulates)
    byPlace[getOutermost(op)].push_back(op);
  SmallVector<Turn, 0> turns;
  std::optional<AccessSpace> first;
  for (auto &[place, ops] : byPlace) {
    ReasonOr<AccessSpace> space = findSpace(ops);
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
TurnFinder::find(ArrayRef<AccumulateOp> accumulates) const {
  if (AccumulateOp op = accumulates.front();
      CheckAttr whole = op.getWholeAttr()) {
    Turn turn{kernel, llvm::to_vector(accumulates)};
    turn.check = whole;
    turn.isExact = true;
    return {turn};
  }
  if (ReasonOr<AccessSpace> space = findSpace(accumulates))
    return {make(accumulates, space, isFirst)};
  ReasonOr<SmallVector<Turn, 0>> turns = findOwned(accumulates);
  if (turns)
    return std::move(*turns);
  return {make(accumulates, turns.why(), isFirst)};
}

/// What is summed, added or taken elsewhere has its own way.
static bool takesTurns(const ArgumentUse &use) {
  return use.upstreams.empty() &&
         llvm::none_of(use.accumulates, [](AccumulateOp op) {
           return op.getPartial() || op.getRemainder();
         });
}

SmallVector<Turn, 0>
mlir::autodiff::findTurns(ArrayRef<triton::FuncOp> kernels, unsigned argument,
                          const llvm::DenseMap<unsigned, Operation *> &sites,
                          AccessSpaces &spaces) {
  SmallVector<Turn, 0> turns;
  for (triton::FuncOp kernel : kernels) {
    std::map<unsigned, ArgumentUse> uses = collectUses(kernel);
    auto use = uses.find(argument);
    if (use == uses.end())
      continue;
    if (!takesTurns(use->second))
      return {};
    TurnFinder finder(kernel, argument, turns.empty(), sites, spaces);
    llvm::append_range(turns, finder.find(use->second.accumulates));
  }
  for (const Turn &turn : turns)
    if (turn.isAtomic() && (turns.size() > 1 || turn.ops.size() > 1))
      kRemarks.missed(AccumulateOp(turn.ops.front()), turn.why);
  bool areAtomic =
      llvm::all_of(turns, [](const Turn &t) { return t.isAtomic(); });
  return turns.size() < 2 || areAtomic ? SmallVector<Turn, 0>() : turns;
}
