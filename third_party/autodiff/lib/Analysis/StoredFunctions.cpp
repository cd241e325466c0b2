//===- StoredFunctions.cpp - Stores of the same function ------------------===//
#include "autodiff/Analysis/StoredFunctions.h"

#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <array>

using namespace mlir;
using namespace mlir::autodiff;

/// How many pairs of values are compared before the search gives up.
constexpr unsigned kMostSteps = 5000;

/// Sums and products of more parts are not compared in any order.
constexpr unsigned kMostParts = 4;

/// Axes that are summed have numbers from here on.
constexpr int64_t kFirstInner = 1000;
/// An axis with one position.
constexpr int64_t kNowhere = -1;

namespace {
/// For each axis of a tile, the axis of the store whose lanes have these
/// elements, or the number of a sum.
using Axes = SmallVector<int64_t, 3>;

/// A value, as elements of its tile go into the store's.
struct Term {
  Value value;
  Axes axes;
  bool operator==(const Term &other) const {
    return value == other.value && axes == other.axes;
  }
};

using Pair = std::pair<Term, Term>;

/// A sum of integers: a linear one, and others.
struct Sum {
  LinearForm linear;
  SmallVector<Term, 2> others;
};

/// How far a comparison has come.
struct State {
  /// What is still to be shown equal.
  SmallVector<Pair> goals;
  /// Pairs whose own goals are listed, or shown. What loops carry is equal in
  /// an iteration if it was before.
  SmallVector<Pair> seen;
  /// Arguments that take one another's place.
  SmallVector<std::pair<LinearForm, LinearForm>> arguments;
  int64_t inner = kFirstInner;

  /// Whether a pair was not seen before; from now on it is.
  bool isNew(const Pair &pair) {
    if (llvm::is_contained(seen, pair))
      return false;
    seen.push_back(pair);
    return true;
  }
};

/// Lists of pairs; values are equal if all pairs of one list are.
using Choices = SmallVector<SmallVector<Pair>, 2>;

/// Outlines of values: what operations they consist of, in any order. Values
/// with different ones are not equal. All integers and addresses have one.
class Outlines {
public:
  size_t of(Value value) {
    auto place = known.find(value);
    return place == known.end() ? known[value] = compute(value) : place->second;
  }

private:
  size_t compute(Value value);
  size_t ofParts(Operation *op);

  DenseMap<Value, size_t> known;
  DenseMap<Operation *, size_t> knownParts;
};

/// Compares the values of two stores.
class Comparison {
public:
  Comparison(triton::StoreOp one, triton::StoreOp other)
      : one(one), other(other) {}

  /// The first way to make the values equal that `accepts`; none if there is
  /// none, or if the search takes too long. Ways in which factors swap are
  /// tried first if `swaps`.
  std::optional<State> find(bool swaps,
                            function_ref<bool(const State &)> accepts);

private:
  bool solve(State &state, function_ref<bool(const State &)> accepts);
  Choices compare(State &state, const Term &a, const Term &b);
  Choices compareSums(State &state, const Term &a, const Term &b);
  Choices compareValues(State &state, const Term &a, const Term &b);
  Choices compareCarried(State &state, const Term &a, const Term &b);
  Choices compareOps(State &state, Operation *a, const Axes &axes, Operation *b,
                     const Axes &otherAxes);
  Choices compareLoads(triton::LoadOp a, const Axes &axes, triton::LoadOp b,
                       const Axes &otherAxes) const;
  Choices compareDots(State &state, triton::DotOp a, const Axes &axes,
                      triton::DotOp b, const Axes &otherAxes);
  bool compareLinear(State &state, const LinearForm &a,
                     const LinearForm &b) const;
  Choices inAnyOrder(ArrayRef<Term> parts, ArrayRef<Term> others,
                     ArrayRef<Pair> more = {});
  bool isAround(Operation *loop) const {
    return loop->isAncestor(one) || loop->isAncestor(other);
  }

