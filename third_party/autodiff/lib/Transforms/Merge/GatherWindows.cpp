//===- GatherWindows.cpp - Each element asks the windows that it is in ----===//
//
// A kernel that loads at several distances from a position reads overlapping
// windows: y[u] of x[u − 1], x[u] and x[u + 1]. Contributions to the gradient
// of one element of x then come from several positions, in other lanes and
// programs. Instead of adding each atomically where it is computed, the program
// that owns the element computes its neighbours' contributions again and stores
// the sum. Or it loads values that an earlier kernel has stored for that
// (CommonValues.h).
//
//===----------------------------------------------------------------------===//
#include "CommonValues.h"
#include "Positions.h"
#include "Programs/Independence.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallSet.h"

#include <map>
#include <numeric>

namespace mlir::autodiff {
#define GEN_PASS_DEF_GATHERWINDOWS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("gather-windows");

namespace {
/// A contribution, and how far the element that it goes to is from its
/// position.
struct Member {
  AccumulateOp op;
  Distance distance;
};

/// Contributions to elements whose distances differ by whole strides.
struct Window {
  ScalarExpr remainder; // of the distance, in elements
  SmallVector<Member> members;
};

/// What positions of elements are below; none if nothing is known of them.
using Bounds = SmallVector<std::optional<ScalarExpr>>;

struct GatherWindows : autodiff::impl::GatherWindowsBase<GatherWindows> {
  using GatherWindowsBase::GatherWindowsBase;

  void transform() override;
  void gatherIn(triton::FuncOp kernel);
  Obstacle gather(ArrayRef<Contribution> contributions);
  bool canGatherBehind();
  void gatherBehind(ArrayRef<AccumulateOp> gathered);

