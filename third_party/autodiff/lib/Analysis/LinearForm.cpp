//===- LinearForm.cpp - Indices as sums over an iteration space -----------===//
#include "autodiff/Analysis/LinearForm.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;
using Form = std::optional<LinearForm>;

LinearForm LinearForm::operator+(const LinearForm &other) const {
  LinearForm sum = *this;
  sum.constant = sum.constant + other.constant;
  for (const Term &term : other.terms) {
    auto same = llvm::find_if(sum.terms, [&](const Term &candidate) {
      return candidate.dimension == term.dimension;
    });
    if (same == sum.terms.end()) {
      sum.terms.push_back(term);
      continue;
    }
    same->coefficient = same->coefficient + term.coefficient;
    if (same->coefficient.getConstant() == 0)
      sum.terms.erase(same);
  }
  return sum;
}

LinearForm LinearForm::scaled(const ScalarExpr &factor) const {
  LinearForm product{constant * factor, {}};
  if (factor.getConstant() == 0)
    return product;
  for (const Term &term : terms)
    product.terms.push_back({term.dimension, term.coefficient * factor});
  return product;
}

bool LinearForm::unfold(ScalarExpr::From from) {
  LinearForm unfolded{constant, {}};
  for (const Term &term : terms) {
    LinearForm part{ScalarExpr::constant(0), {term}};
    if (term.dimension.kind == Dimension::Kind::Index) {
      auto loop = cast<scf::ForOp>(term.dimension.loop);
      auto start = of(loop.getLowerBound(), {}, from);
      auto step = ScalarExpr::of(loop.getStep());
      // It may be an outer loop's induction variable in turn.
      if (!start || !step || !start->unfold(from))
        return false;
      Dimension iteration{Dimension::Kind::Loop};
      iteration.loop = loop;
      LinearForm number{ScalarExpr::constant(0), {{iteration, *step}}};
      part = (*start + number).scaled(term.coefficient);
    }
    unfolded = unfolded + part;
  }
  *this = std::move(unfolded);
  return true;
}

std::optional<ScalarExpr>
LinearForm::coefficientOf(const Dimension &dimension) const {
  for (const Term &term : terms)
    if (term.dimension == dimension)
      return term.coefficient;
  return std::nullopt;
}

ScalarExpr LinearForm::getStep(Operation *loop) const {
  ScalarExpr step = ScalarExpr::constant(0);
  for (const Term &term : terms) {
    if (term.dimension.loop != loop)
      continue;
    ScalarExpr distance = term.coefficient;
    if (term.dimension.kind == Dimension::Kind::Index)
      distance = distance * *ScalarExpr::of(cast<scf::ForOp>(loop).getStep());
    step = step + distance;
  }
  return step;
}

bool LinearForm::readsMemory() const {
  return llvm::any_of(
      terms, [](const Term &term) { return term.dimension.readsMemory(); });
}

bool LinearForm::isMultipleOf(int64_t step) const {
  auto holds = [&](const ScalarExpr &number) {
    std::optional<int64_t> value = number.getConstant();
    return value && *value % step == 0;
  };
  return holds(constant) && llvm::all_of(terms, [&](const Term &term) {
           return holds(term.coefficient);
         });
}

bool LinearForm::operator==(const LinearForm &other) const {
  return constant == other.constant && terms.size() == other.terms.size() &&
         llvm::all_of(terms, [&](const Term &term) {
           return other.coefficientOf(term.dimension) == term.coefficient;
         });
}

void LinearForm::renumberAxes(llvm::function_ref<unsigned(unsigned)> map) {
  for (Term &term : terms)
    if (term.dimension.kind == Dimension::Kind::Axis)
      term.dimension.axis = map(term.dimension.axis);
}

/// An axis that is dropped has one position, which is the first.
void LinearForm::moveAxes(const triton::AxisMap &map) {
  llvm::erase_if(terms, [&](const Term &term) {
    return term.dimension.kind == Dimension::Kind::Axis &&
           !map.toResult(term.dimension.axis);
  });
  renumberAxes([&](unsigned axis) { return *map.toResult(axis); });
}

static LinearForm uniform(ScalarExpr value) { return {value, {}}; }

static LinearForm single(Dimension dimension, ScalarExpr coefficient) {
  return {ScalarExpr::constant(0), {{std::move(dimension), coefficient}}};
}

