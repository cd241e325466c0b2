//===- Lanes.cpp - Conditions on the lanes of a tile ----------------------===//
#include "autodiff/Analysis/LiveLanes.h"

#include "autodiff/Analysis/LoopBounds.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = Lanes::Kind;
using Parts = SmallVector<const Lanes *>;

/// Conditions larger than this are not told apart.
constexpr unsigned kMostAlternatives = 6, kGreatestSize = 48;

/// Identifies how lanes of this operand lead to lanes of the results.
static void profileUse(OpOperand *use, llvm::FoldingSetNodeID &id) {
  Operation *op = use->getOwner();
  id.AddPointer(op->getName().getAsOpaquePointer());
  id.AddInteger(use->getOperandNumber());
  id.AddPointer(use->get().getType().getAsOpaquePointer());
  id.AddPointer(op->getResult(0).getType().getAsOpaquePointer());
  for (StringRef name : {"axis", "order", "reverse"})
    id.AddPointer(op->getAttr(name).getAsOpaquePointer());
}

void Lanes::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(static_cast<int>(kind));
  id.AddPointer(condition.getAsOpaquePointer());
  for (unsigned axis : axes)
    id.AddInteger(axis);
  id.AddPointer(loop);
  if (use)
    profileUse(use, id);
  for (const Lanes *part : parts)
    id.AddPointer(part);
}

const Lanes *LaneAlgebra::get(Lanes lanes) {
  llvm::FoldingSetNodeID id;
  lanes.Profile(id);
  void *position;
  if (Lanes *known = nodes.FindNodeOrInsertPos(id, position))
    return known;
  lanes.number = nodes.size();
  lanes.size = 1;
  for (const Lanes *part : lanes.parts)
    lanes.size += part->size;
  if (lanes.size > kGreatestSize)
    return unknown();
  lanes.axes = lanes.axes.copy(allocator);
  lanes.parts = lanes.parts.copy(allocator);
  auto *made = new (allocator.Allocate<Lanes>()) Lanes(lanes);
  nodes.InsertNode(made, position);
  return made;
}

const Lanes *LaneAlgebra::get(Kind kind, ArrayRef<const Lanes *> parts) {
  Lanes lanes{};
  lanes.kind = kind;
  lanes.parts = parts;
  return get(lanes);
}

const Lanes *LaneAlgebra::get(Kind kind, Operation *loop) {
  Lanes lanes{};
  lanes.kind = kind;
  lanes.loop = loop;
  return get(lanes);
}

const Lanes *LaneAlgebra::ifRuns(scf::ForOp loop) {
  Constraints runs = boundsOfRunning(loop, ScalarExpr::From::Launch);
  return runs && runs->empty() ? all() : get(Kind::Runs, loop);
}

const Lanes *LaneAlgebra::ifRunsAgain(scf::ForOp loop) {
  return get(Kind::Again, loop);
}

const Lanes *LaneAlgebra::some(const Lanes *of) {
  return of->isNone() || of->isUnsure() ? of : get(Kind::Some, {of});
}

/// The rank of a tile; zero for others.
static unsigned rankOf(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.getRank() : 0;
}

