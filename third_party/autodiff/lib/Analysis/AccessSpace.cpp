//===- AccessSpace.cpp - The addresses that an access touches -------------===//
#include "autodiff/Analysis/AccessSpace.h"

#include "autodiff/Analysis/AccessSpaces.h"

#include "autodiff/Analysis/ProgramDigits.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

/// Whether dimensions of two accesses are the same, but maybe of other loops.
static bool areAlike(const Dimension &a, const Dimension &b) {
  return a.kind == b.kind && a.axis == b.axis && a.digit == b.digit;
}

bool AccessSpace::areEqual(const ScalarExpr &a, const ScalarExpr &b) {
  return (a - b).getConstant() == 0;
}

bool AccessSpace::hasChunksOrStarts() const {
  return llvm::any_of(indices, [](const Index &index) {
    return index.chunk.has_value() || index.start.has_value();
  });
}

bool AccessSpace::hasSameShapeAs(const AccessSpace &other,
                                 bool sameBounds) const {
  auto sameDigit = [](const Digit &a, const Digit &b) {
    return a.stride == b.stride && areAlike(a.dimension, b.dimension);
  };
  auto sameIndex = [&](const Index &a, const Index &b) {
    return a.stride == b.stride && a.bound.has_value() == b.bound.has_value() &&
           (!sameBounds || a.bound == b.bound) && a.chunk == b.chunk &&
           a.start == b.start &&
           std::equal(a.digits.begin(), a.digits.end(), b.digits.begin(),
                      b.digits.end(), sameDigit);
  };
  return moves == other.moves && notNegative == other.notNegative &&
         std::equal(indices.begin(), indices.end(), other.indices.begin(),
                    other.indices.end(), sameIndex);
}

bool AccessSpace::touchesSameAs(const AccessSpace &other) const {
  return offset == other.offset && hasSameShapeAs(other);
}

AccessSpace::Footprint AccessSpace::findFootprint() const {
  Footprint footprint{offset, {}};
  for (const Index &index : indices) {
    // What a step is, and two expressions.
    enum : int64_t { Count = -1, Program = -2, Bound = -3, Start = -4 };
    SmallVector<Footprint::Step> digits;
    auto note = [&](int64_t what, const ScalarExpr &a, ExprAttr b) {
      digits.push_back({what, toExpr(a).getAsOpaquePointer(),
                        b ? b.getAsOpaquePointer() : nullptr});
    };
    for (const Digit &digit : index.digits) {
      std::optional<int64_t> extent = digit.getLength();
      if (extent == 1 && !index.chunk)
        continue;
      ScalarExpr step = index.stride * digit.stride;
      // Counting down is counting up from the other end.
      if (extent && !index.bound && !index.start &&
          step.getConstant().value_or(0) < 0) {
        footprint.start =
            footprint.start + step * ScalarExpr::constant(*extent - 1);
        step = ScalarExpr::constant(0) - step;
      }
      note(digit.extent ? Count : Program, step,
           digit.extent ? *digit.extent : digit.dimension.digit->getExpr());
    }
    // The first ones may be a chunk of their own.
    if (index.chunk)
      note(index.chunk->digits, index.chunk->bound, {});
    else
      llvm::sort(digits);
    if (index.bound)
      note(Bound, index.stride, toExpr(*index.bound));
    if (index.start)
      note(Start, index.stride, toExpr(*index.start));
    if (!digits.empty())
      footprint.indices.push_back(std::move(digits));
  }
  llvm::sort(footprint.indices);
  return footprint;
}

bool AccessSpace::isOwnedLike(const AccessSpace &other) const {
  Footprint own = findFootprint(), others = other.findFootprint();
  return moves == other.moves && notNegative == other.notNegative &&
         own.start == others.start && own.indices == others.indices;
}

const AccessSpace::Digit *AccessSpace::findSame(const Index &index,
                                                const Digit &digit,
                                                const AccessSpace &other) {
  ScalarExpr step = index.stride * digit.stride;
  for (const Index &candidate : other.indices)
    for (const Digit &same : candidate.digits)
      if (areAlike(same.dimension, digit.dimension) &&
          candidate.stride * same.stride == step)
        return &same;
  return nullptr;
}

