//===- LaneBounds.cpp - Loads of lanes that outputs depend on -------------===//
//
// Live lanes are those that outputs depend on (LiveLanes.h). They are described
// by bounds of sums over lanes, iterations and programs. An address depends on
// some of these dimensions. An element is live if there are values of the other
// dimensions for which all bounds hold. So the others are eliminated, one after
// the other, from pairs of a lower and an upper bound (Fourier and Motzkin).
//
// Loops and branches around the load give bounds as well: in which programs
// there is an iteration, where it runs at all. Whatever follows from these
// alone holds for everything that is read.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/LaneBounds.h"

#include "autodiff/Analysis/Constraints.h"
#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Analysis/LoopBounds.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/WindowLoads.h"
#include "autodiff/Dialect/Autodiff.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = Dimension::Kind;

namespace {
struct Bound : Constraint {
  Bound(const Constraint &constraint, bool isGiven = false)
      : Constraint(constraint), isGiven(isGiven) {}
  bool isGiven; ///< where the load runs, whatever lanes are live
};

/// The bounds that describe lanes, all of which hold.
struct Bounds {
  SmallVector<Bound> constraints;
  /// Axes that have been reduced away, with numbers from `kGone` on: their
  /// lengths.
  SmallVector<int64_t> gone;
  /// The dimensions that the address does not depend on.
  SmallVector<Dimension> others;
  /// Numbers that are assumed not to be negative; null if nothing may be
  /// assumed.
  SmallVectorImpl<ScalarExpr> *assumed = nullptr;
  /// The block for which the question is asked: loops around it run.
  Block *in = nullptr;

  static constexpr unsigned kGone = 1u << 16;

  bool add(const Lanes *lanes);
  bool isNotBelowZero(const Constraint &constraint) const;
  bool addThrough(const Lanes *lanes);
  bool addRuns(scf::ForOp loop);
  bool addRanges(Operation *load, const LinearForm &address);
  void renumberAxes(llvm::function_ref<unsigned(unsigned)> map);

  bool assume(const Bound &bound) const;
  bool holdsIn(const Constraint &needed, triton::LoadOp load,
               ArrayRef<Constraint> known) const;
  bool isAlone(const Dimension &dimension, ArrayRef<Bound> bounds) const;
  bool eliminate(const Dimension &dimension, std::optional<ScalarExpr> extent);
  bool countIterations(const LinearForm &address);
  bool findOthers(const LinearForm &address);
  bool addGiven(Operation *load, const LinearForm &address);
  void dropFollowing(triton::LoadOp load);
  bool eliminateOthers(triton::LoadOp load, const LinearForm &address);
};
} // namespace

static LinearForm multiple(const Dimension &dimension,
                           const ScalarExpr &coefficient) {
  return {ScalarExpr::constant(0), {{dimension, coefficient}}};
}

//===----------------------------------------------------------------------===//
// From conditions to bounds
//===----------------------------------------------------------------------===//

void Bounds::renumberAxes(llvm::function_ref<unsigned(unsigned)> map) {
  for (Constraint &constraint : constraints)
    constraint.form.renumberAxes(
        [&](unsigned axis) { return axis < kGone ? map(axis) : axis; });
}

/// Whether a bound says that an index is at least a negative number. That is
/// true if strides, and the steps in which programs count, are not negative.
bool Bounds::isNotBelowZero(const Constraint &constraint) const {
  if (holdsAlways(constraint))
    return true;
  if (!assumed || constraint.bound.getConstant().value_or(0) <= 0)
    return false;
  SmallVector<ScalarExpr> numbers;
  for (const LinearForm::Term &term : constraint.form.terms) {
    numbers.push_back(term.coefficient * ScalarExpr::constant(-1));
    if (numbers.back().getConstant().value_or(0) < 0)
      return false;
    if (term.dimension.digit)
      numbers.push_back(*term.dimension.digit);
  }
  for (const ScalarExpr &number : numbers)
    if (!number.isNotNegative())
      addAssumption(*assumed, number);
  return true;
}

