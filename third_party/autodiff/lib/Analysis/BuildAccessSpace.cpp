//===- BuildAccessSpace.cpp - Addresses and masks as an access space ------===//
#include "autodiff/Analysis/AccessSpace.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

namespace {
/// A loop that each program starts at a number of its own, and all end at the
/// same number: `for i in range(program_id, n, num_programs)`.
struct StrideLoop {
  /// Where an iteration is, and what that is less than.
  Constraint end;
  /// How many times it runs at most, whatever the program.
  ScalarExpr trips;

  bool isMasked(ArrayRef<Constraint> met) const;
  Constraint inBlocks() const;
};
} // namespace

/// Whether a lane has a constraint that says as much, of a place from there on.
bool StrideLoop::isMasked(ArrayRef<Constraint> met) const {
  return llvm::any_of(met, [&](const Constraint &mask) {
    LinearForm beyond = mask.form - end.form;
    return mask.bound == end.bound &&
           llvm::all_of(beyond.terms, [](const LinearForm::Term &term) {
             return term.dimension.kind == Dimension::Kind::Axis &&
                    term.coefficient.getConstant().value_or(-1) >= 0;
           });
  });
}

/// The end, in steps of the first program's number.
Constraint StrideLoop::inBlocks() const {
  ScalarExpr block = end.form.terms.front().coefficient;
  Constraint blocks{
      {}, ScalarExpr::binary(ScalarExpr::Kind::CeilDiv, end.bound, block)};
  for (const LinearForm::Term &term : end.form.terms) {
    std::optional<ScalarExpr> coefficient = term.coefficient.dividedBy(block);
    if (!coefficient)
      return end;
    blocks.form.terms.push_back({term.dimension, *coefficient});
  }
  return blocks;
}

struct AccessSpace::Builder {
  Operation *access;
  const Renumbering *renumbering;
  bool isReach;          // and may repeat addresses, or touch less
  RankedTensorType tile; // null for a scalar access
  AccessSpace space;
  SmallVector<Value> conditions; // under which a lane is accessed
  SmallVector<Value> failing;    // and those under which it is not
  SmallVector<Constraint> met;   // by what is accessed: what the masks say
  llvm::MapVector<Operation *, StrideLoop> strideLoops;
  Reason why; // there is no space

  Builder(Operation *access, const Renumbering *renumbering, From from,
          bool isReach = false)
      : access(access), renumbering(renumbering), isReach(isReach),
        tile(dyn_cast<RankedTensorType>(access->getOperand(0).getType())) {
    space.context = access->getContext();
    space.moves = from == From::Memory;
    conditions.push_back(getMask(access));
  }

  From from() const { return space.moves ? From::Memory : From::Launch; }

  /// The space is but a bound of what is accessed.
  void loosen(const Reason &reason) {
    if (space.exact)
      space.inexact = reason;
    space.exact = false;
  }
  template <typename... Ts>
  bool refuse(const char *format, const Ts &...values) {
    why = because(access, format, values...);
    return false;
  }

  bool renumber(LinearForm &form) const;
  bool number(LinearForm &form) const {
    return renumber(form) && form.unfold(from());
  }
  std::optional<StrideLoop> matchStride(scf::ForOp loop) const;
  std::optional<Digit> makeDigit(const Dimension &dimension, ScalarExpr stride);
  ExprAttr mostTrips(scf::ForOp loop);
  bool coversIterationSpace(LinearForm &address);
  bool restrictsPrograms(const Constraint &constraint,
                         const LinearForm &address);
  Index *findCut(const LinearForm &form);
  bool tighten(const Constraint &constraint);
  std::optional<Index> takeChunk(const Constraint &constraint,
                                 LinearForm &address);
  bool makeIndex(const Constraint &constraint, LinearForm &address);
  bool startIndex(const Constraint &constraint, LinearForm &address);
  bool attach(Constraint constraint, LinearForm &address);
  bool holds(const Constraint &constraint, const LinearForm &address);
  bool numberAll(Alternatives &alternatives) const;
  void guard(std::optional<Alternatives> alternatives, const Reason &reason);
  void restrict(Value condition, bool isMet, LinearForm &address);
  void restrict(SmallVector<Constraint> constraints, LinearForm &address,
                Location loc);
  bool build();
};

/// False if the form counts iterations from where each program starts. (What
/// is left of induction variables then is unfolded.)
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