  triton::FuncOp backward;
  /// What the backward stores to.
  SmallVector<Value> written;
};
} // namespace

//===----------------------------------------------------------------------===//
// Distances
//===----------------------------------------------------------------------===//

/// Takes a distance in elements apart into positions: those whose strides are
/// multiples of the same go from the longest to the shortest.
static Member measure(AccumulateOp op, ScalarExpr elements,
                      const Positions &positions, ScalarExpr &remainder) {
  Member member{op, Distance(positions.size())};
  SmallVector<std::pair<ScalarExpr, int64_t>> strides;
  for (const Position &position : positions.get())
    strides.push_back(position.stride.asMultiple());
  SmallVector<size_t> order =
      llvm::to_vector(llvm::seq<size_t>(0, positions.size()));
  llvm::stable_sort(order, [&](size_t x, size_t y) {
    return strides[x].second > strides[y].second;
  });
  for (auto [place, number] : llvm::enumerate(order)) {
    const ScalarExpr &unit = strides[number].first;
    int64_t stride = strides[number].second;
    bool isShortest =
        llvm::none_of(ArrayRef(order).drop_front(place + 1), [&](size_t other) {
          return strides[other].first == unit;
        });
    if (stride <= 0)
      continue;
    // The nearest one, of which a shorter stride makes up the rest.
    int64_t half = isShortest ? 0 : stride / 2;
    member.distance[number] =
        llvm::divideFloorSigned(elements.countOf(unit) + half, stride);
    elements = elements - positions[number].stride *
                              ScalarExpr::constant(member.distance[number]);
  }
  remainder = elements;
  return member;
}

/// The windows of contributions to elements that differ by constants; none if
/// they differ by anything else.
static ReasonOr<std::vector<Window>>
findWindows(ArrayRef<Contribution> contributions, const LinearForm &first,
            const Positions &positions) {
  std::vector<Window> windows;
  for (Contribution op : contributions) {
    ReasonOr<LinearForm> form = op.getForm();
    if (!form)
      return form.why();
    LinearForm between = *form - first;
    if (!between.isConstant())
      return because(op,
                     "elements at {0} and {1} are not as far apart in all "
                     "programs and lanes",
                     op, contributions.front());
    ScalarExpr remainder = ScalarExpr::constant(0);
    Member member = measure(op, between.constant, positions, remainder);
    auto window = llvm::find_if(
        windows, [&](const Window &w) { return w.remainder == remainder; });
    if (window == windows.end())
      window = windows.insert(window, Window{remainder, {}});
    window->members.push_back(member);
  }
  return windows;
}

//===----------------------------------------------------------------------===//
// The elements that contributions go to
//===----------------------------------------------------------------------===//

/// What a mask requires of each position by itself: the least value, and the
/// bounds that it is below.
struct Limits {
  SmallVector<int64_t> least;
  SmallVector<SmallVector<ScalarExpr, 1>> below;
};

static Limits findLimits(Value mask, const Positions &positions) {
  Limits limits{SmallVector<int64_t>(positions.size()),
                SmallVector<SmallVector<ScalarExpr, 1>>(positions.size())};
  for (const Constraint &constraint : knownConstraintsOf(mask)) {
    auto coefficients = positions.coefficientsIn(constraint.form);
    if (!coefficients)
      continue;
    std::optional<size_t> only;
    bool isOne = true;
    for (auto [number, coefficient] : llvm::enumerate(*coefficients)) {
      if (coefficient.getConstant() == 0)
        continue;
      isOne &= !only;
      only = number;
    }
    if (!only || !isOne || constraint.bound.dependsOnProgramId())
      continue;
    std::optional<int64_t> times = (*coefficients)[*only].getConstant();
    std::optional<int64_t> bound = constraint.bound.getConstant();
    if (times == 1)
      limits.below[*only].push_back(constraint.bound);
    else if (times && *times < 0 && bound) // u > bound / times
      limits.least[*only] = std::max(
          limits.least[*only], llvm::divideFloorSigned(-*bound, -*times) + 1);
  }
  return limits;
}

/// Whether two members of a window may contribute to the same element: halves
/// of a row are far apart, too, but end before they meet.
static bool mayMeet(const Member &a, const Member &b,
                    const Positions &positions) {
  Limits ofA = findLimits(AccumulateOp(a.op).getMask(), positions);
  Limits ofB = findLimits(AccumulateOp(b.op).getMask(), positions);
  for (auto [number, position] : llvm::enumerate(positions.get())) {
    int64_t far = b.distance[number] - a.distance[number];
    const Limits &lower = far > 0 ? ofA : ofB;
    for (const ScalarExpr &bound : lower.below[number])
      if (std::optional<int64_t> end = bound.getConstant();
          end && *end <= std::abs(far))
        return false;
    if (!position.digit && position.length <= std::abs(far))
      return false;
  }
  return true;
}

static bool mayOverlap(const Window &window, const Positions &positions) {
  for (auto [number, member] : llvm::enumerate(window.members))
    for (const Member &other : ArrayRef(window.members).take_front(number))
      if (mayMeet(member, other, positions))
        return true;
  return false;
}

/// Positions that are no less than what one of each of `alternatives` says.
static std::optional<ScalarExpr>
findCommon(ArrayRef<SmallVector<ScalarExpr, 1>> alternatives) {
  auto covers = [](const ScalarExpr &bound, ArrayRef<ScalarExpr> some) {
    return llvm::any_of(some, [&](const ScalarExpr &other) {
      return (bound - other).getConstant().value_or(-1) >= 0;
    });
  };
  for (ArrayRef<ScalarExpr> some : alternatives)
    for (const ScalarExpr &bound : some)
      if (llvm::all_of(alternatives, [&](ArrayRef<ScalarExpr> others) {
            return covers(bound, others);
          }))
        return bound;
  return std::nullopt;
}

/// The elements that the contributions of a window go to: those of one access,
/// at positions below bounds.
struct Elements {
  const Member *origin;
  Bounds bounds;
  /// The positions that programs may not have as many of.
  llvm::SmallDenseSet<size_t> beyond;
};

/// The elements from where `origin` contributes at the first position; none if
/// contributions may go to others.
static ReasonOr<Elements> findElements(const Window &window,
                                       const Member &origin,
                                       const Positions &positions) {
  Elements elements{&origin, {}, {}};
  SmallVector<SmallVector<SmallVector<ScalarExpr, 1>>> below(positions.size());
  for (const Member &member : window.members) {
    Limits limits = findLimits(AccumulateOp(member.op).getMask(), positions);
    for (size_t number = 0; number < positions.size(); ++number) {
      int64_t far = member.distance[number] - origin.distance[number];
      if (limits.least[number] + far < 0 &&
          !mutation::isMade("windows:elements before the first"))
        return because(member.op,
                       "its mask at {0} does not leave out what lies "
                       "in front of the first element",
                       member.op);
      if (far > 0)
        elements.beyond.insert(number);
      for (ScalarExpr &bound : limits.below[number])
        bound = bound + ScalarExpr::constant(far);
      below[number].push_back(limits.below[number]);
    }
  }
  for (size_t number = 0; number < positions.size(); ++number) {
    elements.bounds.push_back(findCommon(below[number]));
    if (elements.beyond.contains(number) && !elements.bounds.back())
      return because(origin.op,
                     "masks do not say, all alike, where the elements "
                     "end along axis {0} of the positions",
                     number);
  }
  return elements;
}

/// From the last one on, the first origin that no contribution precedes.
static ReasonOr<Elements> findElements(const Window &window,
                                       const Positions &positions) {
  auto total = [](const Member *member) {
    return std::accumulate(member->distance.begin(), member->distance.end(),
                           int64_t(0));
  };
  SmallVector<const Member *> order;
  for (const Member &member : window.members)
    order.push_back(&member);
  llvm::stable_sort(order, [&](const Member *x, const Member *y) {
    return total(x) > total(y);
  });
  Reason first;
  for (const Member *origin : order) {
    ReasonOr<Elements> found = findElements(window, *origin, positions);
    if (found)
      return found;
    if (!first)
      first = found.why();
  }
  return first;
}

/// The elements of each window, all below the same bounds; none if they are not
/// known.
static ReasonOr<std::vector<Elements>>
findElements(ArrayRef<Window> windows, const Positions &positions) {
  std::vector<Elements> all;
  for (const Window &window : windows) {
    ReasonOr<Elements> elements = findElements(window, positions);
    if (!elements)
      return elements.why();
    all.push_back(std::move(*elements));
  }
  for (size_t number = 0; number < positions.size(); ++number) {
    SmallVector<SmallVector<ScalarExpr, 1>> bounds;
    bool isBeyond = false;
    for (Elements &elements : all) {
      bounds.emplace_back();
      if (elements.bounds[number])
        bounds.back().push_back(*elements.bounds[number]);
      isBeyond |= elements.beyond.contains(number);
    }
    std::optional<ScalarExpr> common = findCommon(bounds);
    if (isBeyond && !common)
      return because(
          windows.front().members.front().op,
          "masks do not say, all alike, where the elements end along "
          "axis {0} of the positions",
          number);
    for (Elements &elements : all)
      elements.bounds[number] = common;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

namespace {
/// Collects the contributions, and emits their sum.
class Gathering {
public:
  /// `written` is what the kernel stores to.
  Gathering(ArrayRef<Window> windows, ArrayRef<Elements> elements,
            const Positions &positions, ArrayRef<Value> written)
      : windows(windows), elements(elements), positions(positions),
        written(written) {}

  /// Gathers them where `b` stands; fails if some cannot be computed elsewhere.
  /// Loads what `common` has stored, and tells it what they are computed from.
  LogicalResult emit(OpBuilder &b, CommonValues &common);

  ArrayRef<AccumulateOp> get() const { return gathered; }
  /// The most loads that a contribution takes.
  unsigned countLoads() const { return loads; }
  void undo();

private:
  Value sumOf(OpBuilder &b, const Window &window, const Member &origin,
              CommonValues &common);

  ArrayRef<Window> windows;
  ArrayRef<Elements> elements;
  const Positions &positions;
  ArrayRef<Value> written;
  SmallVector<AccumulateOp> gathered;
  unsigned loads = 0;
};
} // namespace

/// All that goes to the elements of `origin`; null if it cannot be computed.
Value Gathering::sumOf(OpBuilder &b, const Window &window, const Member &origin,
                       CommonValues &common) {
  std::map<Distance, Neighbors> byDistance;
  Value sum;
  for (const Member &member : window.members) {
    AccumulateOp op = member.op;
    Location loc = op.getLoc();
    Distance distance;
    for (auto [far, from] : llvm::zip_equal(member.distance, origin.distance))
      distance.push_back(from - far);
    auto [found, isNew] =
        byDistance.try_emplace(distance, b, positions, distance, written);
    Neighbors &neighbors = found->second;
    if (isNew)
      common.provide(b, neighbors);
    Value value = neighbors.get(op.getValue());
    Value mask = op.getMask() ? neighbors.get(op.getMask()) : Value();
    if (!value || (op.getMask() && !mask))
      return {};
    loads = std::max(loads, neighbors.countLoads());
    for (Value used : {op.getValue(), op.getMask()})
      if (used)
        common.need(used, neighbors);
    Value exists = neighbors.exists(op.getValue());
    if (exists && mask)
      mask = arith::AndIOp::create(b, loc, exists, mask);
    if (Value condition = mask ? mask : exists)
      value = arith::SelectOp::create(b, loc, condition, value,
                                      constantOf(b, loc, value.getType(), 0.0));
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, value)) : value;
  }
  return sum;
}

/// The positions that are below their bounds, as a mask; null for all.
static Value emitBounds(OpBuilder &b, AccumulateOp like, const Bounds &bounds,
                        const Positions &positions) {
  Location loc = like.getLoc();
  Value mask;
  for (auto [number, bound] : llvm::enumerate(bounds)) {
    if (!bound)
      continue;
    Value isBelow =
        positions.emitBelow(b, loc, number, *bound, like.getPtr().getType());
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, isBelow)) : isBelow;
  }
  return mask;
}