/// Adds the bounds of `lanes`; false if they are no bounds.
bool Bounds::add(const Lanes *lanes) {
  switch (lanes->kind) {
  case Lanes::Kind::All:
    return true;
  case Lanes::Kind::Some:
    return add(lanes->parts[0]);
  case Lanes::Kind::Where: {
    Constraints found =
        constraintsOf(lanes->condition, ScalarExpr::From::Memory);
    if (!found)
      return false;
    // Its axes longer than one are some of the lanes' axes.
    SmallVector<unsigned> axes;
    if (auto tile = dyn_cast<RankedTensorType>(lanes->condition.getType())) {
      const unsigned *next = lanes->axes.begin();
      for (int64_t size : tile.getShape())
        axes.push_back(size == 1 ? 0 : *next++);
    }
    for (Constraint &constraint : *found) {
      constraint.form.renumberAxes([&](unsigned axis) { return axes[axis]; });
      if (!isNotBelowZero(constraint))
        constraints.push_back(constraint);
    }
    return true;
  }
  case Lanes::Kind::Runs:
    return addRuns(cast<scf::ForOp>(lanes->loop));
  case Lanes::Kind::And:
    return llvm::all_of(lanes->parts,
                        [&](const Lanes *part) { return add(part); });
  case Lanes::Kind::Through:
    return addThrough(lanes);
  default:
    return false;
  }
}

/// Adds that a loop has an iteration. If the question is asked inside of the
/// loop, it has one in that program, but maybe not in another program that
/// reads the same address.
bool Bounds::addRuns(scf::ForOp loop) {
  Constraints runs = boundsOfRunning(loop, ScalarExpr::From::Memory);
  if (!runs)
    return false;
  bool isGiven = in && loop->isAncestor(in->getParentOp());
  for (const Constraint &constraint : *runs)
    constraints.push_back({constraint, isGiven});
  return true;
}

