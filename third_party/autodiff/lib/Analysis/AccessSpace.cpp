//===- AccessSpace.cpp - The addresses that an access touches -------------===//
#include "autodiff/Analysis/AccessSpace.h"

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

Constraint mlir::autodiff::lessThan(const LinearForm &lhs,
                                    const LinearForm &rhs, int64_t slack) {
  Constraint constraint{lhs - rhs};
  constraint.bound = ScalarExpr::constant(slack) - constraint.form.constant;
  constraint.form.constant = ScalarExpr::constant(0);
  return constraint;
}

/// lhs < rhs + slack; nothing, if that is always true.
static Constraints lessThan(Value lhs, Value rhs, int64_t slack) {
  std::optional<LinearForm> a = LinearForm::of(lhs), b = LinearForm::of(rhs);
  if (!a || !b)
    return std::nullopt;
  Constraint constraint = lessThan(*a, *b, slack);
  // −Σ (indices, if they are not negative) < a positive bound: always true.
  bool negative = llvm::all_of(constraint.form.terms, [](const auto &term) {
    return term.coefficient.getConstant().value_or(1) <= 0 &&
           (!term.dimension.digit || term.dimension.digit->isNotNegative());
  });
  if (negative && constraint.bound.getConstant().value_or(0) > 0)
    return SmallVector<Constraint>();
  return SmallVector<Constraint>{constraint};
}

static Constraints ofComparison(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  switch (op.getPredicate()) {
  case CmpIPredicate::slt:
    return lessThan(op.getLhs(), op.getRhs(), 0);
  case CmpIPredicate::sle:
    return lessThan(op.getLhs(), op.getRhs(), 1);
  case CmpIPredicate::sgt:
    return lessThan(op.getRhs(), op.getLhs(), 0);
  case CmpIPredicate::sge:
    return lessThan(op.getRhs(), op.getLhs(), 1);
  default:
    return std::nullopt;
  }
}

/// Collects the constraints that the conjunction `mask` consists of; false if
/// it consists of others, too.
static bool collectConstraints(Value mask, SmallVectorImpl<Constraint> &found) {
  if (!mask || matchPattern(mask, m_One()))
    return true;
  Operation *op = mask.getDefiningOp();
  if (!op)
    return false;
  if (auto comparison = dyn_cast<arith::CmpIOp>(op)) {
    Constraints constraints = ofComparison(comparison);
    if (constraints)
      found.append(*constraints);
    return constraints.has_value();
  }
  if (isa<arith::AndIOp>(op)) {
    bool lhs = collectConstraints(op->getOperand(0), found);
    bool rhs = collectConstraints(op->getOperand(1), found);
    return lhs && rhs;
  }
  if (!isa<triton::SplatOp, triton::BroadcastOp, triton::ExpandDimsOp>(op))
    return false;
  size_t known = found.size();
  bool isAll = collectConstraints(op->getOperand(0), found);
  if (auto expand = dyn_cast<triton::ExpandDimsOp>(op))
    for (Constraint &constraint : MutableArrayRef(found).drop_front(known))
      constraint.form.renumberAxes(
          [&](unsigned axis) { return axis + (axis >= expand.getAxis()); });
  return isAll;
}

Constraints mlir::autodiff::constraintsOf(Value mask) {
  SmallVector<Constraint> constraints;
  if (!collectConstraints(mask, constraints))
    return std::nullopt;
  return constraints;
}

SmallVector<Constraint> mlir::autodiff::knownConstraintsOf(Value mask) {
  SmallVector<Constraint> constraints;
  collectConstraints(mask, constraints);
  return constraints;
}

struct AccessSpace::Builder {
  Operation *access;
  const Renumbering *renumbering;
  RankedTensorType tile; // null for a scalar access
  AccessSpace space;

  Builder(Operation *access, const Renumbering *renumbering)
      : access(access), renumbering(renumbering),
        tile(dyn_cast<RankedTensorType>(access->getOperand(0).getType())) {}

  Value mask() const {
    if (auto load = dyn_cast<triton::LoadOp>(access))
      return load.getMask();
    if (auto sum = dyn_cast<AccumulateOp>(access))
      return sum.getMask();
    return cast<triton::StoreOp>(access).getMask();
  }

  bool renumber(LinearForm &form) const;
  std::optional<Digit> makeDigit(const Dimension &dimension,
                                 ScalarExpr stride) const;
  bool coversIterationSpace(const LinearForm &address);
  bool attach(const Constraint &constraint, LinearForm &address);
  bool build();
};

/// False if the form counts iterations from where each program starts.
bool AccessSpace::Builder::renumber(LinearForm &form) const {
  if (!renumbering)
    return true;
  for (LinearForm::Term &term : form.terms) {
    if (term.dimension.loop != renumbering->loop)
      continue;
    if (term.dimension.kind == Dimension::Kind::Loop) {
      if (renumbering->startVaries)
        return false;
      continue;
    }
    term.dimension.kind = Dimension::Kind::Loop;
    term.coefficient = term.coefficient * renumbering->step;
  }
  return true;
}