LogicalResult Gathering::emit(OpBuilder &b, CommonValues &common) {
  for (auto [window, all] : llvm::zip_equal(windows, elements)) {
    Value sum = sumOf(b, window, *all.origin, common);
    if (!sum) {
      undo();
      return failure();
    }
    AccumulateOp op = all.origin->op;
    gathered.push_back(
        AccumulateOp::create(b, op.getLoc(), op.getPtr(), sum,
                             emitBounds(b, op, all.bounds, positions),
                             op.getArgument(), op.getSite()));
  }
  return success();
}

void Gathering::undo() {
  for (AccumulateOp op : gathered)
    op.erase();
  gathered.clear();
}

//===----------------------------------------------------------------------===//
// A kernel behind
//===----------------------------------------------------------------------===//

/// Whether all that the backward does can be left to one of two kernels.
bool GatherWindows::canGatherBehind() {
  return !backward
              .walk([](Operation *op) {
                bool isOther = op->getNumRegions() == 0 && mayWrite(op) &&
                               !isa<AccumulateOp, triton::StoreOp>(op);
                return isOther ? WalkResult::interrupt()
                               : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Moves what is gathered to a kernel behind the backward.
void GatherWindows::gatherBehind(ArrayRef<AccumulateOp> gathered) {
  OpBuilder b(backward);
  b.setInsertionPointAfter(backward);
  IRMapping map;
  auto kernel = cast<triton::FuncOp>(b.clone(*backward, map));
  nameKernel(kernel,
             backward.getSymName() + "_windows" +
                 llvm::Twine(AccumulateOp(gathered.front()).getArgument()));
  llvm::DenseSet<Operation *> stay;
  for (AccumulateOp op : gathered) {
    stay.insert(map.lookup(op.getOperation()));
    op.erase();
  }
  SmallVector<Operation *> others;
  kernel.walk([&](Operation *op) {
    if (isa<AccumulateOp, triton::StoreOp>(op) && !stay.contains(op))
      others.push_back(op);
  });
  for (Operation *op : others)
    op->erase();
}

/// What positions have to be below for indices of 32 bits, and gathered
/// elements for there to be as many positions.
static SmallVector<LimitAttr> boundsOf(MLIRContext *context,
                                       ArrayRef<Elements> elements,
                                       const Positions &positions) {
  SmallVector<LimitAttr> within;
  ExprAttr most = ExprAttr::get(context, kMostIndex);
  for (const Elements &all : elements)
    for (size_t number : all.beyond)
      within.push_back(LimitAttr::get(context, all.bounds[number]->get(context),
                                      positions[number].count(context)));
  for (auto [number, bound] : llvm::enumerate(elements.front().bounds)) {
    within.push_back(
        LimitAttr::get(context, positions[number].count(context), most));
    if (bound)
      within.push_back(LimitAttr::get(context, bound->get(context), most));
  }
  return within;
}

/// Makes contributions to overlapping windows one, or leaves them.
Obstacle GatherWindows::gather(ArrayRef<Contribution> contributions) {
  Contribution last = contributions.back();
  ArrayRef<int64_t> shape = shapeOf(last.getPtr().getType());
  ReasonOr<LinearForm> form = last.getForm();
  if (!form)
    return form.why();
  std::optional<Positions> positions = Positions::of(*form, shape);
  if (!positions)
    return because(last, "its address counts iterations, and not only programs "
                         "and lanes");
  auto windows = findWindows(contributions, *form, *positions);
  if (!windows)
    return windows.why();
  if (llvm::none_of(*windows, [&](const Window &window) {
        return mayOverlap(window, *positions);
      }))
    return because(last, "what is loaded in {0} places does not overlap",
                   contributions.size());
  auto elements = findElements(*windows, *positions);
  if (!elements)
    return elements.why();
  OpBuilder b(last);
  Gathering gathering(*windows, *elements, *positions, written);
  CommonValues common(backward, *positions, shape);
  if (failed(gathering.emit(b, common)))
    return because(last,
                   "what neighbours contribute cannot be computed here: it "
                   "is not made lane by lane of what is loaded");
  ReasonOr<AccessSpace> space =
      exactly(AccessSpace::ofAll(SmallVector<Operation *>(gathering.get())));
  Obstacle meets = space
                       ? getAnalysis<Contributions>().findSharing(*space, last)
                       : Obstacle(space.why());
  if (meets) {
    gathering.undo();
    return meets;
  }
  MLIRContext *context = &getContext();
  SmallVector<LimitAttr> within = boundsOf(context, *elements, *positions);
  bool isCheap = gathering.countLoads() <= Target::kLoadsOfAtomic;
  double most = Target::kLoadsOfAtomic * bytesOf(last.getValue().getType()) *
                contributions.size();
  bool isBehind = !isCheap && canGatherBehind() &&
                  common.choose().value_or(most + 1) <= most;
  if (!isCheap && !isBehind && !always) {
    gathering.undo();
    return because(
        last,
        "each neighbour takes {0} loads, more than {1}, and what is "
        "common to them takes more bytes than {2}, or the kernel adds "
        "atomically elsewhere",
        gathering.countLoads(), Target::kLoadsOfAtomic, most);
  }
  if (isBehind) {
    gathering.undo();
    common.store();
    LogicalResult isEmitted = gathering.emit(b, common);
    assert(succeeded(isEmitted) && "with more that is known than before");
    (void)isEmitted;
    within.push_back(LimitAttr::get(context, common.countPlaces(),
                                    ExprAttr::get(context, kMostIndex)));
  }
  CheckAttr whole =
      space->toCheck(CheckKind::Bijective, last.getArgument()).within(within);
  kRemarks.passed(last,
                  "each element gathers what the positions around it "
                  "contribute in {0} places{1}",
                  contributions.size(),
                  isBehind ? ", in a kernel behind this one" : "");
  for (AccumulateOp op : gathering.get())
    op.setWholeAttr(whole);
  for (Contribution op : contributions)
    op.erase();
  if (isBehind)
    gatherBehind(gathering.get());
  return std::nullopt;
}

void GatherWindows::transform() {
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    gatherIn(each);
}

void GatherWindows::gatherIn(triton::FuncOp kernel) {
  backward = kernel;
  written = getWrittenPointers(backward);
  for (auto &[argument, use] : getAnalysis<Contributions>().ownedBy(backward)) {
    if (use.contributions.size() < 2 || !use.upstreams.empty() ||
        llvm::is_contained(atomic, argument))
      continue;
    Contribution first = use.contributions.front();
    bool areAlike = llvm::all_of(use.contributions, [&](Contribution op) {
      return op.isOuter() && !op.getRemainder() &&
             op.getPtr().getType() == first.getPtr().getType() &&
             op.getValue().getType() == first.getValue().getType();
    });
    Obstacle why = because(first,
                           "the {0} loads of it are of different shapes, or "
                           "in loops or branches",
                           use.contributions.size());
    if (areAlike)
      why = gather(use.contributions);
    if (why)
      kRemarks.missed(use.contributions.back(), *why);
  }
}