/// Looks through broadcasts and moves of a condition, so that equal conditions
/// are recognised.
const Lanes *LaneAlgebra::where(Value condition, bool holds,
                                ArrayRef<unsigned> axes) {
  Attribute constant;
  if (matchPattern(condition, m_Constant(&constant))) {
    if (auto splat = dyn_cast<SplatElementsAttr>(constant))
      constant = splat.getSplatValue<Attribute>();
    if (auto number = dyn_cast<IntegerAttr>(constant))
      return number.getValue().isZero() != holds ? all() : none();
  }
  Operation *op = condition.getDefiningOp();
  auto inner = [&](unsigned operand) {
    return where(op->getOperand(operand), holds, axes);
  };
  if (isa_and_nonnull<ResidualOp>(op))
    return inner(0);
  if (auto map = triton::AxisMap::ofMove(op)) {
    SmallVector<unsigned> before;
    for (unsigned axis : llvm::seq(map->getOperandRank())) {
      std::optional<unsigned> moved = map->toResult(axis);
      before.push_back(moved ? axes[*moved]
                             : 0); // of length one: not looked at
    }
    return where(op->getOperand(0), holds, before);
  }
  if (isa_and_nonnull<arith::AndIOp>(op))
    return holds ? both(inner(0), inner(1)) : either(inner(0), inner(1));
  if (isa_and_nonnull<arith::OrIOp>(op))
    return holds ? either(inner(0), inner(1)) : both(inner(0), inner(1));
  if (isa_and_nonnull<arith::XOrIOp>(op) &&
      matchPattern(op->getOperand(1), m_One()))
    return where(op->getOperand(0), !holds, axes);
  Lanes lanes{};
  lanes.kind = holds ? Kind::Where : Kind::Unless;
  lanes.condition = condition;
  SmallVector<unsigned> occupied;
  for (unsigned axis = 0; axis < rankOf(condition.getType()); ++axis)
    if (cast<RankedTensorType>(condition.getType()).getDimSize(axis) != 1)
      occupied.push_back(axes[axis]);
  lanes.axes = occupied;
  return get(lanes);
}

const Lanes *LaneAlgebra::where(Value condition, bool holds) {
  return where(condition, holds,
               llvm::to_vector(llvm::seq(rankOf(condition.getType()))));
}

//===----------------------------------------------------------------------===//
// Conjunctions and alternatives
//===----------------------------------------------------------------------===//

/// The conditions that a conjunction consists of.
static Parts partsOf(const Lanes *lanes) {
  if (lanes->isAll())
    return {};
  return lanes->kind == Kind::And ? Parts(lanes->parts) : Parts{lanes};
}

/// A condition, weakened to hold in some iteration only.
static const Lanes *atSomeTime(const Lanes *part) {
  return part->kind == Kind::Some ? part->parts[0] : part;
}

static bool areOpposite(const Lanes *a, const Lanes *b) {
  return a->condition && a->condition == b->condition && a->axes == b->axes &&
         a->kind != b->kind;
}

static void sortAndUnique(Parts &parts) {
  llvm::sort(parts, [](const Lanes *a, const Lanes *b) {
    return a->number < b->number;
  });
  parts.erase(llvm::unique(parts), parts.end());
}

const Lanes *LaneAlgebra::both(const Lanes *a, const Lanes *b) {
  if (a->isNone() || b->isNone())
    return none();
  Parts parts = partsOf(a);
  parts.append(partsOf(b));
  sortAndUnique(parts);
  for (const Lanes *part : parts)
    for (const Lanes *other : parts)
      if (areOpposite(part, other))
        return none();
  if (parts.empty())
    return all();
  return parts.size() == 1 ? parts[0] : get(Kind::And, parts);
}

const Lanes *LaneAlgebra::either(const Lanes *a, const Lanes *b) {
  if (a->isNone() || a == b)
    return b;
  if (b->isNone())
    return a;
  Parts ofA = partsOf(a), ofB = partsOf(b), common;
  for (const Lanes *part : ofA)
    if (llvm::is_contained(ofB, part))
      common.push_back(part);
  const Lanes *shared = all(), *restOfA = all(), *restOfB = all();
  for (const Lanes *part : common)
    shared = both(shared, part);
  bool isUnsure = false;
  auto collect = [&](ArrayRef<const Lanes *> parts, const Lanes *&rest) {
    for (const Lanes *part : parts) {
      if (llvm::is_contained(common, part))
        continue;
      isUnsure |= part->isUnsure();
      rest = both(rest, atSomeTime(part));
    }
  };
  collect(ofA, restOfA);
  collect(ofB, restOfB);
  if (common.size() == ofA.size() || common.size() == ofB.size() ||
      areOpposite(restOfA, restOfB))
    return shared;
  auto isUnknown = [](const Lanes *rest) {
    return llvm::any_of(partsOf(rest), [](const Lanes *part) {
      return part->kind == Kind::Unknown;
    });
  };
  if (restOfA->isAll() || restOfB->isAll() || isUnknown(restOfA) ||
      isUnknown(restOfB))
    return both(shared, unknown());
  Parts alternatives;
  for (const Lanes *rest : {restOfA, restOfB})
    if (rest->kind == Kind::Or)
      llvm::append_range(alternatives, rest->parts);
    else
      alternatives.push_back(rest);
  sortAndUnique(alternatives);
  const Lanes *rest = alternatives.size() == 1 ? alternatives[0]
                      : alternatives.size() > kMostAlternatives
                          ? unknown()
                          : get(Kind::Or, alternatives);
  return both(shared, isUnsure ? some(rest) : rest);
}