std::optional<AccessSpace::Digit>
AccessSpace::Builder::makeDigit(const Dimension &dimension,
                                ScalarExpr stride) const {
  Digit digit{stride, dimension, std::nullopt};
  if (dimension.kind == Dimension::Kind::Axis)
    digit.extent = tile.getDimSize(dimension.axis);
  if (renumbering && dimension.loop == renumbering->loop) {
    digit.extent = renumbering->count;
  } else if (dimension.kind == Dimension::Kind::Index) {
    return std::nullopt;
  } else if (dimension.kind == Dimension::Kind::Loop) {
    auto loop = cast<scf::ForOp>(dimension.loop);
    auto lower = ScalarExpr::of(loop.getLowerBound());
    auto upper = ScalarExpr::of(loop.getUpperBound());
    auto step = ScalarExpr::of(loop.getStep());
    if (!lower || !upper || !step)
      return std::nullopt;
    ScalarExpr trips = tripCount(*lower, *upper, *step);
    if (trips.dependsOnProgramId())
      return std::nullopt;
    digit.extent = trips.toJSON();
  }
  return digit;
}

/// Whether the address moves with every axis and every enclosing loop, so that
/// no address is touched twice for a trivial reason; notes whether the access
/// is unconditional. (Program ids are left to the check.)
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
    if (isa<scf::IfOp>(parent)) {
      space.exact = false;
      continue;
    }
    if (!isa<scf::ForOp>(parent) ||
        !uses([&](const Dimension &d) { return d.loop == parent; }))
      return false;
  }
  return true;
}

/// Makes the terms of the address that a constraint speaks about one index with
/// a bound; false if the constraint cuts the address space another way.
bool AccessSpace::Builder::attach(const Constraint &constraint,
                                  LinearForm &address) {
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
  std::optional<LinearForm> address = LinearForm::of(access->getOperand(0));
  if (!address)
    return false;
  if (!renumber(*address) || !coversIterationSpace(*address))
    return false;
  space.offset = address->constant;
  SmallVector<Constraint> constraints;
  if (!collectConstraints(mask(), constraints))
    space.exact = false;
  for (Constraint &constraint : constraints)
    if (!renumber(constraint.form) || !attach(constraint, *address))
      space.exact = false;
  for (const LinearForm::Term &term : address->terms) {
    std::optional<Digit> digit =
        makeDigit(term.dimension, ScalarExpr::constant(1));
    if (!digit)
      return false;
    space.indices.push_back({term.coefficient, {*digit}, std::nullopt});
  }
  return true;
}

std::optional<AccessSpace> AccessSpace::of(Operation *access,
                                           const Renumbering *renumbering) {
  Builder builder(access, renumbering);
  if (!builder.build())
    return std::nullopt;
  return std::move(builder.space);
}

bool AccessSpace::hasSameShapeAs(const AccessSpace &other) const {
  auto sameDigit = [](const Digit &a, const Digit &b) {
    return a.stride == b.stride && a.dimension.kind == b.dimension.kind &&
           a.dimension.axis == b.dimension.axis &&
           a.dimension.digit == b.dimension.digit;
  };
  auto sameIndex = [&](const Index &a, const Index &b) {
    return a.stride == b.stride && a.bound == b.bound &&
           std::equal(a.digits.begin(), a.digits.end(), b.digits.begin(),
                      b.digits.end(), sameDigit);
  };
  return std::equal(indices.begin(), indices.end(), other.indices.begin(),
                    other.indices.end(), sameIndex);
}

bool AccessSpace::touchesSameAs(const AccessSpace &other) const {
  return offset == other.offset && hasSameShapeAs(other);
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

std::optional<AccessSpace> AccessSpace::ofAll(ArrayRef<Operation *> accesses) {
  SmallVector<AccessSpace> spaces;
  for (Operation *access : accesses) {
    std::optional<AccessSpace> space = of(access);
    // Loops of the same shape may run differently often.
    if (!space ||
        (!spaces.empty() && (!space->hasSameShapeAs(spaces[0]) ||
                             access->getBlock() != accesses[0]->getBlock())))
      return std::nullopt;
    spaces.push_back(std::move(*space));
  }
  if (spaces.size() < 2)
    return spaces.empty() ? std::nullopt : std::optional(spaces[0]);
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
      return std::nullopt;
  }
  AccessSpace all = spaces[0];
  all.exact =
      llvm::all_of(spaces, [](const AccessSpace &s) { return s.exact; });
  for (auto &[step, count] : steps) {
    Digit site{ScalarExpr::constant(1), {Dimension::Kind::Site}, count};
    all.indices.push_back({step, {std::move(site)}, std::nullopt});
  }
  return all;
}