std::optional<StrideLoop>
AccessSpace::Builder::matchStride(scf::ForOp loop) const {
  auto start = LinearForm::of(loop.getLowerBound(), {}, from());
  auto end = ScalarExpr::of(getEnd(loop).end, from());
  auto step = ScalarExpr::of(loop.getStep(), from());
  if (space.moves || !start || start->terms.empty() || !end ||
      end->dependsOnProgramId() || !step || step->dependsOnProgramId() ||
      !llvm::all_of(start->terms, [](const LinearForm::Term &term) {
        return term.dimension.kind == Dimension::Kind::Program &&
               term.dimension.digit->isNotNegative() &&
               term.coefficient.getConstant().value_or(0) > 0;
      }))
    return std::nullopt;
  Dimension iteration{Dimension::Kind::Loop};
  iteration.loop = loop;
  LinearForm number{ScalarExpr::constant(0), {{iteration, *step}}};
  return StrideLoop{lessThan(*start + number, {*end, {}}),
                    tripCount(start->constant, *end, *step)};
}

/// The iterations of a loop in a reach, at most; null if the launch does not
/// know.
ExprAttr AccessSpace::Builder::mostTrips(scf::ForOp loop) {
  if (auto it = strideLoops.find(loop); it != strideLoops.end())
    return space.toExpr(it->second.trips);
  auto isKnown = [](Value bound) {
    auto number = ScalarExpr::of(bound);
    return number && !number->dependsOnProgramId();
  };
  Value end = getEnd(loop).end;
  if (!isKnown(loop.getStep()) || loop.getUnsignedCmp())
    loosen({});
  if (!isKnown(loop.getLowerBound()) || !isKnown(end)) {
    Constraints ends =
        lessThan(loop.getInductionVar(), end, 0, ScalarExpr::From::Launch);
    guard(ends ? std::optional(Alternatives{{ends->begin(), ends->end()}})
               : std::nullopt,
          {});
  }
  ExprAttr most = mostIterations(loop);
  return most && !dependsOnCounters(most) ? most : ExprAttr();
}

std::optional<AccessSpace::Digit>
AccessSpace::Builder::makeDigit(const Dimension &dimension, ScalarExpr stride) {
  Digit digit{stride, dimension, std::nullopt};
  if (dimension.kind == Dimension::Kind::Axis)
    digit.extent =
        ExprAttr::get(space.context, tile.getDimSize(dimension.axis));
  if (renumbering && dimension.loop && dimension.loop == renumbering->loop) {
    digit.extent = renumbering->count;
  } else if (dimension.kind == Dimension::Kind::Index ||
             dimension.kind == Dimension::Kind::Place) {
    if (dimension.loop)
      refuse("programs start the loop at {0} at different numbers",
             dimension.loop);
    return std::nullopt;
  } else if (dimension.kind == Dimension::Kind::Loop && isReach) {
    digit.extent = mostTrips(cast<scf::ForOp>(dimension.loop));
  } else if (dimension.kind == Dimension::Kind::Loop) {
    auto loop = cast<scf::ForOp>(dimension.loop);
    auto lower = ScalarExpr::of(loop.getLowerBound(), from());
    auto upper = ScalarExpr::of(getEnd(loop).end, from());
    auto step = ScalarExpr::of(loop.getStep());
    if (!lower || !upper || !step) {
      refuse("a launch does not know how often the loop at {0} runs", loop);
      return std::nullopt;
    }
    ScalarExpr trips = tripCount(*lower, *upper, *step);
    digit.extent = space.toExpr(trips);
    if (auto it = strideLoops.find(loop); it != strideLoops.end()) {
      digit.extent = space.toExpr(it->second.trips);
    } else if (trips.dependsOnProgramId()) {
      if (!space.moves) {
        refuse("how often the loop at {0} runs differs from program to "
               "program: {1} times",
               loop, trips);
        return std::nullopt;
      }
      digit.extent =
          ExprAttr::get(ExprKind::InEachProgram, space.toExpr(trips));
      space.trips.push_back(trips);
    }
  }
  return digit;
}