const Lanes *LaneAlgebra::without(const Lanes *lanes, const Lanes *known) {
  const Lanes *rest = all();
  Parts parts = partsOf(known);
  for (const Lanes *part : partsOf(lanes))
    if (!llvm::is_contained(parts, part))
      rest = both(rest, part);
  return rest;
}

//===----------------------------------------------------------------------===//
// Through operations
//===----------------------------------------------------------------------===//

/// Whether each lane of the result depends on one lane of the operand only.
static bool keepsApart(Operation *op) {
  return isa<triton::ExpandDimsOp, triton::ReshapeOp, triton::TransOp,
             triton::JoinOp, triton::SplitOp, triton::ReduceOp, SwapOp>(op);
}

/// The axes of an operand for these axes of the user's result. None if lanes
/// along one of them are reduced, or moved.
static std::optional<SmallVector<unsigned>> placeAxes(OpOperand &use,
                                                      ArrayRef<unsigned> axes) {
  auto map = triton::AxisMap::of(use);
  SmallVector<unsigned> placed;
  for (unsigned axis : axes) {
    std::optional<unsigned> place = map ? map->toOperand(axis) : std::nullopt;
    if (!place)
      return std::nullopt;
    placed.push_back(*place);
  }
  return placed;
}

/// The lanes of an operand that lead to `result`, if there is no `Some` in it.
const Lanes *LaneAlgebra::throughOne(OpOperand &use, const Lanes *result) {
  auto key = std::make_pair(&use, result);
  if (const Lanes *known = carried.lookup(key))
    return known;
  const Lanes *lanes = makeThrough(use, result);
  carried[key] = lanes;
  return lanes;
}

const Lanes *LaneAlgebra::makeThrough(OpOperand &use, const Lanes *result) {
  Operation *op = use.getOwner();
  if (result->isAll() || result->isNone() || result->isUnsure())
    return result;
  if (result->isCondition())
    if (auto axes = placeAxes(use, result->axes)) {
      Lanes moved = *result;
      moved.axes = *axes;
      return get(moved);
    }
  bool isOr = result->kind == Kind::Or;
  if (isOr || (result->kind == Kind::And && keepsApart(op))) {
    const Lanes *sum = isOr ? none() : all();
    for (const Lanes *part : result->parts)
      sum = isOr ? either(sum, throughOne(use, part))
                 : both(sum, throughOne(use, part));
    return sum;
  }
  if (result->kind == Kind::And) {
    // Conditions that are the same in all reduced lanes stay as they are.
    const Lanes *uniform = all(), *rest = all();
    for (const Lanes *part : result->parts)
      if (part->isUnsure() ||
          (part->isCondition() && placeAxes(use, part->axes)))
        uniform = both(uniform, throughOne(use, part));
      else
        rest = both(rest, part);
    if (!uniform->isAll())
      return both(uniform, throughOne(use, rest));
  }
  Lanes lanes{};
  lanes.kind = Kind::Through;
  lanes.use = &use;
  Parts parts(isa<triton::SplitOp>(op) ? 2 : 1, result);
  lanes.parts = parts;
  return get(lanes);
}