ReasonOr<SmallVector<LimitAttr>>
AccessSpace::findLimits(const AccessSpace &unbounded) const {
  auto count = [](const AccessSpace &space) {
    size_t digits = 0;
    for (const Index &index : space.indices)
      digits += index.digits.size();
    return digits;
  };
  if (moves || unbounded.moves || hasChunksOrStarts() ||
      unbounded.hasChunksOrStarts() || !unbounded.notNegative.empty() ||
      !(offset == unbounded.offset) || count(*this) != count(unbounded) ||
      llvm::any_of(unbounded.indices,
                   [](const Index &index) { return index.bound; }))
    return because(context, "they go to other elements, or both have masks");
  SmallVector<LimitAttr> limits;
  for (const Index &index : indices) {
    ExprAttr most = ExprAttr::get(context, 1);
    for (const Digit &digit : index.digits) {
      const Digit *same = findSame(index, digit, unbounded);
      if (!same ||
          (index.bound && !(same->extent && digit.stride.isNotNegative())))
        return because(context,
                       "one of them counts in steps of {0}, the other "
                       "one does not",
                       index.stride * digit.stride);
      if (index.bound)
        most =
            addOf(most, mulOf(toExpr(digit.stride), subOf(*same->extent, 1)));
    }
    if (index.bound)
      limits.push_back(LimitAttr::get(context, most, toExpr(*index.bound)));
  }
  return limits;
}

struct AccessSpace::Local {
  ExprAttr count, last;
  size_t indices = 0, digits = 0;
  bool isBounded = false;     ///< one of the indices
  bool startsWithOne = false; ///< an axis in steps of one
};

std::optional<AccessSpace::Local>
AccessSpace::findLocal(SmallVectorImpl<LimitAttr> &limits) const {
  ExprAttr none = ExprAttr::get(context, 0), one = ExprAttr::get(context, 1);
  Local local{one, none};
  for (const Index &index : indices) {
    ExprAttr total = one, last = none;
    size_t programs = 0;
    for (const Digit &digit : index.digits) {
      programs += !digit.extent;
      if (!digit.extent)
        continue;
      total = mulOf(total, *digit.extent);
      last = addOf(last, mulOf(toExpr(digit.stride), subOf(*digit.extent, 1)));
      local.startsWithOne |= digit.dimension.kind == Dimension::Kind::Axis &&
                             (index.stride * digit.stride).getConstant() == 1;
    }
    if (programs && (programs < index.digits.size() || index.bound))
      return std::nullopt;
    if (programs)
      continue;
    ++local.indices;
    local.digits += index.digits.size();
    if (index.bound) {
      // Without gaps, and as far as the bound.
      local.isBounded = true;
      limits.push_back(LimitAttr::get(context, addOf(last, 1), total));
      limits.push_back(LimitAttr::get(context, toExpr(*index.bound), total));
      total = toExpr(*index.bound);
      last = subOf(total, 1);
    }
    local.count = mulOf(local.count, total);
    local.last = addOf(local.last, mulOf(toExpr(index.stride), last));
  }
  return local;
}

ReasonOr<SmallVector<LimitAttr>>
AccessSpace::findSameRun(const AccessSpace &run) const {
  auto countPrograms = [](const AccessSpace &space) {
    return space.getProgramDigits().size();
  };
  if (moves || run.moves || hasChunksOrStarts() || run.hasChunksOrStarts() ||
      notNegative != run.notNegative || !(offset == run.offset) ||
      countPrograms(*this) != countPrograms(run))
    return because(context, "the two do not begin at the same element in each "
                            "program, or other programs do them");
  for (const Index &index : indices)
    for (const Digit &digit : index.digits)
      if (!digit.extent && !findSame(index, digit, run))
        return because(context, "programs are {0} apart in one of them only",
                       index.stride * digit.stride);
  SmallVector<LimitAttr> limits;
  std::optional<Local> own = findLocal(limits), other = run.findLocal(limits);
  // Two digits without gaps, of which one counts ones, make up no number twice.
  if (!own || !other || other->indices != 1 || other->digits > 2 ||
      !other->isBounded || !other->startsWithOne)
    return because(context, "neither goes along a row without gaps");
  // As many as the last one is far: all from the first one on.
  auto require = [&](ExprAttr a, ExprAttr b) {
    limits.push_back(LimitAttr::get(context, a, b));
    limits.push_back(LimitAttr::get(context, b, a));
  };
  require(addOf(own->last, 1), own->count);
  require(addOf(other->last, 1), other->count);
  require(own->count, other->count);
  return limits;
}