  triton::StoreOp one, other;
  Outlines outlines;
  bool swaps = false;
  unsigned steps = 0;
};
} // namespace

/// The value that a splat, a broadcast or a transposition moves, or that is
/// widened and then narrowed to its own type.
static Term withoutMoves(Term term) {
  while (Operation *op = term.value.getDefiningOp()) {
    std::optional<triton::AxisMap> map = triton::AxisMap::ofMove(op);
    if (!map) {
      auto narrowed = dyn_cast<arith::TruncFOp>(op);
      if (!narrowed)
        break;
      Term wide = withoutMoves({narrowed.getIn(), term.axes});
      auto widened = wide.value.getDefiningOp<arith::ExtFOp>();
      if (!widened || getElementTypeOrSelf(widened.getIn()) !=
                          getElementTypeOrSelf(narrowed.getOut()))
        break;
      term = {widened.getIn(), wide.axes};
      continue;
    }
    Axes axes;
    for (unsigned axis : llvm::seq(map->getOperandRank())) {
      std::optional<unsigned> moved = map->toResult(axis);
      axes.push_back(moved ? term.axes[*moved] : kNowhere);
    }
    term = {op->getOperand(0), axes};
  }
  return term;
}

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

/// An operand of an operation that works on elements; scalars have no axes.
static Term operandOf(Value operand, const Axes &axes) {
  return {operand, isTile(operand) ? axes : Axes()};
}

/// Whether two operations do the same to their operands.
static bool areAlike(Operation *a, Operation *b) {
  return a == b ||
         (a->getName() == b->getName() &&
          a->getNumOperands() == b->getNumOperands() &&
          a->getPropertiesAsAttribute() == b->getPropertiesAsAttribute() &&
          getElementTypeOrSelf(a->getResult(0)) ==
              getElementTypeOrSelf(b->getResult(0)));
}

/// The operation that computes a part of what `op` does, as a · b is one of
/// a · b · c; null if the part is no such operation's. (But for rounding, it
/// does not matter which are taken together first.)
static Operation *getInner(const Term &part, Operation *op) {
  Operation *inner = part.value.getDefiningOp();
  return inner && inner != op && areAlike(inner, op) ? inner : nullptr;
}

/// The parts of a sum, a product or a maximum; some of them if there are more
/// than are compared in any order.
static void collectParts(Operation *op, const Axes &axes,
                         SmallVector<Term> &parts) {
  for (Value operand : op->getOperands()) {
    if (parts.size() > kMostParts)
      return;
    Term part = withoutMoves(operandOf(operand, axes));
    if (Operation *inner = getInner(part, op))
      collectParts(inner, part.axes, parts);
    else
      parts.push_back(part);
  }
}

/// A number that an operation takes the same in each lane.
static Attribute getNumber(Attribute constant) {
  auto splat = dyn_cast<SplatElementsAttr>(constant);
  return splat ? splat.getSplatValue<Attribute>() : constant;
}

/// A value without its moves, whatever its axes.
static Term withoutAxes(Value moved) {
  auto tile = dyn_cast<RankedTensorType>(moved.getType());
  return withoutMoves({moved, Axes(tile ? tile.getRank() : 0, kNowhere)});
}

/// The same for the same parts, whatever their order.
size_t Outlines::ofParts(Operation *op) {
  if (auto place = knownParts.find(op); place != knownParts.end())
    return place->second;
  size_t sum = 0;
  for (Value operand : op->getOperands()) {
    Term part = withoutAxes(operand);
    Operation *inner = getInner(part, op);
    sum += inner ? ofParts(inner) : size_t(llvm::hash_value(of(part.value)));
  }
  return knownParts[op] = sum;
}