const Lanes *LaneAlgebra::through(OpOperand &use,
                                  ArrayRef<const Lanes *> results) {
  // Without, and with, conditions that only hold in some iteration.
  Parts sure, whole;
  bool isUnsure = false;
  for (const Lanes *result : results) {
    sure.push_back(all());
    whole.push_back(all());
    for (const Lanes *part : partsOf(result)) {
      isUnsure |= part->isUnsure();
      if (!part->isUnsure())
        sure.back() = both(sure.back(), part);
      whole.back() = both(whole.back(), atSomeTime(part));
    }
  }
  auto make = [&](ArrayRef<const Lanes *> parts) {
    if (llvm::all_equal(parts))
      return throughOne(use, parts[0]);
    Lanes lanes{};
    lanes.kind = Kind::Through;
    lanes.use = &use;
    lanes.parts = parts;
    return get(lanes);
  };
  const Lanes *lanes = make(sure);
  return isUnsure ? both(lanes, some(make(whole))) : lanes;
}

/// Whether `condition` is available in `block`, or can be computed there: it
/// does not depend on an iteration of a loop that ends before.
static bool isKnownIn(Value condition, Block *block,
                      llvm::DenseSet<Value> &seen) {
  if (!seen.insert(condition).second ||
      condition.getParentRegion()->isAncestor(block->getParent()))
    return true;
  Operation *op = condition.getDefiningOp();
  return op && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isKnownIn(operand, block, seen);
         });
}

const Lanes *LaneAlgebra::knownIn(const Lanes *lanes, Block *block) {
  switch (lanes->kind) {
  case Kind::None:
  case Kind::All:
  case Kind::Some:
  case Kind::Unknown:
    return lanes;
  case Kind::Where:
  case Kind::Unless: {
    llvm::DenseSet<Value> seen;
    return isKnownIn(lanes->condition, block, seen) ? lanes : some(lanes);
  }
  case Kind::Runs:
  case Kind::Again: {
    auto loop = cast<scf::ForOp>(lanes->loop);
    llvm::DenseSet<Value> seen;
    bool isKnown = isKnownIn(loop.getUpperBound(), block, seen) &&
                   isKnownIn(lanes->kind == Kind::Again ? loop.getInductionVar()
                                                        : loop.getLowerBound(),
                             block, seen);
    return isKnown ? lanes : some(lanes);
  }
  case Kind::And:
  case Kind::Or: {
    bool isOr = lanes->kind == Kind::Or;
    const Lanes *result = isOr ? none() : all();
    for (const Lanes *part : lanes->parts)
      result = isOr ? either(result, knownIn(part, block))
                    : both(result, knownIn(part, block));
    return result;
  }
  case Kind::Through:
    return through(*lanes->use,
                   llvm::map_to_vector(lanes->parts, [&](const Lanes *part) {
                     return knownIn(part, block);
                   }));
  }
  llvm_unreachable("all kinds are covered");
}

const Lanes *
LaneAlgebra::given(const Lanes *lanes,
                   llvm::function_ref<bool(const Lanes *)> isTrue) {
  if (isTrue(lanes))
    return all();
  Parts parts = llvm::map_to_vector(
      lanes->parts, [&](const Lanes *part) { return given(part, isTrue); });
  if (ArrayRef<const Lanes *>(parts) == lanes->parts)
    return lanes;
  switch (lanes->kind) {
  case Kind::Some:
    return some(parts[0]);
  case Kind::And:
    return std::accumulate(
        parts.begin(), parts.end(), all(),
        [&](const Lanes *a, const Lanes *b) { return both(a, b); });
  case Kind::Or:
    return std::accumulate(
        parts.begin(), parts.end(), none(),
        [&](const Lanes *a, const Lanes *b) { return either(a, b); });
  default:
    return through(*lanes->use, parts);
  }
}