namespace {
struct FormBuilder : IndexVisitor<FormBuilder, Form> {
  FormBuilder(llvm::function_ref<bool(Value)> isOpaque, ScalarExpr::From from)
      : isOpaque(isOpaque), from(from) {}

  llvm::function_ref<bool(Value)> isOpaque;
  ScalarExpr::From from;
  /// Why the innermost values that have no form have none.
  SmallVector<Reason> why;

  Form of(Value value);
  Form ofSum(Value a, Value b) { return combine(a, b, /*negate=*/false); }
  Form ofDifference(Value a, Value b) { return combine(a, b, /*negate=*/true); }
  Form combine(Value a, Value b, bool negate);
  Form ofProduct(Value a, Value b);
  Form ofSame(Value value) { return of(value); }
  Form ofMoved(Value value, const triton::AxisMap &map);
  Form ofRange(triton::MakeRangeOp range);
  Form ofOther(Operation *) { return std::nullopt; }
  Form induction(scf::ForOp loop);
  Form carried(scf::ForOp loop, unsigned index);
  Form ofArgument(BlockArgument argument);
  Form ofProgram(Value value) const;
  Form find(Value value);
};
} // namespace

Form FormBuilder::combine(Value a, Value b, bool negate) {
  Form lhs = of(a), rhs = lhs || !why.empty() ? of(b) : std::nullopt;
  if (!lhs || !rhs)
    return std::nullopt;
  return negate ? *lhs - *rhs : *lhs + *rhs;
}

Form FormBuilder::ofProduct(Value a, Value b) {
  Form lhs = of(a), rhs = lhs || !why.empty() ? of(b) : std::nullopt;
  if (!lhs || !rhs)
    return std::nullopt;
  if (rhs->isConstant())
    return lhs->scaled(rhs->constant);
  if (lhs->isConstant())
    return rhs->scaled(lhs->constant);
  return std::nullopt;
}

Form FormBuilder::ofMoved(Value value, const triton::AxisMap &map) {
  Form form = of(value);
  if (form)
    form->moveAxes(map);
  return form;
}

Form FormBuilder::ofRange(triton::MakeRangeOp range) {
  return uniform(ScalarExpr::constant(range.getStart())) +
         single({Dimension::Kind::Axis}, ScalarExpr::constant(1));
}

/// The induction variable of a loop: a dimension of its own if programs start
/// it at different numbers, else the number of the iteration by the step.
Form FormBuilder::induction(scf::ForOp loop) {
  Form lower = of(loop.getLowerBound());
  std::optional<ScalarExpr> step = ScalarExpr::of(loop.getStep());
  if (!lower || !step || step->dependsOnProgramId())
    return std::nullopt;
  bool varies = llvm::any_of(lower->terms, [](const LinearForm::Term &term) {
    return term.dimension.kind == Dimension::Kind::Program;
  });
  Dimension iteration{varies ? Dimension::Kind::Index : Dimension::Kind::Loop};
  iteration.loop = loop;
  if (varies)
    return single(iteration, ScalarExpr::constant(1));
  return *lower + single(iteration, *step);
}

/// What a loop carries if every iteration adds the same to it: where programs
/// start at different numbers, by how far the induction variable has come.
Form FormBuilder::carried(scf::ForOp loop, unsigned index) {
  Value next = loop.getYieldedValues()[index];
  Value argument = loop.getRegionIterArg(index);
  Form init = of(loop.getInitArgs()[index]);
  if (next == argument)
    return init;
  Operation *update = next.getDefiningOp();
  if (!update || !isa<arith::AddIOp, triton::AddPtrOp>(update) ||
      update->getOperand(0) != argument ||
      !loop.isDefinedOutsideOfLoop(update->getOperand(1)))
    return std::nullopt;
  Form increment = of(update->getOperand(1));
  if (!init || !increment || !increment->isConstant())
    return std::nullopt;
  Dimension iteration{Dimension::Kind::Loop};
  iteration.loop = loop;
  Form counter = induction(loop);
  if (counter && !counter->coefficientOf(iteration))
    if (auto perStep =
            increment->constant.dividedBy(*ScalarExpr::of(loop.getStep())))
      return *init + (*counter - *of(loop.getLowerBound())).scaled(*perStep);
  return *init + single(iteration, increment->constant);
}