size_t Outlines::compute(Value moved) {
  Value value = withoutAxes(moved).value;
  Attribute constant;
  if (!isa<FloatType>(getElementTypeOrSelf(value.getType())) &&
      !value.getDefiningOp<arith::CmpFOp>())
    return 0;
  if (matchPattern(value, m_Constant(&constant)))
    return hash_value(getNumber(constant));
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && isa<triton::FuncOp>(argument.getOwner()->getParentOp()))
    return hash_value(value);
  Operation *op = value.getDefiningOp();
  // What loops carry is compared with one another, whatever its number.
  if (!op || isa<LoopLikeOpInterface>(op))
    return 1;
  SmallVector<size_t> parts;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
      parts.push_back(of(yield.getOperand(number)));
  } else if (op->hasTrait<OpTrait::IsCommutative>()) {
    parts.push_back(ofParts(op));
  } else {
    for (Value operand : op->getOperands())
      parts.push_back(of(operand));
    if (isa<triton::DotOp>(op) && parts[1] < parts[0])
      std::swap(parts[0], parts[1]);
  }
  return llvm::hash_combine(op->getName(), llvm::hash_combine_range(parts));
}

/// The linear form of an integer, along the axes of the store.
static std::optional<LinearForm> findLinear(const Term &term) {
  std::optional<LinearForm> form = LinearForm::of(term.value);
  if (!form || !form->unfold())
    return std::nullopt;
  LinearForm moved{form->constant, {}};
  for (LinearForm::Term part : form->terms) {
    if (part.dimension.kind == Dimension::Kind::Axis) {
      int64_t axis = term.axes[part.dimension.axis];
      if (axis == kNowhere)
        continue;
      part.dimension.axis = axis;
    }
    moved = moved + LinearForm{ScalarExpr::constant(0), {part}};
  }
  return moved;
}

static void collect(const Term &moved, Sum &sum) {
  Term term = withoutMoves(moved);
  if (std::optional<LinearForm> form = findLinear(term)) {
    sum.linear = sum.linear + *form;
    return;
  }
  Operation *op = term.value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, triton::AddPtrOp>(op)) {
    sum.others.push_back(term);
    return;
  }
  for (Value operand : op->getOperands())
    collect(operandOf(operand, term.axes), sum);
}

/// Sums over lanes and iterations inside of both values must be equal. What is
/// left are arguments, each of which takes the place of one other.
bool Comparison::compareLinear(State &state, const LinearForm &a,
                               const LinearForm &b) const {
  auto split = [&](const LinearForm &sum) {
    LinearForm inner, outer{sum.constant, {}};
    for (const LinearForm::Term &term : sum.terms) {
      const Dimension &dimension = term.dimension;
      bool isInner = dimension.kind == Dimension::Kind::Axis
                         ? dimension.axis >= kFirstInner
                         : dimension.loop && !isAround(dimension.loop);
      (isInner ? inner : outer).terms.push_back(term);
    }
    return std::pair(inner, outer);
  };
  auto [inner, outer] = split(a);
  auto [otherInner, otherOuter] = split(b);
  if (!(inner == otherInner))
    return false;
  if (outer.isConstant() && otherOuter.isConstant())
    return outer.constant == otherOuter.constant;
  for (auto &[first, second] : state.arguments)
    if (first == outer)
      return second == otherOuter;
  state.arguments.push_back({outer, otherOuter});
  return true;
}

/// Sums are equal if their parts are, in some order.
Choices Comparison::compareSums(State &state, const Term &a, const Term &b) {
  Sum sum, otherSum;
  collect(a, sum);
  collect(b, otherSum);
  ArrayRef<Term> parts = sum.others, others = otherSum.others;
  if (parts.size() != others.size() || parts.size() > kMostParts ||
      !compareLinear(state, sum.linear, otherSum.linear))
    return {};
  if (parts.size() == 1 && parts[0] == a && others[0] == b)
    return compareValues(state, a, b);
  return inAnyOrder(parts, others);
}