std::optional<AccessSpace::Run>
AccessSpace::findRun(const LinearForm &known, const ScalarExpr &stride,
                     ArrayRef<Constraint> limits) const {
  if (!(offset == known.constant))
    return std::nullopt;
  SmallVector<std::pair<const Digit *, ScalarExpr>> moving;
  std::optional<ScalarExpr> bound;
  size_t fixed = 0, indicesMoving = 0;
  for (const Index &index : indices) {
    LinearForm form;
    size_t before = fixed, units = 0;
    for (const Digit &digit : index.digits) {
      ScalarExpr coefficient = index.stride * digit.stride;
      form.terms.push_back({digit.dimension, digit.stride});
      if (digit.extent && *digit.extent == 1)
        ++units;
      else if (known.coefficientOf(digit.dimension) == coefficient)
        ++fixed;
      else if (digit.extent && !known.coefficientOf(digit.dimension))
        moving.push_back({&digit, coefficient});
      else
        return std::nullopt;
    }
    bool isFixed = fixed - before + units == index.digits.size();
    if (!isFixed && fixed != before)
      return std::nullopt;
    indicesMoving += !isFixed;
    if (!index.bound)
      continue;
    if (!isFixed) {
      if (!(index.stride == stride))
        return std::nullopt;
      bound = index.bound;
    } else if (llvm::none_of(limits, [&](const Constraint &limit) {
                 return limit.form == form && limit.bound == *index.bound;
               })) {
      return std::nullopt;
    }
  }
  if (fixed != known.terms.size() || (bound && indicesMoving > 1))
    return std::nullopt;

  // Each digit counts for as many as the ones before it have values.
  Run run{{}, 1};
  std::optional<int64_t> total = 1;
  while (!moving.empty()) {
    if (!total)
      return std::nullopt;
    auto next = llvm::find_if(moving, [&](const auto &entry) {
      return entry.second == stride * ScalarExpr::constant(*total);
    });
    if (next == moving.end())
      return std::nullopt;
    const Digit &digit = *next->first;
    run.digits.push_back({digit.dimension, *total});
    run.size = Array{"mul", std::move(run.size), *digit.extent};
    std::optional<int64_t> extent = digit.extent->getAsInteger();
    total = extent ? std::optional(*total * *extent) : std::nullopt;
    moving.erase(next);
  }
  if (bound)
    run.size = Array{"min", std::move(run.size), bound->toJSON()};
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

static Object makeDimension(llvm::json::Value stride, Array digits,
                            llvm::json::Value bound) {
  return Object{{"stride", std::move(stride)},
                {"digits", std::move(digits)},
                {"bound", std::move(bound)}};
}

Object AccessSpace::describe(
    llvm::StringRef kind, unsigned argument,
    llvm::function_ref<llvm::json::Value(const Digit &)> extentOf) const {
  Array dims;
  for (const Index &index : indices) {
    Array digits;
    for (const Digit &digit : index.digits)
      digits.push_back(Array{digit.stride.toJSON(),
                             digit.extent ? *digit.extent : extentOf(digit)});
    dims.push_back(makeDimension(index.stride.toJSON(), std::move(digits),
                                 index.bound ? index.bound->toJSON()
                                             : llvm::json::Value(nullptr)));
  }
  return Object{{"kind", kind},
                {"argument", argument},
                {"offset", offset.toJSON()},
                {"dims", std::move(dims)}};
}

/// Digits that are program ids themselves have the grid's extent, and an axis
/// of the grid that no digit mentions repeats every address. Other digits are
/// left for the launch to enumerate, all of them together.
Object AccessSpace::toCheck(llvm::StringRef kind, unsigned argument) const {
  SmallVector<ScalarExpr> programs = getProgramDigits();
  bool plain = llvm::all_of(
      programs, [](const ScalarExpr &digit) { return digit.isProgramId(); });
  Object check = describe(kind, argument, [&](const Digit &digit) {
    if (plain)
      return Array{"grid", digit.dimension.digit->getAxis()};
    return Array{"pids", digit.dimension.digit->toJSON()};
  });
  for (unsigned axis = 0; plain && axis < 3; ++axis)
    if (llvm::none_of(programs, [&](const ScalarExpr &digit) {
          return digit.getAxis() == axis;
        }))
      check.getArray("dims")->push_back(
          makeDimension(0, Array{Array{1, Array{"grid", axis}}}, nullptr));
  return check;
}

Object AccessSpace::toSummedCheck(unsigned argument,
                                  ArrayRef<ScalarExpr> summed) const {
  Object check = describe("bijective", argument, [](const Digit &digit) {
    return Array{"add", Array{"maxpids", digit.dimension.digit->toJSON()}, 1};
  });
  Array programs;
  for (const ScalarExpr &digit : summed)
    programs.push_back(digit.toJSON());
  for (const ScalarExpr &digit : getProgramDigits())
    programs.push_back(digit.toJSON());
  check["programs"] = std::move(programs);
  return check;
}
