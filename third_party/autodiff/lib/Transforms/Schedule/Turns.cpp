//===- Turns.cpp - Contributions one after the other ----------------------===//
#include "Turns.h"

#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Rules/Mutation.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class TurnFinder {
public:
  /// With `isFirst`, no kernel before contributes.
  TurnFinder(triton::FuncOp kernel, unsigned argument, bool isFirst,
             const llvm::DenseMap<unsigned, Operation *> &sites)
      : kernel(kernel), argument(argument), isFirst(isFirst), sites(sites) {}

  SmallVector<Turn, 0> find(ArrayRef<AccumulateOp> accumulates) const;

private:
  std::optional<AccessSpace> findSpace(ArrayRef<AccumulateOp> ops) const;
  Turn make(ArrayRef<AccumulateOp> ops, const std::optional<AccessSpace> &space,
            bool isFirst) const;
  std::optional<SmallVector<Turn, 0>>
  findOwned(ArrayRef<AccumulateOp> accumulates) const;

  triton::FuncOp kernel;
  unsigned argument;
  bool isFirst;
  const llvm::DenseMap<unsigned, Operation *> &sites;
};
} // namespace

std::optional<AccessSpace>
TurnFinder::findSpace(ArrayRef<AccumulateOp> ops) const {
  SmallVector<Operation *> loads;
  for (AccumulateOp op : ops)
    loads.push_back(sites.lookup(op.getSite()));
  return AccessSpace::findFor(loads);
}

Turn TurnFinder::make(ArrayRef<AccumulateOp> ops,
                      const std::optional<AccessSpace> &space,
                      bool isFirst) const {
  Turn turn{kernel, llvm::to_vector(ops)};
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
std::optional<SmallVector<Turn, 0>>
TurnFinder::findOwned(ArrayRef<AccumulateOp> accumulates) const {
  llvm::MapVector<Operation *, SmallVector<AccumulateOp>> byPlace;
  for (AccumulateOp op : accumulates)
    byPlace[getOutermost(op)].push_back(op);
  SmallVector<Turn, 0> turns;
  std::optional<AccessSpace> first;
  for (auto &[place, ops] : byPlace) {
    std::optional<AccessSpace> space = findSpace(ops);
    if (!space || (first && !space->isOwnedLike(*first) &&
                   !mutation::isMade("turns:addresses of other programs")))
      return std::nullopt;
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
  if (std::optional<AccessSpace> space = findSpace(accumulates))
    return {make(accumulates, space, isFirst)};
  if (auto turns = findOwned(accumulates))
    return std::move(*turns);
  return {make(accumulates, std::nullopt, isFirst)};
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
                          const llvm::DenseMap<unsigned, Operation *> &sites) {
  SmallVector<Turn, 0> turns;
  for (triton::FuncOp kernel : kernels) {
    std::map<unsigned, ArgumentUse> uses = collectUses(kernel);
    auto use = uses.find(argument);
    if (use == uses.end())
      continue;
    if (!takesTurns(use->second))
      return {};
    TurnFinder finder(kernel, argument, turns.empty(), sites);
    llvm::append_range(turns, finder.find(use->second.accumulates));
  }
  bool areAtomic =
      llvm::all_of(turns, [](const Turn &t) { return t.isAtomic(); });
  return turns.size() < 2 || areAtomic ? SmallVector<Turn, 0>() : turns;
}