/// Whether the address moves with every axis and every enclosing loop, so that
/// no address is touched twice for a trivial reason; in a reach it moves with
/// all others in steps of zero. Notes under which conditions the access is.
/// (Program ids are left to the check.)
bool AccessSpace::Builder::coversIterationSpace(LinearForm &address) {
  auto repeat = [&](const Dimension &dimension) {
    address.terms.push_back({dimension, ScalarExpr::constant(0)});
    return isReach;
  };
  auto uses = [&](auto predicate) {
    return llvm::any_of(address.terms, [&](const LinearForm::Term &term) {
      return predicate(term.dimension);
    });
  };
  for (int64_t axis = 0; tile && axis < tile.getRank(); ++axis) {
    if (tile.getDimSize(axis) == 1 || uses([&](const Dimension &d) {
          return d.kind == Dimension::Kind::Axis && d.axis == axis;
        }))
      continue;
    if (!repeat({Dimension::Kind::Axis, unsigned(axis)}))
      return refuse("all {0} lanes along axis {1} of its tile share an address",
                    tile.getDimSize(axis), axis);
  }
  for (Operation *parent = access->getParentOp(); !isa<triton::FuncOp>(parent);
       parent = parent->getParentOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      bool isThen =
          branch.getThenRegion().isAncestor(access->getParentRegion());
      (isThen ? conditions : failing).push_back(branch.getCondition());
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop && isReach) {
      loosen({});
      continue;
    }
    Dimension iteration{Dimension::Kind::Loop};
    iteration.loop = loop;
    if (!loop)
      return refuse("it is in a loop, at {0}, of which nobody knows how often "
                    "it runs before it ends",
                    parent);
    bool isSummed =
        renumbering && llvm::is_contained(renumbering->summed, loop);
    bool moves = uses([&](const Dimension &d) { return d.loop == loop; });
    if (isSummed && moves)
      return refuse("iterations of the loop at {0} have elements of their own",
                    loop);
    if (!isSummed && !moves && !repeat(iteration))
      return refuse("all iterations of the loop at {0} share its addresses",
                    loop);
    if (renumbering && renumbering->loop == loop)
      continue;
    if (Value condition = getEnd(loop).condition)
      conditions.push_back(condition);
    if (std::optional<StrideLoop> stride = matchStride(loop))
      strideLoops.insert({loop, *stride});
  }
  return true;
}

