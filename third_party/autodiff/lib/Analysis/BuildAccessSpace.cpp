//===- BuildAccessSpace.cpp - Addresses and masks as an access space ------===//
#include "autodiff/Analysis/AccessSpace.h"

#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using From = ScalarExpr::From;

struct AccessSpace::Builder {
  Operation *access;
  const Renumbering *renumbering;
  RankedTensorType tile; // null for a scalar access
  AccessSpace space;
  SmallVector<Value> conditions; // under which a lane is accessed

  Builder(Operation *access, const Renumbering *renumbering, From from)
      : access(access), renumbering(renumbering),
        tile(dyn_cast<RankedTensorType>(access->getOperand(0).getType())) {
    space.moves = from == From::Memory;
    conditions.push_back(mask());
  }

  From from() const { return space.moves ? From::Memory : From::Launch; }
  Value mask() const {
    if (auto load = dyn_cast<triton::LoadOp>(access))
      return load.getMask();
    if (auto sum = dyn_cast<AccumulateOp>(access))
      return sum.getMask();
    return cast<triton::StoreOp>(access).getMask();
  }

  bool renumber(LinearForm &form) const;
  bool unfold(LinearForm &form) const;
  bool number(LinearForm &form) const { return renumber(form) && unfold(form); }
  std::optional<Digit> makeDigit(const Dimension &dimension, ScalarExpr stride);
  bool coversIterationSpace(const LinearForm &address);
  bool restrictsPrograms(const Constraint &constraint,
                         const LinearForm &address);
  bool attach(Constraint constraint, LinearForm &address);
  bool holds(const Constraint &constraint, const LinearForm &address);
  void restrict(Value condition, LinearForm &address);
  bool build();
};

/// False if the form counts iterations from where each program starts. (What
/// is left of induction variables then, is for `unfold`.)
bool AccessSpace::Builder::renumber(LinearForm &form) const {
  if (!renumbering || !renumbering->startVaries)
    return true;
  for (LinearForm::Term &term : form.terms) {
    if (term.dimension.loop != renumbering->loop)
      continue;
    if (term.dimension.kind == Dimension::Kind::Loop)
      return false;
    term.dimension.kind = Dimension::Kind::Loop;
    term.coefficient = term.coefficient * renumbering->step;
  }
  return true;
}

/// Induction variables whose start programs determine: the start and the number
/// of the iteration. False if it has no form.
bool AccessSpace::Builder::unfold(LinearForm &form) const {
  LinearForm unfolded{form.constant, {}};
  for (const LinearForm::Term &term : form.terms) {
    LinearForm part{ScalarExpr::constant(0), {term}};
    if (term.dimension.kind == Dimension::Kind::Index) {
      auto loop = cast<scf::ForOp>(term.dimension.loop);
      auto start = LinearForm::of(loop.getLowerBound(), {}, from());
      auto step = ScalarExpr::of(loop.getStep());
      if (!start || !step)
        return false;
      Dimension iteration{Dimension::Kind::Loop};
      iteration.loop = loop;
      LinearForm number{ScalarExpr::constant(0), {{iteration, *step}}};
      part = (*start + number).scaled(term.coefficient);
    }
    unfolded = unfolded + part;
  }
  form = std::move(unfolded);
  return true;
}

/// Whether what programs load says where ranges begin: another term steps on as
/// far as it does. (Of indices that are used one by one, there may be as many
/// as the launch has work, and they repeat.)
static bool startsRanges(const LinearForm &address) {
  return llvm::all_of(address.terms, [&](const LinearForm::Term &start) {
    return !start.dimension.readsMemory() ||
           llvm::any_of(address.terms, [&](const LinearForm::Term &term) {
             return !term.dimension.digit &&
                    term.coefficient == start.coefficient;
           });
  });
}

std::optional<AccessSpace::Digit>
AccessSpace::Builder::makeDigit(const Dimension &dimension, ScalarExpr stride) {
  Digit digit{stride, dimension, std::nullopt};
  if (dimension.kind == Dimension::Kind::Axis)
    digit.extent = tile.getDimSize(dimension.axis);
  if (renumbering && dimension.loop == renumbering->loop) {
    digit.extent = renumbering->count;
  } else if (dimension.kind == Dimension::Kind::Index) {
    return std::nullopt;
  } else if (dimension.kind == Dimension::Kind::Loop) {
    auto loop = cast<scf::ForOp>(dimension.loop);
    auto lower = ScalarExpr::of(loop.getLowerBound(), from());
    auto upper = ScalarExpr::of(getEnd(loop).end, from());
    auto step = ScalarExpr::of(loop.getStep());
    if (!lower || !upper || !step)
      return std::nullopt;
    ScalarExpr trips = tripCount(*lower, *upper, *step);
    digit.extent = trips.toJSON();
    if (trips.dependsOnProgramId()) {
      if (!space.moves)
        return std::nullopt;
      digit.extent = Array{"each", trips.toJSON()};
      space.trips.push_back(trips);
    }
  }
  return digit;
}

/// Whether the address moves with every axis and every enclosing loop, so that
/// no address is touched twice for a trivial reason; notes under which
/// conditions the access is. (Program ids are left to the check.)
bool AccessSpace::Builder::coversIterationSpace(const LinearForm &address) {
  auto uses = [&](auto predicate) {
    return llvm::any_of(address.terms, [&](const LinearForm::Term &term) {
      return predicate(term.dimension);
    });
  };
  for (int64_t axis = 0; tile && axis < tile.getRank(); ++axis)
    if (tile.getDimSize(axis) > 1 && !uses([&](const Dimension &d) {
          return d.kind == Dimension::Kind::Axis && d.axis == axis;
        }))
      return false;
  for (Operation *parent = access->getParentOp(); !isa<triton::FuncOp>(parent);
       parent = parent->getParentOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      bool isThen =
          branch.getThenRegion().isAncestor(access->getParentRegion());
      space.exact &= isThen;
      if (isThen)
        conditions.push_back(branch.getCondition());
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop || !uses([&](const Dimension &d) { return d.loop == loop; }))
      return false;
    if (Value condition = getEnd(loop).condition;
        condition && !(renumbering && renumbering->loop == loop))
      conditions.push_back(condition);
  }
  return true;
}