/// Parts that are equal in some order. Orders in which most swap come first if
/// the search wants them to.
Choices Comparison::inAnyOrder(ArrayRef<Term> parts, ArrayRef<Term> others,
                               ArrayRef<Pair> more) {
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, parts.size()));
  Choices choices;
  auto mayBeEqual = [&](const Pair &pair) {
    return outlines.of(pair.first.value) == outlines.of(pair.second.value);
  };
  do {
    SmallVector<Pair> pairs(more);
    for (auto [part, place] : llvm::zip_equal(parts, order))
      pairs.push_back({part, others[place]});
    if (llvm::all_of(pairs, mayBeEqual))
      choices.push_back(pairs);
  } while (!mutation::isMade("stored-functions:no other order") &&
           std::next_permutation(order.begin(), order.end()));
  if (swaps)
    std::reverse(choices.begin(), choices.end());
  return choices;
}

/// What loops carry is equal if it is before the first iteration, and if it
/// stays so. Loops around the stores may be in other iterations.
Choices Comparison::compareCarried(State &state, const Term &a, const Term &b) {
  auto find = [](Value value) -> std::pair<scf::ForOp, unsigned> {
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
        return {loop, argument.getArgNumber() - 1};
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      return {loop, cast<OpResult>(value).getResultNumber()};
    return {};
  };
  auto [loop, number] = find(a.value);
  auto [otherLoop, otherNumber] = find(b.value);
  // An induction variable that is no linear form is none of ours.
  if (!loop || loop != otherLoop || number >= loop.getNumResults() ||
      otherNumber >= loop.getNumResults() || isAround(loop) ||
      isa<OpResult>(a.value) != isa<OpResult>(b.value))
    return {};
  Pair carried{{loop.getRegionIterArg(number), a.axes},
               {loop.getRegionIterArg(otherNumber), b.axes}};
  if (!state.isNew(carried))
    return {SmallVector<Pair>()};
  auto pairOf = [&, one = number, other = otherNumber](ValueRange values) {
    return Pair{{values[one], a.axes}, {values[other], b.axes}};
  };
  SmallVector<Pair> pairs;
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    pairs.push_back({{bound, {}}, {bound, {}}});
  pairs.push_back(pairOf(loop.getInitArgs()));
  pairs.push_back(pairOf(loop.getYieldedValues()));
  return {pairs};
}

/// Memory that the kernel does not change is the same for all programs.
Choices Comparison::compareLoads(triton::LoadOp a, const Axes &axes,
                                 triton::LoadOp b,
                                 const Axes &otherAxes) const {
  BlockArgument base = getBaseArgument(a.getPtr());
  auto isChange = [](Operation *op) { return !isa<triton::LoadOp>(op); };
  if (a.getIsVolatile() || b.getIsVolatile() || !base ||
      getBaseArgument(b.getPtr()) != base || mayBeAccessed(base, isChange) ||
      a->getNumOperands() != b->getNumOperands() ||
      bool(a.getMask()) != bool(b.getMask()))
    return {};
  SmallVector<Pair> pairs;
  for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands()))
    pairs.push_back({operandOf(x, axes), operandOf(y, otherAxes)});
  return {pairs};
}

/// Rows of one factor and columns of the other, over the same inner axis.
Choices Comparison::compareDots(State &state, triton::DotOp a, const Axes &axes,
                                triton::DotOp b, const Axes &otherAxes) {
  int64_t inner = state.inner++;
  auto factors = [&](triton::DotOp dot, const Axes &axes) {
    Axes left = axes, right = axes;
    left.back() = inner;
    right[axes.size() - 2] = inner;
    return std::array<Term, 2>{Term{dot.getA(), left}, Term{dot.getB(), right}};
  };
  return inAnyOrder(factors(a, axes), factors(b, otherAxes),
                    Pair{{a.getC(), axes}, {b.getC(), otherAxes}});
}