Form FormBuilder::ofArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (isa<triton::FuncOp>(parent)) // a pointer: its own base
    return uniform(ScalarExpr::constant(0));
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (!loop)
    return std::nullopt;
  if (argument.getArgNumber() > 0)
    return carried(loop, argument.getArgNumber() - 1);
  return induction(loop);
}

/// Scalars that depend on program ids in any other way: one digit. So are sums
/// with constant coefficients, since their parts (a group, a place in it) need
/// not be independent. (Nothing is known of elements of memory: such a sum
/// would be no digit of the kernel.)
Form FormBuilder::ofProgram(Value value) const {
  std::optional<ScalarExpr> number = ScalarExpr::of(value, from);
  if (!number || !number->dependsOnProgramId())
    return std::nullopt;
  ScalarExpr rest =
      ScalarExpr::constant(number->countOf(ScalarExpr::constant(1)));
  auto [digit, count] = (*number - rest).asMultiple();
  using Kind = ScalarExpr::Kind;
  if (digit.getKind() == Kind::Add || digit.getKind() == Kind::Sub) {
    digit = *number;
    rest = ScalarExpr::constant(0);
  }
  Dimension program{Dimension::Kind::Program};
  program.digit = digit;
  return uniform(rest) + single(program, ScalarExpr::constant(count));
}

static bool mixesDigits(const LinearForm &form) {
  if (form.readsMemory())
    return false;
  unsigned digits = 0;
  bool constants = true, plain = true;
  for (const LinearForm::Term &term : form.terms) {
    if (term.dimension.kind != Dimension::Kind::Program)
      return false;
    ++digits;
    constants &= term.coefficient.getConstant().has_value();
    plain &= term.dimension.digit->isProgramId();
  }
  return digits > 1 && constants && !plain;
}

/// Why a value has no form, though what it is computed from may have one.
static Reason explain(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = cast<BlockArgument>(value).getOwner()->getParentOp();
  if (isa<triton::LoadOp>(op))
    return because(op, "it depends on what is loaded at {0}", op);
  if (isa<scf::ForOp>(op) && isa<BlockArgument>(value))
    return because(op,
                   "it depends on what the loop at {0} carries, which does not "
                   "advance by the same number in each iteration",
                   op);
  if (isa<LoopLikeOpInterface, scf::IfOp>(op))
    return because(op, "it depends on what the {0} at {1} computes",
                   isa<scf::IfOp>(op) ? "branch" : "loop", op);
  if (isa<arith::MulIOp>(op))
    return because(op,
                   "it depends on a product, at {0}, of two numbers that "
                   "programs, iterations or lanes have",
                   op);
  StringRef name = op->getName().getStringRef();
  return because(op,
                 "it depends on what `{0}` at {1} makes of the numbers that "
                 "programs, iterations or lanes have",
                 name, op);
}

Form FormBuilder::of(Value value) {
  size_t before = why.size();
  Form form = find(value);
  if (form)
    why.truncate(before);
  else if (why.size() == before && wantsReasons(value.getContext()))
    why.push_back(explain(value));
  return form;
}

Form FormBuilder::find(Value value) {
  if (std::optional<ScalarExpr> scalar = ScalarExpr::of(value, from))
    if (!scalar->dependsOnProgramId())
      return uniform(*scalar);
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat() &&
      isa<IntegerType>(constant.getElementType()))
    return uniform(
        ScalarExpr::constant(constant.getSplatValue<APInt>().getSExtValue()));
  if (isOpaque && value.getType().isSignlessInteger() && isOpaque(value)) {
    Dimension itself{Dimension::Kind::Scalar};
    itself.scalar = value;
    return single(itself, ScalarExpr::constant(1));
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    return ofArgument(argument);

  Operation *op = value.getDefiningOp();
  if (isa<ProgramsOp>(op))
    return single(
        {Dimension::Kind::Place, cast<OpResult>(value).getResultNumber()},
        ScalarExpr::constant(1));
  Form form = visit(op);
  if (form && !mixesDigits(*form))
    return form;
  return ofProgram(value);
}

ReasonOr<LinearForm> LinearForm::of(Value value,
                                    llvm::function_ref<bool(Value)> isOpaque,
                                    ScalarExpr::From from) {
  FormBuilder builder(isOpaque, from);
  if (Form form = builder.of(value))
    return form;
  return Reason::all(builder.why);
}