using Steps = SmallVector<std::pair<ScalarExpr, size_t>>;

/// Adds the loops that visit `offsets` in this order, the innermost first: the
/// step of each, and how many it takes. False if there are none.
static bool findSteps(ArrayRef<ScalarExpr> offsets, Steps &steps) {
  if (offsets.size() == 1)
    return true;
  ScalarExpr step = offsets[1] - offsets[0];
  for (size_t count = offsets.size(); count > 1; --count) {
    SmallVector<ScalarExpr> outer;
    bool isLoop = offsets.size() % count == 0;
    for (size_t number = 0; isLoop && number < offsets.size(); ++number)
      if (number % count == 0)
        outer.push_back(offsets[number]);
      else
        isLoop = offsets[number] - offsets[number - 1] == step;
    if (!isLoop)
      continue;
    steps.push_back({step, count});
    return findSteps(outer, steps);
  }
  return false;
}

bool AccessSpace::joinBounded(ArrayRef<AccessSpace> spaces) {
  for (auto [place, index] : llvm::enumerate(indices)) {
    auto boundOf = [place = place](const AccessSpace &space) {
      return space.indices[place].bound;
    };
    if (!index.bound || index.start ||
        areEqual(*index.bound, *boundOf(spaces[1])))
      continue;
    ScalarExpr step = *index.bound - *boundOf(spaces[1]);
    for (auto [number, space] : llvm::enumerate(spaces)) {
      ScalarExpr distance = step * ScalarExpr::constant(number);
      AccessSpace free = space;
      free.indices[place].bound = index.bound;
      if (!free.hasSameShapeAs(*this) ||
          !areEqual(space.offset, offset + index.stride * distance) ||
          !areEqual(*boundOf(space), *index.bound - distance))
        return false;
    }
    index.digits.push_back({step,
                            {Dimension::Kind::Site},
                            ExprAttr::get(context, int64_t(spaces.size()))});
    return true;
  }
  return false;
}

/// What an access does to memory, in a word.
static StringRef getVerb(Operation *access) {
  return isa<triton::StoreOp, triton::AtomicRMWOp>(access) ? "stored"
                                                           : "loaded";
}

ReasonOr<AccessSpace> AccessSpace::ofAll(ArrayRef<Operation *> accesses,
                                         From from, AccessSpaces *known) {
  SmallVector<AccessSpace> spaces;
  for (Operation *access : accesses) {
    ReasonOr<AccessSpace> space =
        known ? known->of(access, from) : of(access, nullptr, from);
    if (!space)
      return space;
    // Loops of the same shape may run differently often.
    if (!spaces.empty() && (!space->hasSameShapeAs(spaces[0], false) ||
                            access->getBlock() != accesses[0]->getBlock()))
      return because(
          access,
          "it is {0} at {1} and {2} at {3}, in other steps or bounds: both may "
          "share elements",
          getVerb(accesses[0]), accesses[0], getVerb(access), access);
    spaces.push_back(std::move(*space));
  }
  if (spaces.empty())
    return std::nullopt;
  if (spaces.size() == 1)
    return spaces[0];
  // From the first one on: known offsets grow, others follow in either order.
  auto isKnown = [](const AccessSpace &space) {
    return space.offset.getConstant().has_value();
  };
  auto rest = std::stable_partition(spaces.begin(), spaces.end(), isKnown);
  std::stable_sort(spaces.begin(), rest,
                   [](const AccessSpace &a, const AccessSpace &b) {
                     return a.offset.getConstant() < b.offset.getConstant();
                   });
  auto takeApart = [&](Steps &steps) {
    SmallVector<ScalarExpr> offsets;
    for (const AccessSpace &space : spaces)
      offsets.push_back(space.offset);
    steps.clear();
    return findSteps(offsets, steps);
  };
  Steps steps;
  if (!takeApart(steps)) {
    std::reverse(rest, spaces.end());
    if (!takeApart(steps))
      return because(accesses[0],
                     "{0} loads of it are not in steps of one length, so they "
                     "may share elements",
                     accesses.size());
  }
  AccessSpace all = spaces[0];
  for (const AccessSpace &space : spaces)
    if (!space.exact)
      std::tie(all.exact, all.inexact) = std::tie(space.exact, space.inexact);
  if (!llvm::all_of(
          spaces, [&](const AccessSpace &s) { return s.hasSameShapeAs(all); }))
    return all.joinBounded(spaces)
               ? ReasonOr(all)
               : because(accesses[0],
                         "{0} loads of it have masks of their own, so they may "
                         "share elements",
                         accesses.size());
  for (auto &[step, count] : steps) {
    Digit site{ScalarExpr::constant(1),
               {Dimension::Kind::Site},
               ExprAttr::get(all.context, int64_t(count))};
    all.indices.push_back({step, {std::move(site)}, std::nullopt});
  }
  return all;
}