/// Whether −Σ factor · number < a positive bound, which holds if no factor is
/// negative: that is for the launch to say. (Of the digits of the address, it
/// looks at the values anyway.)
bool AccessSpace::Builder::holds(const Constraint &constraint,
                                 const LinearForm &address) {
  if (space.moves || constraint.bound.getConstant().value_or(0) <= 0)
    return false;
  SmallVector<ScalarExpr> factors, known = space.getProgramDigits();
  for (const LinearForm::Term &term : address.terms)
    if (term.dimension.digit)
      known.push_back(*term.dimension.digit);
  for (const LinearForm::Term &term : constraint.form.terms) {
    const std::optional<ScalarExpr> &digit = term.dimension.digit;
    if (digit && !digit->isNotNegative() && !llvm::is_contained(known, *digit))
      return false;
    ScalarExpr factor = ScalarExpr::constant(0) - term.coefficient;
    if (factor.getConstant().value_or(0) < 0)
      return false;
    if (!factor.isNotNegative())
      factors.push_back(factor);
  }
  llvm::append_range(space.notNegative, factors);
  return true;
}

/// Bounds the address by the constraints of a condition.
void AccessSpace::Builder::restrict(Value condition, LinearForm &address) {
  Constraints constraints = constraintsOf(condition, from());
  space.exact &= constraints.has_value();
  for (Constraint &constraint :
       constraints ? *constraints : knownConstraintsOf(condition, from()))
    space.exact &= number(constraint.form) &&
                   (attach(constraint, address) || holds(constraint, address));
}

/// In a space that moves, the bound of what moves within a program.
static Constraint withinProgram(const Constraint &constraint) {
  Constraint within{{}, constraint.bound};
  for (const LinearForm::Term &term : constraint.form.terms)
    if (term.dimension.kind == Dimension::Kind::Program)
      within.bound = within.bound - *term.dimension.digit * term.coefficient;
    else
      within.form.terms.push_back(term);
  return within;
}

/// Whether a constraint lets only some programs through, by a number that the
/// address does not depend on; then the space counts these, in steps of zero.
bool AccessSpace::Builder::restrictsPrograms(const Constraint &constraint,
                                             const LinearForm &address) {
  if (space.moves || constraint.form.terms.size() != 1)
    return false;
  const LinearForm::Term &term = constraint.form.terms.front();
  if (term.dimension.kind != Dimension::Kind::Program ||
      term.coefficient.getConstant() != 1 ||
      !term.dimension.digit->isNotNegative() ||
      address.coefficientOf(term.dimension))
    return false;
  Digit number{ScalarExpr::constant(1), term.dimension, std::nullopt};
  space.indices.push_back(
      {ScalarExpr::constant(0), {number}, constraint.bound});
  return true;
}

/// Makes the terms of the address that a constraint speaks about one index with
/// a bound; false if the constraint cuts the address space another way.
bool AccessSpace::Builder::attach(Constraint constraint, LinearForm &address) {
  if (space.moves)
    constraint = withinProgram(constraint);
  if (space.moves && constraint.form.isConstant()) {
    // A condition on the program: it touches all of its addresses, or none.
    space.indices.push_back({ScalarExpr::constant(1), {}, constraint.bound});
    return true;
  }
  if (restrictsPrograms(constraint, address))
    return true;
  auto unit = llvm::find_if(constraint.form.terms, [](const auto &term) {
    return term.coefficient.getConstant() == 1;
  });
  if (unit == constraint.form.terms.end())
    return false;
  auto findTerm = [&](const Dimension &dimension) {
    return llvm::find_if(address.terms, [&](const auto &term) {
      return term.dimension == dimension;
    });
  };
  auto first = findTerm(unit->dimension);
  if (first == address.terms.end())
    return false;
  Index index{first->coefficient, {}, constraint.bound};
  for (const LinearForm::Term &term : constraint.form.terms) {
    auto match = findTerm(term.dimension);
    if (match == address.terms.end() ||
        !(match->coefficient == index.stride * term.coefficient))
      return false;
    std::optional<Digit> digit = makeDigit(term.dimension, term.coefficient);
    if (!digit)
      return false;
    index.digits.push_back(*digit);
  }
  for (const LinearForm::Term &term : constraint.form.terms)
    address.terms.erase(findTerm(term.dimension));
  space.indices.push_back(std::move(index));
  return true;
}

bool AccessSpace::Builder::build() {
  Value pointer = access->getOperand(0);
  std::optional<LinearForm> address = LinearForm::of(pointer, {}, from());
  if (!address || !number(*address) || !coversIterationSpace(*address) ||
      !startsRanges(*address))
    return false;
  space.offset = address->constant;
  for (Value condition : conditions)
    restrict(condition, *address);
  for (const LinearForm::Term &term : address->terms) {
    std::optional<Digit> digit =
        makeDigit(term.dimension, ScalarExpr::constant(1));
    if (!digit)
      return false;
    space.indices.push_back({term.coefficient, {*digit}, std::nullopt});
  }
  return true;
}

std::optional<AccessSpace>
AccessSpace::of(Operation *access, const Renumbering *renumbering, From from) {
  Builder builder(access, renumbering, from);
  if (!builder.build())
    return std::nullopt;
  return std::move(builder.space);
}