/// Where lanes are reduced along an axis, one of them is live.
bool Bounds::addThrough(const Lanes *lanes) {
  OpOperand &use = *lanes->use;
  Operation *op = use.getOwner();
  Bounds inner;
  inner.gone = gone;
  inner.assumed = assumed;
  inner.in = in;
  if (lanes->parts.size() != 1 || !inner.add(lanes->parts[0]))
    return false;
  auto map = triton::AxisMap::of(use);
  if (!map || map->isMixed())
    return false;
  SmallVector<unsigned> numbers(map->getResultRank());
  for (unsigned axis = map->getResultRank(); axis-- > 0;) {
    std::optional<unsigned> place = map->toOperand(axis);
    numbers[axis] = place.value_or(kGone + inner.gone.size());
    if (!place)
      inner.gone.push_back(
          cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(axis));
  }
  inner.renumberAxes([&](unsigned axis) { return numbers[axis]; });
  gone = inner.gone;
  constraints.append(inner.constraints);
  return true;
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// Assumes a bound for all programs, if a launch can check it: each program has
/// a live row. False if it cannot.
bool Bounds::assume(const Bound &bound) const {
  ScalarExpr number = bound.bound - ScalarExpr::constant(1);
  for (const LinearForm::Term &term : bound.form.terms) {
    if (term.dimension.kind != Kind::Program)
      return false;
    number = number - term.coefficient * *term.dimension.digit;
  }
  if (std::optional<int64_t> constant = number.getConstant())
    return *constant >= 0;
  if (!assumed || bound.isGiven || number.readsMemory())
    return false;
  addAssumption(*assumed, number);
  return true;
}

/// Whether these bounds contain no other dimension that is to be eliminated,
/// and all are given by loops and branches.
bool Bounds::isAlone(const Dimension &dimension, ArrayRef<Bound> bounds) const {
  return llvm::all_of(bounds, [&](const Bound &bound) {
    return bound.isGiven && llvm::none_of(others, [&](const Dimension &other) {
             return !(other == dimension) && bound.form.coefficientOf(other);
           });
  });
}

/// Eliminates a dimension that counts from zero (below `extent`) from the
/// bounds; false if that is not possible.
bool Bounds::eliminate(const Dimension &dimension,
                       std::optional<ScalarExpr> extent) {
  SmallVector<Bound> lower, upper, rest;
  for (const Bound &constraint : constraints) {
    auto coefficient = constraint.form.coefficientOf(dimension);
    if (!coefficient) {
      rest.push_back(constraint);
      continue;
    }
    std::optional<int64_t> number = coefficient->getConstant();
    if (!number)
      return false;
    (*number < 0 ? lower : upper).push_back(constraint);
  }
  if (lower.empty() && upper.empty())
    return true;
  // Is there a value that large? For loops, their own bounds say so.
  if (!lower.empty() && !extent && dimension.kind != Kind::Loop)
    return false;
  auto limit = [&](int64_t sign, ScalarExpr bound) {
    return Bound({multiple(dimension, ScalarExpr::constant(sign)), bound},
                 /*isGiven=*/true);
  };
  lower.push_back(limit(-1, ScalarExpr::constant(1)));
  if (extent)
    upper.push_back(limit(1, *extent));
  auto stepOf = [&](const Bound &bound) {
    return std::abs(*bound.form.coefficientOf(dimension)->getConstant());
  };
  // There is an integer between the bounds if one of the steps is one.
  auto mayMiss = [&](const Bound &low, const Bound &high) {
    return stepOf(low) != 1 && stepOf(high) != 1;
  };
  llvm::erase_if(upper, [&](const Bound &high) {
    return llvm::any_of(lower, [&](auto &low) { return mayMiss(low, high); }) &&
           assume(high);
  });
  for (const Bound &low : lower)
    for (const Bound &high : upper) {
      if (mayMiss(low, high)) {
        // Where the load runs, there is such a value.
        if (!isAlone(dimension, lower) || !isAlone(dimension, upper))
          return false;
        continue;
      }
      int64_t below = stepOf(low), above = stepOf(high);
      ScalarExpr byAbove = ScalarExpr::constant(above);
      ScalarExpr byBelow = ScalarExpr::constant(below);
      Constraint pair{low.form.scaled(byAbove) + high.form.scaled(byBelow),
                      low.bound * byAbove + high.bound * byBelow +
                          ScalarExpr::constant(1 - above - below)};
      Bound sum(pair, low.isGiven && high.isGiven);
      if (holdsAlways(sum) || (sum.isGiven && sum.form.isConstant()))
        continue;
      // If it does not hold, nothing in the whole launch is live.
      if (!sum.form.isConstant() || !assume(sum))
        rest.push_back(sum);
    }
  constraints = rest;
  return true;
}

/// How many values, from zero on, a dimension has; none if that is not known.
static std::optional<ScalarExpr> countOf(const Dimension &dimension) {
  if (!dimension.digit)
    return std::nullopt;
  const ScalarExpr &digit = *dimension.digit;
  if (digit.isProgramId())
    return digit.getGrid();
  using Numbers = ScalarExpr::Kind;
  bool isPart =
      digit.getKind() == Numbers::Div || digit.getKind() == Numbers::Rem;
  if (!isPart || !digit.getLhs().isProgramId() ||
      digit.getRhs().dependsOnProgramId())
    return std::nullopt;
  ScalarExpr programs = digit.getLhs().getGrid();
  return ScalarExpr::binary(digit.getKind() == Numbers::Div ? Numbers::CeilDiv
                                                            : Numbers::Min,
                            programs, digit.getRhs());
}

/// Whether a dimension is never negative.
static bool countsFromZero(const Dimension &dimension) {
  return dimension.kind == Kind::Loop ||
         (dimension.digit && dimension.digit->isNotNegative());
}

/// Whether both are the same dimension, or numbers of the same program or loop.
static bool areRelated(const Dimension &a, const Dimension &b) {
  return a == b || (a.loop && a.loop == b.loop) ||
         (a.digit && b.digit && !areIndependent(*a.digit, *b.digit));
}

/// Rewrites induction variables in bounds as numbers of iterations, for loops
/// that the address does not depend on.
bool Bounds::countIterations(const LinearForm &address) {
  for (Constraint &constraint : constraints)
    for (const LinearForm::Term &term :
         llvm::to_vector(constraint.form.terms)) {
      if (term.dimension.kind != Kind::Index ||
          address.coefficientOf(term.dimension))
        continue;
      auto loop = cast<scf::ForOp>(term.dimension.loop);
      auto lower = LinearForm::of(loop.getLowerBound());
      auto step = ScalarExpr::of(loop.getStep());
      if (!lower || !step)
        return false;
      Dimension iteration{Kind::Loop};
      iteration.loop = loop;
      LinearForm counted = *lower + multiple(iteration, *step) -
                           multiple(term.dimension, ScalarExpr::constant(1));
      constraint.form = constraint.form + counted.scaled(term.coefficient);
      constraint.bound = constraint.bound - constraint.form.constant;
      constraint.form.constant = ScalarExpr::constant(0);
    }
  return true;
}

/// Finds the dimensions of bounds that the address does not depend on, except
/// lanes; false if one may be negative.
bool Bounds::findOthers(const LinearForm &address) {
  if (!countIterations(address))
    return false;
  for (const Constraint &constraint : constraints)
    for (const LinearForm::Term &term : constraint.form.terms) {
      const Dimension &dimension = term.dimension;
      if (dimension.kind == Kind::Axis || address.coefficientOf(dimension) ||
          llvm::is_contained(others, dimension))
        continue;
      if (!countsFromZero(dimension))
        return false;
      others.push_back(dimension);
    }
  return true;
}

/// Adds the bounds of loops that lanes depend on, but `load` is not in; false
/// if they are not known.
bool Bounds::addRanges(Operation *load, const LinearForm &address) {
  llvm::SmallPtrSet<Operation *, 4> known;
  while (findOthers(address)) {
    auto *it = llvm::find_if(others, [&](const Dimension &other) {
      return other.kind == Kind::Loop && !other.loop->isAncestor(load) &&
             !known.contains(other.loop);
    });
    if (it == others.end())
      return true;
    known.insert(it->loop);
    auto loop = dyn_cast<scf::ForOp>(it->loop);
    Constraints range =
        loop ? boundsAround(&loop.getBody()->front()) : std::nullopt;
    if (!range)
      return false;
    constraints.append(range->begin(), range->end());
  }
  return false;
}

/// Adds the bounds that loops and branches around `load` give for dimensions
/// that are to be eliminated; false if they are not known.
bool Bounds::addGiven(Operation *load, const LinearForm &address) {
  if (!addRanges(load, address))
    return false;
  if (others.empty())
    return true;
  SmallVector<Constraints> around;
  for (Operation *op = load; !isa<triton::FuncOp>(op->getParentOp());
       op = op->getParentOp())
    around.push_back(boundsAround(op));
  auto concernsOthers = [&](const Constraint &constraint) {
    return llvm::any_of(constraint.form.terms, [&](const auto &term) {
      return llvm::any_of(others, [&](const Dimension &other) {
        return areRelated(term.dimension, other);
      });
    });
  };
  while (true) {
    auto *it = llvm::find_if(around, [&](const Constraints &given) {
      return !given || llvm::any_of(*given, concernsOthers);
    });
    if (it == around.end())
      return true;
    if (!*it)
      return false;
    for (const Constraint &constraint : **it)
      constraints.push_back({constraint, /*isGiven=*/true});
    around.erase(it);
    // These bounds may contain further dimensions.
    if (!addRanges(load, address))
      return false;
  }
}

/// Eliminates all dimensions that the address does not depend on.
bool Bounds::eliminateOthers(triton::LoadOp load, const LinearForm &address) {
  if (!addGiven(load, address))
    return false;
  // An eliminated dimension takes all values, whatever the others are.
  auto isFree = [&](const LinearForm &form) {
    return llvm::all_of(form.terms, [&](const LinearForm::Term &term) {
      return llvm::all_of(others, [&](const Dimension &other) {
        return term.dimension == other || !areRelated(term.dimension, other);
      });
    });
  };
  if (!isFree(address) || !llvm::all_of(constraints, [&](const Bound &bound) {
        return isFree(bound.form);
      }))
    return false;
  for (auto [number, extent] : llvm::enumerate(gone)) {
    Dimension lane{Kind::Axis, kGone + static_cast<unsigned>(number)};
    std::optional<ScalarExpr> count = ScalarExpr::constant(extent);
    // Neighbouring programs or iterations continue where the lanes end: both
    // together are one dimension.
    auto isNext = [&, extent = extent](const Dimension &other) {
      return llvm::all_of(constraints, [&](const Constraint &constraint) {
        auto ofLane = constraint.form.coefficientOf(lane);
        auto ofOther = constraint.form.coefficientOf(other);
        return ofLane.has_value() == ofOther.has_value() &&
               (!ofLane || *ofOther == *ofLane * ScalarExpr::constant(extent));
      });
    };
    if (auto *next = llvm::find_if(others, isNext); next != others.end()) {
      std::optional<ScalarExpr> programs = countOf(*next);
      count = programs ? std::optional(*programs * *count) : std::nullopt;
      for (Constraint &constraint : constraints)
        llvm::erase_if(constraint.form.terms, [&](const auto &term) {
          return term.dimension == *next;
        });
      others.erase(next);
    }
    if (!eliminate(lane, count))
      return false;
  }
  dropFollowing(load);
  bool areGone = llvm::all_of(others, [&](const Dimension &other) {
    return eliminate(other, countOf(other));
  });
  llvm::erase_if(constraints, [](const Bound &bound) { return bound.isGiven; });
  return areGone;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Replaces each dimension of `form` for which `most` has an upper bound by
/// that.
static LinearForm replaceBy(
    const LinearForm &form,
    llvm::function_ref<std::optional<LinearForm>(const Dimension &)> most) {
  LinearForm sum{form.constant, {}};
  for (const LinearForm::Term &term : form.terms) {
    std::optional<LinearForm> greatest;
    if (term.coefficient.getConstant().value_or(0) > 0)
      greatest = most(term.dimension);
    sum = sum + (greatest ? greatest->scaled(term.coefficient)
                          : multiple(term.dimension, term.coefficient));
  }
  return sum;
}

/// The largest value of a sum over lanes of a tile of this shape, iterations
/// and programs. Dimensions without a known maximum stay.
static LinearForm maximize(const LinearForm &form, ArrayRef<int64_t> shape) {
  LinearForm most = replaceBy(form, [&](const Dimension &dimension) {
    if (dimension.kind == Kind::Axis && dimension.axis < shape.size())
      return std::optional(
          LinearForm{ScalarExpr::constant(shape[dimension.axis] - 1), {}});
    auto loop = dyn_cast_or_null<scf::ForOp>(dimension.loop);
    return loop && dimension.kind == Kind::Index ? findLast(loop)
                                                 : std::nullopt;
  });
  return replaceBy(most, [](const Dimension &dimension) {
    std::optional<ScalarExpr> count = countOf(dimension);
    return count
               ? std::optional(LinearForm{*count - ScalarExpr::constant(1), {}})
               : std::nullopt;
  });
}

static ArrayRef<int64_t> shapeOf(triton::LoadOp load) {
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  return tile ? tile.getShape() : ArrayRef<int64_t>();
}

/// Drops bounds that follow from a given one in all lanes.
void Bounds::dropFollowing(triton::LoadOp load) {
  auto follows = [&](const Bound &bound, const Bound &given) {
    LinearForm apart = maximize(bound.form - given.form, shapeOf(load));
    return given.isGiven && apart.isConstant() &&
           (bound.bound - given.bound - apart.constant).isNotNegative();
  };
  SmallVector<Bound> all = constraints;
  llvm::erase_if(constraints, [&](const Bound &bound) {
    return !bound.isGiven && llvm::any_of(all, [&](const Bound &given) {
      return follows(bound, given);
    });
  });
}

/// Whether a bound holds for everything that `load` reads: its mask says so, or
/// its lanes end before. If that depends on which of two numbers is smaller, a
/// launch can check it.
bool Bounds::holdsIn(const Constraint &needed, triton::LoadOp load,
                     ArrayRef<Constraint> known) const {
  LinearForm most = maximize(needed.form, shapeOf(load));
  if (most.isConstant() &&
      (needed.bound - most.constant).getConstant().value_or(0) > 0)
    return true;
  auto slackOf = [&](const Constraint &mask) {
    return Constraint{needed.form - mask.form,
                      needed.bound - mask.bound + ScalarExpr::constant(1)};
  };
  return llvm::any_of(known,
                      [&](const Constraint &mask) {
                        return holdsAlways(slackOf(mask));
                      }) ||
         llvm::any_of(known, [&](const Constraint &mask) {
           Constraint slack = slackOf(mask);
           if (!slack.form.isConstant())
             return false;
           auto more = (mask.bound - needed.bound).getConstant();
           return more > 0 ? isReadBefore(load, needed.form, *more)
                           : assume(slack);
         });
}

Constraints
mlir::autodiff::findMissingBounds(triton::LoadOp load, const Lanes *lanes,
                                  SmallVectorImpl<ScalarExpr> *assumed,
                                  Block *in) {
  Bounds bounds;
  bounds.assumed = assumed;
  bounds.in = in;
  std::optional<LinearForm> address =
      LinearForm::of(load.getPtr(), {}, ScalarExpr::From::Memory);
  if (lanes->isAll())
    return SmallVector<Constraint>();
  if (!address || !bounds.add(lanes) || !bounds.eliminateOthers(load, *address))
    return std::nullopt;
  SmallVector<Constraint> known =
      knownConstraintsOf(load.getMask(), ScalarExpr::From::Memory);
  SmallVector<Constraint> missing;
  for (const Bound &needed : bounds.constraints)
    if (!bounds.holdsIn(needed, load, known))
      missing.push_back(needed);
  return missing;
}