/// Whether −Σ factor · number < a positive bound, which holds if no factor is
/// negative: that is for the launch to say. (Of the digits of the address, it
/// looks at the values anyway.) Of numbers that are the same in all programs,
/// the launch says whether they are below the bound: a load that was moved out
/// of a loop is under the condition that the loop runs.
bool AccessSpace::Builder::holds(const Constraint &constraint,
                                 const LinearForm &address) {
  if (space.moves)
    return false;
  if (!isReach && constraint.form.isConstant() &&
      !constraint.bound.dependsOnProgramId()) {
    space.notNegative.push_back(constraint.bound - ScalarExpr::constant(1));
    return true;
  }
  if (constraint.bound.getConstant().value_or(0) <= 0)
    return false;
  SmallVector<ScalarExpr> factors, known = space.getProgramDigits();
  for (const LinearForm::Term &term : address.terms)
    if (term.dimension.digit)
      known.push_back(*term.dimension.digit);
  for (const LinearForm::Term &term : constraint.form.terms) {
    const std::optional<ScalarExpr> &digit = term.dimension.digit;
    bool isKnown = digit && llvm::is_contained(known, *digit);
    if (!isKnown && !term.dimension.isNotNegative())
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

/// Whether all constraints are about programs, lanes and iterations, and the
/// launch knows how; they are as numbers then.
bool AccessSpace::Builder::numberAll(Alternatives &alternatives) const {
  using Kind = Dimension::Kind;
  for (auto &constraints : alternatives)
    for (Constraint &constraint : constraints) {
      if (!number(constraint.form))
        return false;
      constraint = lessThan(constraint.form, {constraint.bound, {}});
      for (const LinearForm::Term &term : constraint.form.terms)
        if (!llvm::is_contained({Kind::Axis, Kind::Loop, Kind::Program},
                                term.dimension.kind) ||
            term.dimension.readsMemory())
          return false;
    }
  return true;
}

/// Lets a reach look at what bounds no index; other spaces are not exact then.
void AccessSpace::Builder::guard(std::optional<Alternatives> alternatives,
                                 const Reason &reason) {
  if (isReach && alternatives && numberAll(*alternatives))
    space.guards.push_back(std::move(*alternatives));
  else
    loosen(reason);
}

/// Bounds the address by the constraints of a condition, which is met or not.
void AccessSpace::Builder::restrict(Value condition, bool isMet,
                                    LinearForm &address) {
  Constraints constraints =
      isMet ? constraintsOf(condition, from()) : constraintsOfNot(condition);
  if (!constraints) {
    guard(alternativesOf(condition, isMet),
          because(access,
                  "it is left to the condition at {0} which elements are "
                  "accessed, no comparison of sums of program ids, loop "
                  "counters and ranges: {1}",
                  condition.getLoc(), constraints.why()));
    constraints = isMet ? knownConstraintsOf(condition, from())
                        : SmallVector<Constraint>();
  }
  restrict(*constraints, address,
           condition ? condition.getLoc() : access->getLoc());
}

void AccessSpace::Builder::restrict(SmallVector<Constraint> constraints,
                                    LinearForm &address, Location loc) {
  for (Constraint &constraint : constraints) {
    bool isNumbered = number(constraint.form);
    // Loops may start behind a constant.
    constraint = lessThan(constraint.form, {constraint.bound, {}});
    if (!isNumbered ||
        (!attach(constraint, address) && !holds(constraint, address)))
      guard(Alternatives{{constraint}},
            because(access,
                    "the condition at {0} bounds other numbers than those that "
                    "the address is made of",
                    loc));
    if (isNumbered)
      met.push_back(constraint);
  }
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
      address.coefficientOf(term.dimension) ||
      llvm::is_contained(space.getProgramDigits(), *term.dimension.digit))
    return false;
  Digit number{ScalarExpr::constant(1), term.dimension, std::nullopt};
  space.indices.push_back(
      {ScalarExpr::constant(0), {number}, constraint.bound});
  return true;
}

/// The index that has a bound or a start, and these terms as digits; null if
/// none is.
AccessSpace::Index *AccessSpace::Builder::findCut(const LinearForm &form) {
  auto found = llvm::find_if(space.indices, [&](const Index &index) {
    return (index.bound || index.start) && !index.digits.empty() &&
           index.digits.size() == form.terms.size() &&
           llvm::all_of(index.digits, [&](const Digit &digit) {
             return form.coefficientOf(digit.dimension) == digit.stride;
           });
  });
  return found == space.indices.end() ? nullptr : &*found;
}

/// Whether a constraint is one more bound of an index, or one of some of its
/// digits: its first chunk.
bool AccessSpace::Builder::tighten(const Constraint &constraint) {
  auto isMeant = [&](const Digit &digit) {
    return constraint.form.coefficientOf(digit.dimension) == digit.stride;
  };
  auto least = [&](const ScalarExpr &bound) {
    return ScalarExpr::binary(ScalarExpr::Kind::Min, bound, constraint.bound);
  };
  if (Index *index = findCut(constraint.form)) {
    index->bound = index->bound ? least(*index->bound) : constraint.bound;
    return true;
  }
  for (Index &index : space.indices) {
    size_t count = llvm::count_if(index.digits, isMeant);
    if (count == 0 || count != constraint.form.terms.size() || !index.bound)
      continue;
    if (space.moves || index.start)
      return false;
    if (!index.chunk) {
      std::stable_partition(index.digits.begin(), index.digits.end(), isMeant);
      index.chunk = Chunk{count, constraint.bound};
      return true;
    }
    if (index.chunk->digits != count ||
        !llvm::all_of(ArrayRef(index.digits).take_front(count), isMeant))
      return false;
    index.chunk->bound = least(index.chunk->bound);
    return true;
  }
  return false;
}

/// Takes an index that has a bound apart again, where all of its digits are
/// among the terms of a constraint, and gives its terms back to the address.
std::optional<AccessSpace::Index>
AccessSpace::Builder::takeChunk(const Constraint &constraint,
                                LinearForm &address) {
  auto found = llvm::find_if(space.indices, [&](const Index &index) {
    return index.bound && !index.chunk && !index.start &&
           index.digits.size() < constraint.form.terms.size() &&
           llvm::all_of(
               index.digits,
               [&](const Digit &digit) {
                 return constraint.form.coefficientOf(digit.dimension) ==
                        digit.stride;
               });
  });
  if (space.moves || found == space.indices.end())
    return std::nullopt;
  Index chunk = *found;
  space.indices.erase(found);
  for (const Digit &digit : chunk.digits)
    address.terms.push_back({digit.dimension, chunk.stride * digit.stride});
  return chunk;
}

/// Makes the terms of the address that a constraint speaks about one index with
/// a bound. What had one already becomes a chunk of it.
bool AccessSpace::Builder::makeIndex(const Constraint &constraint,
                                     LinearForm &address) {
  ArrayRef<LinearForm::Term> terms = constraint.form.terms;
  std::optional<Index> chunk = takeChunk(constraint, address);
  auto unit = llvm::find_if(terms, [](const LinearForm::Term &term) {
    return term.coefficient.getConstant() == 1;
  });
  auto findTerm = [&](const Dimension &dimension) {
    return llvm::find_if(address.terms, [&](const auto &term) {
      return term.dimension == dimension;
    });
  };
  if (unit == terms.end() || findTerm(unit->dimension) == address.terms.end())
    return false;
  Index index{findTerm(unit->dimension)->coefficient, {}, constraint.bound};
  if (chunk) {
    index.digits = chunk->digits;
    index.chunk = Chunk{chunk->digits.size(), *chunk->bound};
  }
  for (const LinearForm::Term &term : terms) {
    auto match = findTerm(term.dimension);
    if (match == address.terms.end() ||
        !(match->coefficient == index.stride * term.coefficient))
      return false;
    address.terms.erase(match);
    if (llvm::any_of(index.digits, [&](const Digit &digit) {
          return digit.dimension == term.dimension;
        }))
      continue;
    std::optional<Digit> digit = makeDigit(term.dimension, term.coefficient);
    if (!digit)
      return false;
    index.digits.push_back(*digit);
  }
  space.indices.push_back(std::move(index));
  return true;
}

/// Whether a constraint, −Σ digits < bound, says where an index starts.
bool AccessSpace::Builder::startIndex(const Constraint &constraint,
                                      LinearForm &address) {
  if (space.moves)
    return false;
  Constraint from{constraint.form.scaled(ScalarExpr::constant(-1)),
                  ScalarExpr::constant(1) - constraint.bound};
  if (Index *index = findCut(from.form)) {
    index->start = index->start ? ScalarExpr::binary(ScalarExpr::Kind::Max,
                                                     *index->start, from.bound)
                                : from.bound;
    return true;
  }
  if (!makeIndex(from, address) || space.indices.back().chunk)
    return false;
  std::swap(space.indices.back().start, space.indices.back().bound);
  return true;
}

/// Bounds the address by a constraint; false if that cuts the address space
/// another way.
bool AccessSpace::Builder::attach(Constraint constraint, LinearForm &address) {
  if (space.moves)
    constraint = withinProgram(constraint);
  if (space.moves && constraint.form.isConstant()) {
    // A condition on the program: it touches all of its addresses, or none.
    space.indices.push_back({ScalarExpr::constant(1), {}, constraint.bound});
    return true;
  }
  if (restrictsPrograms(constraint, address) || tighten(constraint))
    return true;
  AccessSpace spaceBefore = space;
  LinearForm addressBefore = address;
  for (auto cut : {&Builder::makeIndex, &Builder::startIndex}) {
    if ((this->*cut)(constraint, address))
      return true;
    space = spaceBefore;
    address = addressBefore;
  }
  return false;
}

bool AccessSpace::Builder::build() {
  Value pointer = access->getOperand(0);
  ReasonOr<LinearForm> address = LinearForm::of(pointer, {}, from());
  if (!address)
    return refuse("its address is no sum of multiples of program ids, loop "
                  "counters and ranges: {0}",
                  address.why());
  if (!number(*address))
    return refuse("programs start a loop in its address at different numbers");
  if (!coversIterationSpace(*address))
    return false;
  if (!startsRanges(*address))
    return refuse("each of its addresses is looked up in memory by itself");
  space.offset = address->constant;
  for (Value condition : conditions)
    restrict(condition, /*isMet=*/true, *address);
  for (Value condition : failing)
    restrict(condition, /*isMet=*/false, *address);
  for (const auto &[loop, stride] : strideLoops)
    if (!stride.isMasked(met) && !attach(stride.inBlocks(), *address))
      guard(Alternatives{{stride.end}},
            because(access,
                    "where programs end in the loop at {0} bounds other "
                    "numbers than those that the address is made of",
                    loop));
  for (const LinearForm::Term &term : address->terms) {
    std::optional<Digit> digit =
        makeDigit(term.dimension, ScalarExpr::constant(1));
    if (!digit)
      return false;
    space.indices.push_back({term.coefficient, {*digit}, std::nullopt});
  }
  return true;
}

ReasonOr<AccessSpace>
AccessSpace::of(Operation *access, const Renumbering *renumbering, From from) {
  Builder builder(access, renumbering, from);
  if (!builder.build())
    return builder.why;
  return std::move(builder.space);
}

ReasonOr<AccessSpace> AccessSpace::reachOf(Operation *access) {
  Builder builder(access, nullptr, From::Launch, /*isReach=*/true);
  if (!builder.build())
    return builder.why;
  // Where nobody knows how often a loop runs, the mask has to say how far it
  // gets.
  auto isOpen = [](const Digit &digit) {
    return digit.extent && !*digit.extent;
  };
  auto isLimited = [&](const Index &index) {
    return llvm::none_of(index.digits, isOpen) ||
           index.stride.getConstant() == 0 ||
           (index.bound && llvm::all_of(index.digits, [&](const Digit &digit) {
              return !isOpen(digit) || digit.stride.isNotNegative();
            }));
  };
  if (!llvm::all_of(builder.space.indices, isLimited))
    return because(access, "no mask says how far a loop around it goes");
  return std::move(builder.space);
}
