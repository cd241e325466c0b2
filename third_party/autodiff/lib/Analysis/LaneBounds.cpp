//===- LaneBounds.cpp - Loads of lanes that outputs depend on -------------===//
//
// Live lanes are described by bounds of sums over lanes, iterations and
// programs. Of these an address depends on some. An element is live if there
// are lanes, iterations and programs among the others for which all bounds
// hold: they are eliminated, one after the other, from pairs of a lower and an
// upper bound (Fourier and Motzkin).
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/LaneBounds.h"

#include "autodiff/Analysis/Constraints.h"
#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Dialect/Autodiff.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = Dimension::Kind;

namespace {
/// The bounds that describe lanes, all of which hold.
struct Bounds {
  SmallVector<Constraint> constraints;
  /// Axes that are no longer there, by numbers from `kGone` on, and how long
  /// they are.
  SmallVector<int64_t> gone;
  /// Numbers that are taken not to be negative; null if none may be.
  SmallVectorImpl<ScalarExpr> *assumed = nullptr;

  static constexpr unsigned kGone = 1u << 16;

  bool add(const Lanes *lanes);
  bool isNotBelowZero(const Constraint &constraint) const;
  bool addThrough(const Lanes *lanes);
  void dropAxis(unsigned axis, int64_t extent);
  void renumberAxes(llvm::function_ref<unsigned(unsigned)> map);

  bool eliminate(const Dimension &dimension, std::optional<ScalarExpr> extent);
  bool countIterations(const LinearForm &address);
  bool eliminateOthers(const LinearForm &address);
};
} // namespace

static Dimension axisAt(unsigned axis) { return {Kind::Axis, axis}; }

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

/// Lets lanes along an axis meet: some of them is live.
void Bounds::dropAxis(unsigned axis, int64_t extent) {
  unsigned number = kGone + gone.size();
  gone.push_back(extent);
  renumberAxes([&](unsigned other) {
    return other == axis ? number : other - (other > axis);
  });
}

/// Whether a bound says that an index is no less than a number below zero,
/// which holds if neither strides nor what programs count with are negative.
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
    if (!number.isNotNegative() && !llvm::is_contained(*assumed, number))
      assumed->push_back(number);
  return true;
}

/// Adds what holds in all of `lanes`; false if that is not a matter of bounds.
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
    // Its axes longer than one lie on some of the lanes'.
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
  case Lanes::Kind::And:
    return llvm::all_of(lanes->parts,
                        [&](const Lanes *part) { return add(part); });
  case Lanes::Kind::Through:
    return addThrough(lanes);
  default:
    return false;
  }
}