ReasonOr<AccessSpace::Run>
AccessSpace::findRun(const LinearForm &known, const ScalarExpr &stride,
                     ArrayRef<Constraint> limits,
                     std::optional<unsigned> axis) const {
  auto refuse = [&](const char *why) { return because(context, "{0}", why); };
  if (hasChunksOrStarts() || !(offset == known.constant))
    return refuse("what is loaded as a whole begins at another element, or is "
                  "bounded from below");
  auto extentOf = [&](const Digit &digit) -> std::optional<ExprAttr> {
    const std::optional<ScalarExpr> &number = digit.dimension.digit;
    if (!digit.extent && axis && number->isProgramId() &&
        number->getAxis() == *axis)
      return gridOf(context, *axis);
    return digit.extent;
  };
  SmallVector<std::pair<const Digit *, ScalarExpr>> moving;
  std::optional<ScalarExpr> bound;
  size_t fixed = 0, indicesMoving = 0;
  for (const Index &index : indices) {
    LinearForm form;
    size_t before = fixed, units = 0;
    for (const Digit &digit : index.digits) {
      ScalarExpr coefficient = index.stride * digit.stride;
      form.terms.push_back({digit.dimension, digit.stride});
      if (digit.getLength() == 1)
        ++units;
      else if (known.coefficientOf(digit.dimension) == coefficient)
        ++fixed;
      else if (extentOf(digit) && !known.coefficientOf(digit.dimension))
        moving.push_back({&digit, coefficient});
      else
        return refuse("a row is looked up by other programs or iterations than "
                      "those that load it as a whole");
    }
    bool isFixed = fixed - before + units == index.digits.size();
    if (!isFixed && fixed != before)
      return refuse("a mask bounds the index together with other numbers");
    indicesMoving += !isFixed;
    if (!index.bound)
      continue;
    if (!isFixed) {
      if (!(index.stride == stride))
        return refuse("the index counts in other steps than what is loaded as "
                      "a whole");
      bound = index.bound;
    } else if (llvm::none_of(limits, [&](const Constraint &limit) {
                 return limit.form == form && limit.bound == *index.bound;
               })) {
      return refuse("the mask of what is loaded as a whole bounds a number "
                    "that that of the looked-up element does not bound");
    }
  }
  if (fixed != known.terms.size() || (bound && indicesMoving > 1))
    return refuse("the address of what is looked up has parts that that of "
                  "what is loaded as a whole has not");

  // Each digit counts for as many as the ones before it have values.
  Run run{{}, ExprAttr::get(context, 1)};
  std::optional<int64_t> total = 1;
  while (!moving.empty()) {
    if (!total)
      return refuse("how many elements are loaded as a whole in each step is "
                    "known at launch only");
    auto next = llvm::find_if(moving, [&](const auto &entry) {
      return entry.second == stride * ScalarExpr::constant(*total);
    });
    if (next == moving.end())
      return refuse("no number that is loaded as a whole counts in steps as "
                    "long as those of the index");
    const Digit &digit = *next->first;
    run.digits.push_back({digit.dimension, *total});
    run.size = mulOf(run.size, *extentOf(digit));
    std::optional<int64_t> extent = extentOf(digit)->getConstant();
    total = extent ? std::optional(*total * *extent) : std::nullopt;
    moving.erase(next);
  }
  if (bound)
    run.size = minOf(run.size, toExpr(*bound));
  return run;
}