Choices Comparison::compareOps(State &state, Operation *a, const Axes &axes,
                               Operation *b, const Axes &otherAxes) {
  if (auto load = dyn_cast<triton::LoadOp>(a))
    return isa<triton::LoadOp>(b)
               ? compareLoads(load, axes, cast<triton::LoadOp>(b), otherAxes)
               : Choices();
  if (!isMemoryEffectFree(a) || !areAlike(a, b))
    return {};
  if (auto dot = dyn_cast<triton::DotOp>(a))
    return compareDots(state, dot, axes, cast<triton::DotOp>(b), otherAxes);
  auto pairsAlong = [&](const Axes &axes, const Axes &otherAxes) {
    SmallVector<Pair> pairs;
    for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands()))
      pairs.push_back({operandOf(x, axes), operandOf(y, otherAxes)});
    return pairs;
  };
  if (auto reduce = dyn_cast<triton::ReduceOp>(a)) {
    auto other = cast<triton::ReduceOp>(b);
    Operation *combiner = reduce.getSingleCombiner();
    Operation *otherCombiner = other.getSingleCombiner();
    if (!combiner || !otherCombiner || !areAlike(combiner, otherCombiner))
      return {};
    Axes source = axes, otherSource = otherAxes;
    int64_t inner = state.inner++;
    source.insert(source.begin() + reduce.getAxis(), inner);
    otherSource.insert(otherSource.begin() + other.getAxis(), inner);
    return {pairsAlong(source, otherSource)};
  }
  if (a->getNumRegions() || a->getNumResults() != 1 ||
      !(a->hasTrait<OpTrait::Elementwise>() || isa<StopGradientOp, HeldOp>(a)))
    return {};
  if (a->hasTrait<OpTrait::IsCommutative>()) {
    SmallVector<Term> parts, others;
    collectParts(a, axes, parts);
    collectParts(b, otherAxes, others);
    if (parts.size() == others.size() && parts.size() <= kMostParts)
      return inAnyOrder(parts, others);
  }
  return {pairsAlong(axes, otherAxes)};
}

Choices Comparison::compareValues(State &state, const Term &a, const Term &b) {
  Attribute constant, otherConstant;
  if (matchPattern(a.value, m_Constant(&constant)) &&
      matchPattern(b.value, m_Constant(&otherConstant))) {
    Attribute number = getNumber(constant);
    bool isSame =
        number == getNumber(otherConstant) && !isa<DenseElementsAttr>(number);
    return isSame ? Choices{SmallVector<Pair>()} : Choices();
  }
  auto argument = dyn_cast<BlockArgument>(a.value);
  if (argument && isa<triton::FuncOp>(argument.getOwner()->getParentOp()))
    return a.value == b.value ? Choices{SmallVector<Pair>()} : Choices();
  if (argument || a.value.getDefiningOp<scf::ForOp>())
    return compareCarried(state, a, b);
  if (isa<BlockArgument>(b.value))
    return {};
  auto result = cast<OpResult>(a.value), otherResult = cast<OpResult>(b.value);
  if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
    if (branch != otherResult.getOwner())
      return {};
    Value condition = branch.getCondition();
    SmallVector<Pair> pairs{{{condition, {}}, {condition, {}}}};
    for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
      pairs.push_back(
          {{yield.getOperand(result.getResultNumber()), a.axes},
           {yield.getOperand(otherResult.getResultNumber()), b.axes}});
    return {pairs};
  }
  if (result.getResultNumber() != otherResult.getResultNumber())
    return {};
  return compareOps(state, result.getOwner(), a.axes, otherResult.getOwner(),
                    b.axes);
}

/// No choices if the two are not equal; a choice without pairs if they are.
Choices Comparison::compare(State &state, const Term &a, const Term &b) {
  Term term = withoutMoves(a), other = withoutMoves(b);
  // A loop's pair is seen by what it carries.
  bool isCarried = isa<BlockArgument>(term.value);
  if (!isCarried && !state.isNew({term, other}))
    return {SmallVector<Pair>()};
  Type type = getElementTypeOrSelf(term.value.getType());
  if (type != getElementTypeOrSelf(other.value.getType()))
    return {};
  return isa<FloatType>(type) ? compareValues(state, term, other)
                              : compareSums(state, term, other);
}