bool Bounds::addThrough(const Lanes *lanes) {
  OpOperand &use = *lanes->use;
  Operation *op = use.getOwner();
  Bounds inner;
  inner.gone = gone;
  inner.assumed = assumed;
  if (lanes->parts.size() != 1 || !inner.add(lanes->parts[0]))
    return false;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto drop = [&](unsigned axis) {
    inner.dropAxis(axis, result.getDimSize(axis));
  };
  auto insert = [&](unsigned inserted) {
    inner.renumberAxes(
        [&](unsigned axis) { return axis + (axis >= inserted); });
  };
  auto tile = dyn_cast<RankedTensorType>(use.get().getType());
  if (isa<triton::SplatOp, triton::BroadcastOp>(op)) {
    for (unsigned axis = result.getRank(); axis-- > 0;)
      if (!tile || tile.getDimSize(axis) != result.getDimSize(axis)) {
        drop(axis);
        if (tile)
          insert(axis);
      }
  } else if (isa<triton::DotOp>(op)) {
    unsigned axis = result.getRank() - 1 - use.getOperandNumber();
    drop(axis);
    insert(axis);
  } else if (auto reduce = dyn_cast<triton::ReduceOp>(op)) {
    insert(reduce.getAxis());
  } else if (auto expand = dyn_cast<triton::ExpandDimsOp>(op)) {
    drop(expand.getAxis());
  } else if (auto trans = dyn_cast<triton::TransOp>(op)) {
    inner.renumberAxes([&](unsigned axis) { return trans.getOrder()[axis]; });
  } else {
    return false;
  }
  gone = inner.gone;
  constraints.append(inner.constraints);
  return true;
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// Keeps what holds whatever a number from zero on (below `extent`) is, of
/// these; false if that is not seen.
bool Bounds::eliminate(const Dimension &dimension,
                       std::optional<ScalarExpr> extent) {
  SmallVector<Constraint> lower, upper, rest;
  for (const Constraint &constraint : constraints) {
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
  auto limit = [&](int64_t sign, ScalarExpr bound) {
    LinearForm form;
    form.terms.push_back({dimension, ScalarExpr::constant(sign)});
    return Constraint{form, bound};
  };
  lower.push_back(limit(-1, ScalarExpr::constant(1)));
  if (extent)
    upper.push_back(limit(1, *extent));
  for (const Constraint &low : lower)
    for (const Constraint &high : upper) {
      int64_t below = -*low.form.coefficientOf(dimension)->getConstant();
      int64_t above = *high.form.coefficientOf(dimension)->getConstant();
      // Some integer lies in between if one of the steps is one.
      if (below != 1 && above != 1)
        return false;
      ScalarExpr byAbove = ScalarExpr::constant(above);
      ScalarExpr byBelow = ScalarExpr::constant(below);
      Constraint pair{low.form.scaled(byAbove) + high.form.scaled(byBelow),
                      low.bound * byAbove + high.bound * byBelow +
                          ScalarExpr::constant(1 - above - below)};
      if (!pair.form.isConstant() && !holdsAlways(pair))
        rest.push_back(pair);
    }
  constraints = rest;
  return true;
}

/// How many values a dimension has, from zero on; none if that is not known.
static std::optional<ScalarExpr> countOf(const Dimension &dimension) {
  if (dimension.digit && dimension.digit->isProgramId())
    return ScalarExpr::grid(dimension.digit->getAxis());
  return std::nullopt;
}

/// Whether it is never negative.
static bool countsFromZero(const Dimension &dimension) {
  return dimension.kind == Kind::Loop ||
         (dimension.digit && dimension.digit->isNotNegative());
}

/// Whether two numbers that program ids determine come in all pairs: they are
/// of different axes, or quotient and remainder of one division.
static bool areIndependent(const ScalarExpr &a, const ScalarExpr &b) {
  constexpr unsigned kAxes = 3;
  bool shareAxis = llvm::any_of(llvm::seq(kAxes), [&](unsigned axis) {
    return a.mentionsAxis(axis) && b.mentionsAxis(axis);
  });
  if (!shareAxis)
    return true;
  using Numbers = ScalarExpr::Kind;
  auto isPair = [](const ScalarExpr &quotient, const ScalarExpr &remainder) {
    return quotient.getKind() == Numbers::Div &&
           remainder.getKind() == Numbers::Rem;
  };
  return (isPair(a, b) || isPair(b, a)) && a.getLhs() == b.getLhs() &&
         a.getRhs() == b.getRhs();
}

/// Counts the iterations of loops that the address does not depend on, where
/// bounds are about their induction variables.
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

/// Eliminates all that the address does not depend on.
bool Bounds::eliminateOthers(const LinearForm &address) {
  if (!countIterations(address))
    return false;
  SmallVector<Dimension> others;
  for (const Constraint &constraint : constraints)
    for (const LinearForm::Term &term : constraint.form.terms) {
      const Dimension &dimension = term.dimension;
      bool isLane = dimension.kind == Kind::Axis;
      if (isLane || address.coefficientOf(dimension) ||
          llvm::is_contained(others, dimension))
        continue;
      if (!countsFromZero(dimension))
        return false;
      others.push_back(dimension);
    }
  // One that is eliminated takes all values, whatever the others are.
  auto isFree = [&](const LinearForm &form) {
    return llvm::all_of(form.terms, [&](const LinearForm::Term &term) {
      return llvm::all_of(others, [&](const Dimension &other) {
        return term.dimension == other || !term.dimension.digit ||
               !other.digit ||
               areIndependent(*term.dimension.digit, *other.digit);
      });
    });
  };
  if (!isFree(address) ||
      !llvm::all_of(constraints, [&](const Constraint &constraint) {
        return isFree(constraint.form);
      }))
    return false;
  for (auto [number, extent] : llvm::enumerate(gone)) {
    Dimension lane = axisAt(kGone + number);
    std::optional<ScalarExpr> count = ScalarExpr::constant(extent);
    // Neighbouring programs or iterations go on where the lanes end: together
    // they are one number.
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
  return llvm::all_of(others, [&](const Dimension &other) {
    return eliminate(other, countOf(other));
  });
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// The greatest number of a loop's last iteration, as a form: an end that is
/// reached in whole steps is a step behind it. None if that is not seen.
static std::optional<LinearForm> findLast(scf::ForOp loop) {
  auto lower = LinearForm::of(loop.getLowerBound());
  auto ends = smallestOf(loop.getUpperBound());
  auto step = ScalarExpr::of(loop.getStep());
  std::optional<int64_t> size = step ? step->getConstant() : std::nullopt;
  if (!lower || !ends || !size || *size <= 0)
    return std::nullopt;
  for (const LinearForm &end : *ends)
    if ((end - *lower).isMultipleOf(*size))
      return end - LinearForm{*step, {}};
  return std::nullopt;
}

/// Puts a form that is no less in place of each dimension of `form` for which
/// `most` knows one.
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

/// The greatest value of a sum over lanes of a tile of this shape, iterations
/// and programs, as far as it is known: what else there is stays.
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

/// Whether a bound holds for all that `load` reads, or its mask has one of the
/// same lanes: it ends where the kernel says.
static bool holdsIn(const Constraint &needed, triton::LoadOp load,
                    ArrayRef<Constraint> known) {
  if (llvm::any_of(known, [&](const Constraint &constraint) {
        LinearForm apart = needed.form - constraint.form;
        return apart.isConstant() ||
               holdsAlways({apart, needed.bound - constraint.bound +
                                       ScalarExpr::constant(1)});
      }))
    return true;
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  LinearForm most =
      maximize(needed.form, tile ? tile.getShape() : ArrayRef<int64_t>());
  return most.isConstant() &&
         (needed.bound - most.constant).getConstant().value_or(0) > 0;
}

Constraints
mlir::autodiff::findMissingBounds(triton::LoadOp load, const Lanes *lanes,
                                  SmallVectorImpl<ScalarExpr> *assumed) {
  Bounds bounds;
  bounds.assumed = assumed;
  std::optional<LinearForm> address =
      LinearForm::of(load.getPtr(), {}, ScalarExpr::From::Memory);
  if (lanes->isAll())
    return bounds.constraints;
  if (!address || !bounds.add(lanes) || !bounds.eliminateOthers(*address))
    return std::nullopt;
  SmallVector<Constraint> known =
      knownConstraintsOf(load.getMask(), ScalarExpr::From::Memory);
  llvm::erase_if(bounds.constraints, [&](const Constraint &needed) {
    return holdsIn(needed, load, known);
  });
  return bounds.constraints;
}