SmallVector<ScalarExpr> AccessSpace::getProgramDigits() const {
  SmallVector<ScalarExpr> found;
  for (const Index &index : indices)
    for (const Digit &digit : index.digits)
      if (!digit.extent)
        found.push_back(*digit.dimension.digit);
  return found;
}

SmallVector<ScalarExpr>
AccessSpace::findShared(ArrayRef<ScalarExpr> digits) const {
  SmallVector<ScalarExpr> decisive = getProgramDigits();
  decisive.append(trips.begin(), trips.end());
  for (const Index &index : indices) {
    if (index.bound)
      decisive.push_back(*index.bound);
    if (index.chunk)
      decisive.push_back(index.chunk->bound);
    if (index.start)
      decisive.push_back(*index.start);
  }
  return findUnmentioned(digits, decisive);
}

Reason AccessSpace::whyUnshared(ArrayRef<ScalarExpr> digits) const {
  if (findUnmentioned(digits, getProgramDigits()).empty())
    return because(
        context,
        "no two programs load the same elements: the address depends "
        "on all of {0}",
        digits);
  return because(context,
                 "programs may load the same elements, but how far a mask or a "
                 "loop lets programs go depends on all of {0}",
                 digits);
}

bool AccessSpace::boundsIterations() const {
  return llvm::all_of(indices, [](const Index &index) {
    return index.bound || llvm::none_of(index.digits, [](const Digit &digit) {
             return digit.dimension.kind == Dimension::Kind::Loop;
           });
  });
}

SmallVector<ExprAttr> AccessSpace::toExprs(ArrayRef<ScalarExpr> numbers) const {
  return llvm::map_to_vector(
      numbers, [&](const ScalarExpr &number) { return toExpr(number); });
}

DimensionAttr AccessSpace::toDimension(const Index &index,
                                       ArrayRef<DigitAttr> digits) const {
  ExprAttr bound, chunkBound, start;
  if (index.bound)
    bound = toExpr(*index.bound);
  if (index.chunk)
    chunkBound = toExpr(index.chunk->bound);
  if (index.start)
    start = toExpr(*index.start);
  return DimensionAttr::get(context, toExpr(index.stride), digits, bound,
                            index.chunk ? index.chunk->digits : 0, chunkBound,
                            start);
}

SmallVector<DimensionAttr> AccessSpace::toDimensions(
    llvm::function_ref<DigitAttr(const Digit &)> toDigit) const {
  return llvm::map_to_vector(indices, [&](const Index &index) {
    return toDimension(index, llvm::map_to_vector(index.digits, toDigit));
  });
}

/// Digits that are program ids themselves have the grid's extent, and an axis
/// of the grid that no digit mentions repeats every address. Other digits are
/// left for the launch to enumerate, all of them together; so are the ranges of
/// a space that moves.
CheckAttr AccessSpace::toCheck(CheckKind kind, unsigned argument) const {
  SmallVector<ScalarExpr> programs = getProgramDigits();
  bool plain = !moves && llvm::all_of(programs, [](const ScalarExpr &digit) {
    return digit.isProgramId();
  });
  SmallVector<DimensionAttr> dims = toDimensions([&](const Digit &digit) {
    ExprAttr extent = digit.extent.value_or(ExprAttr());
    if (!digit.extent) {
      const ScalarExpr &number = *digit.dimension.digit;
      extent = plain ? number.getGrid().getExpr()
                     : ExprAttr::get(ExprKind::OfPrograms, number.getExpr());
    }
    return DigitAttr::get(context, toExpr(digit.stride), extent);
  });
  for (unsigned axis = 0; plain && axis < 3; ++axis)
    if (llvm::none_of(programs, [&](const ScalarExpr &digit) {
          return digit.getAxis() == axis;
        }))
      dims.push_back(
          DimensionAttr::get(context, ExprAttr::get(context, 0),
                             DigitAttr::get(context, ExprAttr::get(context, 1),
                                            gridOf(context, axis))));
  return CheckAttr::get(context, kind, argument, toExpr(offset), dims,
                        toExprs(notNegative), moves);
}