bool Comparison::solve(State &state,
                       function_ref<bool(const State &)> accepts) {
  while (!state.goals.empty()) {
    auto [a, b] = state.goals.pop_back_val();
    if (++steps > kMostSteps)
      return false;
    Choices choices = compare(state, a, b);
    if (choices.size() == 1) {
      state.goals.append(choices[0]);
      continue;
    }
    for (const SmallVector<Pair> &choice : choices) {
      State next = state;
      next.goals.append(choice);
      if (solve(next, accepts)) {
        state = std::move(next);
        return true;
      }
    }
    return false;
  }
  return accepts(state);
}

std::optional<State>
Comparison::find(bool swapsFirst, function_ref<bool(const State &)> accepts) {
  swaps = swapsFirst;
  steps = 0;
  auto termOf = [](triton::StoreOp store) {
    Value value = store.getValue();
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    return Term{value, llvm::to_vector_of<int64_t, 3>(
                           llvm::seq<int64_t>(0, tile ? tile.getRank() : 0))};
  };
  State state;
  state.goals.push_back({termOf(one), termOf(other)});
  return solve(state, accepts) ? std::optional(std::move(state)) : std::nullopt;
}

/// The argument that each of `arguments` is compared with.
static SmallVector<LinearForm> takePlaces(ArrayRef<LinearForm> arguments,
                                          const State &state) {
  SmallVector<LinearForm> places;
  for (const LinearForm &argument : arguments)
    for (auto &[first, second] : state.arguments)
      if (first == argument)
        places.push_back(second);
  return places;
}

/// Pairs of arguments that swap without a change of the function; empty if none
/// are found.
static SmallVector<int64_t> findExchange(triton::StoreOp store,
                                         ArrayRef<LinearForm> arguments) {
  SmallVector<int64_t> exchange;
  auto accepts = [&](const State &state) {
    exchange.clear();
    for (const LinearForm &place : takePlaces(arguments, state))
      exchange.push_back(llvm::find(arguments, place) - arguments.begin());
    auto isPaired = [&](int64_t from) {
      return exchange[from] < int64_t(exchange.size()) &&
             exchange[exchange[from]] == from;
    };
    auto numbers = llvm::seq<int64_t>(0, exchange.size());
    return exchange.size() == arguments.size() &&
           llvm::all_of(numbers, isPaired) &&
           llvm::any_of(numbers, [&](int64_t n) { return exchange[n] != n; });
  };
  return Comparison(store, store).find(/*swaps=*/true, accepts)
             ? exchange
             : SmallVector<int64_t>();
}

/// The arguments of a store's function; none if it has no such function.
static std::optional<SmallVector<LinearForm>>
findArguments(triton::StoreOp store) {
  auto isInPlace = [](const State &state) {
    return llvm::all_of(state.arguments, [](const auto &pair) {
      return pair.first == pair.second;
    });
  };
  auto itself = Comparison(store, store).find(/*swaps=*/false, isInPlace);
  if (!itself)
    return std::nullopt;
  return llvm::to_vector(llvm::make_first_range(itself->arguments));
}

SmallVector<std::optional<StoredFunction>>
mlir::autodiff::findStoredFunctions(ArrayRef<triton::StoreOp> stores) {
  SmallVector<std::optional<StoredFunction>> functions(stores.size());
  // The first store of each function.
  SmallVector<unsigned> firsts;
  for (auto [number, store] : llvm::enumerate(stores)) {
    for (unsigned first : firsts) {
      StoredFunction &function = *functions[first];
      auto isWhole = [&](const State &state) {
        return takePlaces(function.arguments, state).size() ==
               state.arguments.size();
      };
      auto same = Comparison(stores[first], store).find(false, isWhole);
      if (!same)
        continue;
      if (function.exchange.empty())
        function.exchange = findExchange(stores[first], function.arguments);
      functions[number] = {first, takePlaces(function.arguments, *same),
                           function.exchange};
      break;
    }
    if (functions[number])
      continue;
    if (auto arguments = findArguments(store)) {
      functions[number] = {unsigned(number), std::move(*arguments), {}};
      firsts.push_back(number);
    }
  }
  return functions;
}