CheckAttr AccessSpace::toSummedCheck(unsigned argument,
                                     ArrayRef<ScalarExpr> summed,
                                     ArrayRef<ScalarExpr> staying) const {
  SmallVector<ScalarExpr> programs = llvm::to_vector(summed);
  if (moves) {
    programs.append(staying.begin(), staying.end());
    return toCheck(CheckKind::Bijective, argument)
        .ofPrograms(toExprs(programs), summed.size());
  }
  programs.append(getProgramDigits());
  SmallVector<DimensionAttr> dims = toDimensions([&](const Digit &digit) {
    ExprAttr extent =
        digit.extent ? *digit.extent
                     : addOf(ExprAttr::get(ExprKind::MostOfPrograms,
                                           digit.dimension.digit->getExpr()),
                             1);
    return DigitAttr::get(context, toExpr(digit.stride), extent);
  });
  return CheckAttr::get(context, CheckKind::Bijective, argument, toExpr(offset),
                        dims, toExprs(notNegative), moves, toExprs(programs));
}

DigitAttr mlir::autodiff::toDigit(MLIRContext *context,
                                  const Dimension &dimension,
                                  const ScalarExpr &step, ExprAttr extent) {
  DigitOwner owner = DigitOwner::Program;
  unsigned number = 0;
  if (dimension.kind == Dimension::Kind::Axis) {
    owner = DigitOwner::Axis;
    number = dimension.axis;
  } else if (dimension.kind == Dimension::Kind::Loop) {
    owner = DigitOwner::Loop;
    for (Operation *loop = dimension.loop->getParentOp(); loop;
         loop = loop->getParentOp())
      number += isa<LoopLikeOpInterface>(loop);
  } else {
    assert(dimension.kind == Dimension::Kind::Program && "others are unfolded");
    extent = dimension.digit->get(context);
  }
  return DigitAttr::get(context, step.get(context), extent, owner, number);
}

ArrayAttr mlir::autodiff::toDigits(MLIRContext *context,
                                   const LinearForm &sum) {
  SmallVector<Attribute> digits;
  for (const LinearForm::Term &term : sum.terms)
    digits.push_back(toDigit(context, term.dimension, term.coefficient));
  if (sum.constant.getConstant() != 0) {
    Dimension one{Dimension::Kind::Program};
    one.digit = ScalarExpr::constant(1);
    digits.push_back(toDigit(context, one, sum.constant));
  }
  return ArrayAttr::get(context, digits);
}

/// A list of constraints for each alternative.
static ArrayAttr toGuard(MLIRContext *context,
                         const Alternatives &alternatives) {
  SmallVector<Attribute> choice;
  for (const auto &constraints : alternatives) {
    SmallVector<Attribute> all;
    for (const Constraint &constraint : constraints) {
      ArrayAttr digits = toDigits(context, constraint.form);
      all.push_back(ConstraintAttr::get(
          context, llvm::to_vector(digits.getAsRange<DigitAttr>()),
          constraint.bound.get(context)));
    }
    choice.push_back(ArrayAttr::get(context, all));
  }
  return ArrayAttr::get(context, choice);
}

ReachAttr AccessSpace::toReach() const {
  SmallVector<DimensionAttr> dims = toDimensions([&](const Digit &digit) {
    return toDigit(context, digit.dimension, digit.stride,
                   digit.extent.value_or(ExprAttr()));
  });
  auto choices = llvm::map_to_vector(guards, [&](const Alternatives &guard) {
    return toGuard(context, guard);
  });
  return ReachAttr::get(context, toExpr(offset), dims, exact,
                        toExprs(notNegative), choices);
}
