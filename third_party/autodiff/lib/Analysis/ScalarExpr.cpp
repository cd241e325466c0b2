//===- ScalarExpr.cpp - Integers that a launch can evaluate ---------------===//
#include "autodiff/Analysis/ScalarExpr.h"

#include "ScalarSum.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = ScalarExpr::Kind;

struct ScalarExpr::Node {
  Kind kind;
  int64_t number = 0; // the constant, argument index or axis
  std::shared_ptr<const Node> lhs, rhs;
  std::string text = {}; // of a Size

  static bool equal(const Node *a, const Node *b) {
    if (a == b)
      return true;
    if (!a || !b || a->kind != b->kind || a->number != b->number ||
        a->text != b->text)
      return false;
    return equal(a->lhs.get(), b->lhs.get()) &&
           equal(a->rhs.get(), b->rhs.get());
  }

  /// An order of all expressions: less than zero if `a` comes first.
  static int compare(const Node *a, const Node *b) {
    if (a == b || !a || !b)
      return (a != nullptr) - (b != nullptr);
    auto key = [](const Node *n) {
      return std::tie(n->kind, n->number, n->text);
    };
    if (key(a) != key(b))
      return key(a) < key(b) ? -1 : 1;
    int first = compare(a->lhs.get(), b->lhs.get());
    return first ? first : compare(a->rhs.get(), b->rhs.get());
  }
};

static std::optional<int64_t> fold(ScalarExpr::Kind kind, int64_t a,
                                   int64_t b) {
  int64_t result;
  switch (kind) {
  case Kind::Add:
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Sub:
    return llvm::SubOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Mul:
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Div:
    return b == 0 || b == -1 ? std::nullopt : std::optional(a / b);
  case Kind::Rem:
    return b == 0 || b == -1 ? std::nullopt : std::optional(a % b);
  case Kind::CeilDiv:
    return b == 0 || b == -1 ? std::nullopt
                             : std::optional(llvm::divideCeilSigned(a, b));
  case Kind::Min:
    return std::min(a, b);
  case Kind::Max:
    return std::max(a, b);
  default:
    return std::nullopt;
  }
}

ScalarExpr ScalarExpr::constant(int64_t value) {
  return ScalarExpr(
      std::make_shared<Node>(Node{Kind::Constant, value, {}, {}}));
}
ScalarExpr ScalarExpr::argument(unsigned index) {
  return ScalarExpr(
      std::make_shared<Node>(Node{Kind::Argument, index, {}, {}}));
}
ScalarExpr ScalarExpr::grid(unsigned axis) {
  return ScalarExpr(std::make_shared<Node>(Node{Kind::Grid, axis, {}, {}}));
}
ScalarExpr ScalarExpr::programId(unsigned axis) {
  return ScalarExpr(
      std::make_shared<Node>(Node{Kind::ProgramId, axis, {}, {}}));
}
ScalarExpr ScalarExpr::size(llvm::StringRef json) {
  return ScalarExpr(
      std::make_shared<Node>(Node{Kind::Size, 0, {}, {}, json.str()}));
}
ScalarExpr ScalarExpr::element(unsigned index, ScalarExpr place) {
  return ScalarExpr(std::make_shared<Node>(
      Node{Kind::Element, 0, argument(index).node, place.node}));
}

/// Adds the factors of a product, and multiplies `number` by those that are
/// numbers; false if that is too large.
static bool collectFactors(const ScalarExpr &e,
                           SmallVectorImpl<ScalarExpr> &factors,
                           int64_t &number) {
  if (std::optional<int64_t> constant = e.getConstant())
    return !llvm::MulOverflow(number, *constant, number);
  if (e.getKind() == ScalarExpr::Kind::Mul)
    return collectFactors(e.getLhs(), factors, number) &&
           collectFactors(e.getRhs(), factors, number);
  factors.push_back(e);
  return true;
}

ScalarExpr ScalarExpr::multiply(const ScalarExpr &lhs, const ScalarExpr &rhs) {
  auto product = [](const ScalarExpr &a, const ScalarExpr &b) {
    return ScalarExpr(
        std::make_shared<Node>(Node{Kind::Mul, 0, a.node, b.node}));
  };
  SmallVector<ScalarExpr> factors;
  int64_t number = 1;
  if (!collectFactors(lhs, factors, number) ||
      !collectFactors(rhs, factors, number))
    return product(lhs, rhs);
  llvm::stable_sort(factors, [](const ScalarExpr &a, const ScalarExpr &b) {
    return Node::compare(a.node.get(), b.node.get()) < 0;
  });
  if (number == 0)
    return constant(0);
  if (number != 1)
    factors.push_back(constant(number));
  ScalarExpr all = factors.front();
  for (const ScalarExpr &factor : llvm::drop_begin(factors))
    all = product(all, factor);
  return all;
}

ScalarExpr ScalarExpr::binary(Kind kind, ScalarExpr lhs, ScalarExpr rhs) {
  std::optional<int64_t> a = lhs.getConstant(), b = rhs.getConstant();
  bool commutes = kind == Kind::Add || kind == Kind::Mul || kind == Kind::Min ||
                  kind == Kind::Max;
  // Constants stand on the right, so that equal products compare equal.
  if (commutes && a && !b)
    return binary(kind, rhs, lhs);
  if (a && b)
    if (std::optional<int64_t> folded = fold(kind, *a, *b))
      return constant(*folded);
  bool zeroRhs = b == 0, oneRhs = b == 1;
  if (kind == Kind::Add || kind == Kind::Sub)
    if (std::optional<ScalarExpr> sum = ScalarSum::combine(kind, lhs, rhs))
      return *sum;
  switch (kind) {
  case Kind::Sub:
    // 0 − (a − b) = b − a
    if (a == 0 && rhs.node->kind == Kind::Sub)
      return binary(Kind::Sub, ScalarExpr(rhs.node->rhs),
                    ScalarExpr(rhs.node->lhs));
    [[fallthrough]];
  case Kind::Add:
    // a ± (b · −1) = a ∓ b
    if (rhs.node->kind == Kind::Mul &&
        ScalarExpr(rhs.node->rhs).getConstant() == -1)
      return binary(kind == Kind::Add ? Kind::Sub : Kind::Add, lhs,
                    ScalarExpr(rhs.node->lhs));
    if (zeroRhs)
      return lhs;
    break;
  case Kind::Mul:
    if (oneRhs)
      return lhs;
    if (zeroRhs)
      return rhs;
    return multiply(lhs, rhs);
  case Kind::Div:
  case Kind::CeilDiv:
  case Kind::Rem:
    if (oneRhs)
      return kind == Kind::Rem ? constant(0) : lhs;
    if (std::optional<ScalarExpr> divided =
            ScalarSum::divide(kind, lhs, b.value_or(0)))
      return *divided;
    break;
  case Kind::Max:
    if (zeroRhs && lhs.isNotNegative())
      return lhs;
    break;
  default:
    break;
  }
  return ScalarExpr(std::make_shared<Node>(Node{kind, 0, lhs.node, rhs.node}));
}

/// Whether no operation of the kernel can change what `argument` points to.
static bool isOnlyRead(BlockArgument argument) {
  return !mayBeAccessed(argument,
                        [](Operation *op) { return !isa<triton::LoadOp>(op); });
}

/// The element that a load of one integer reads.
static std::optional<ScalarExpr> ofLoad(triton::LoadOp load) {
  if (load.getMask() || load.getIsVolatile() ||
      !(load.getType().isInteger(32) || load.getType().isInteger(64)))
    return std::nullopt;
  ScalarExpr place = ScalarExpr::constant(0);
  Value pointer = load.getPtr();
  while (auto sum = pointer.getDefiningOp<triton::AddPtrOp>()) {
    std::optional<ScalarExpr> offset =
        ScalarExpr::of(sum.getOffset(), ScalarExpr::From::Memory);
    if (!offset)
      return std::nullopt;
    place = place + *offset;
    pointer = sum.getPtr();
  }
  auto argument = dyn_cast<BlockArgument>(pointer);
  if (!argument || !isa<triton::FuncOp>(argument.getOwner()->getParentOp()) ||
      !isOnlyRead(argument))
    return std::nullopt;
  return ScalarExpr::element(argument.getArgNumber(), place);
}

/// One if a < b, else zero.
static ScalarExpr isLess(const ScalarExpr &a, const ScalarExpr &b) {
  ScalarExpr above =
      ScalarExpr::binary(Kind::Max, b - a, ScalarExpr::constant(0));
  return ScalarExpr::binary(Kind::Min, above, ScalarExpr::constant(1));
}

/// One where `condition` holds, else zero.
static std::optional<ScalarExpr> ofCondition(Value condition,
                                             ScalarExpr::From from) {
  auto op = condition.getDefiningOp<arith::CmpIOp>();
  if (!op)
    return std::nullopt;
  auto a = ScalarExpr::of(op.getLhs(), from);
  auto b = ScalarExpr::of(op.getRhs(), from);
  if (!a || !b)
    return std::nullopt;
  ScalarExpr one = ScalarExpr::constant(1);
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return isLess(*a, *b);
  case arith::CmpIPredicate::sgt:
    return isLess(*b, *a);
  case arith::CmpIPredicate::sle:
    return one - isLess(*b, *a);
  case arith::CmpIPredicate::sge:
    return one - isLess(*a, *b);
  case arith::CmpIPredicate::ne:
    return isLess(*a, *b) + isLess(*b, *a);
  case arith::CmpIPredicate::eq:
    return one - isLess(*a, *b) - isLess(*b, *a);
  default:
    return std::nullopt;
  }
}

/// Whether this may be computed where it is not used: nothing is divided by a
/// number that may be zero.
static bool isSpeculatable(const ScalarExpr &expr) {
  if (expr.isLeaf())
    return expr.getKind() != Kind::Element;
  bool divides =
      llvm::is_contained({Kind::Div, Kind::Rem, Kind::CeilDiv}, expr.getKind());
  return (!divides || expr.getRhs().getConstant().value_or(0) > 0) &&
         isSpeculatable(expr.getLhs()) && isSpeculatable(expr.getRhs());
}

/// The smaller, or larger, of two numbers, as a condition chooses it.
static std::optional<ScalarExpr> chooseExtremum(Value condition,
                                                const ScalarExpr &whenTrue,
                                                const ScalarExpr &whenFalse,
                                                ScalarExpr::From from) {
  using arith::CmpIPredicate;
  auto op = condition.getDefiningOp<arith::CmpIOp>();
  auto a = op ? ScalarExpr::of(op.getLhs(), from) : std::nullopt;
  auto b = op ? ScalarExpr::of(op.getRhs(), from) : std::nullopt;
  if (!a || !b)
    return std::nullopt;
  bool isSame = *a == whenTrue && *b == whenFalse;
  if (!isSame && !(*a == whenFalse && *b == whenTrue))
    return std::nullopt;
  CmpIPredicate predicate = op.getPredicate();
  bool isLess =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  if (!isLess && predicate != CmpIPredicate::sgt &&
      predicate != CmpIPredicate::sge)
    return std::nullopt;
  return ScalarExpr::binary(isLess == isSame ? Kind::Min : Kind::Max, *a, *b);
}

/// condition ? a : b, as b + [condition]·(a − b).
static std::optional<ScalarExpr> choose(Value condition, Value whenTrue,
                                        Value whenFalse,
                                        ScalarExpr::From from) {
  // A condition itself is no number.
  if (whenTrue.getType().isInteger(1))
    return std::nullopt;
  auto a = ScalarExpr::of(whenTrue, from);
  auto b = ScalarExpr::of(whenFalse, from);
  if (!a || !b)
    return std::nullopt;
  if (auto extremum = chooseExtremum(condition, *a, *b, from))
    return extremum;
  auto holds = ofCondition(condition, from);
  if (!holds || !isSpeculatable(*a) || !isSpeculatable(*b))
    return std::nullopt;
  return *b + *holds * (*a - *b);
}

std::optional<ScalarExpr> ScalarExpr::of(Value value, From from) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return constant(number.getSExtValue());
  if (!value.getType().isSignlessInteger() && !value.getType().isIndex())
    return std::nullopt;

  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (isa<triton::FuncOp>(argument.getOwner()->getParentOp()))
      return ScalarExpr::argument(argument.getArgNumber());
    return std::nullopt;
  }

  Operation *op = value.getDefiningOp();
  if (auto pid = dyn_cast<triton::GetProgramIdOp>(op))
    return programId(pid.getAxisAsInt());
  if (auto count = dyn_cast<triton::GetNumProgramsOp>(op))
    return grid(count.getAxisAsInt());
  if (auto size = dyn_cast<SizeOp>(op))
    return ScalarExpr::size(size.getExpression());
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return from == From::Memory ? ofLoad(load) : std::nullopt;
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp, HeldOp>(op)) {
    // A truncated i1 or i8 is not the number it came from.
    unsigned width = value.getType().isIndex()
                         ? 64
                         : value.getType().getIntOrFloatBitWidth();
    return width < 32 ? std::nullopt : of(op->getOperand(0), from);
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return choose(select.getCondition(), select.getTrueValue(),
                  select.getFalseValue(), from);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    return choose(branch.getCondition(), branch.thenYield().getOperand(index),
                  branch.elseYield().getOperand(index), from);
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;

  std::optional<Kind> kind;
  if (isa<arith::AddIOp>(op))
    kind = Kind::Add;
  else if (isa<arith::SubIOp>(op))
    kind = Kind::Sub;
  else if (isa<arith::MulIOp>(op))
    kind = Kind::Mul;
  else if (isa<arith::DivSIOp>(op))
    kind = Kind::Div;
  else if (isa<arith::RemSIOp>(op))
    kind = Kind::Rem;
  else if (isa<arith::DivUIOp>(op))
    kind = Kind::Div;
  else if (isa<arith::CeilDivSIOp>(op))
    kind = Kind::CeilDiv;
  else if (isa<arith::MinSIOp>(op))
    kind = Kind::Min;
  else if (isa<arith::MaxSIOp>(op))
    kind = Kind::Max;
  if (!kind)
    return std::nullopt;
  std::optional<ScalarExpr> lhs = of(op->getOperand(0), from);
  std::optional<ScalarExpr> rhs = of(op->getOperand(1), from);
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::DivUIOp>(op) &&
      !(lhs->isNotNegative() && rhs->isNotNegative()))
    return std::nullopt;
  return binary(*kind, *lhs, *rhs);
}

std::pair<ScalarExpr, int64_t> ScalarExpr::asMultiple() const {
  ScalarSum sum;
  if (sum.add(*this, 1) && sum.getTerms().size() == 1)
    return sum.getTerms().front();
  return {*this, 1};
}

std::optional<ScalarExpr>
ScalarExpr::dividedBy(const ScalarExpr &divisor) const {
  if (*this == divisor)
    return constant(1);
  auto [unit, count] = asMultiple();
  int64_t number = divisor.getConstant().value_or(0);
  if (number <= 0 || count % number != 0)
    return std::nullopt;
  return unit * constant(count / number);
}

int64_t ScalarExpr::countOf(const ScalarExpr &unit) const {
  ScalarSum sum;
  if (sum.add(*this, 1))
    for (const auto &[term, multiple] : sum.getTerms())
      if (term == unit)
        return multiple;
  return 0;
}

ScalarExpr::Kind ScalarExpr::getKind() const { return node->kind; }

bool ScalarExpr::isLeaf() const { return !node->lhs; }

ScalarExpr ScalarExpr::getLhs() const { return ScalarExpr(node->lhs); }

ScalarExpr ScalarExpr::getRhs() const { return ScalarExpr(node->rhs); }

std::optional<int64_t> ScalarExpr::getConstant() const {
  return node->kind == Kind::Constant ? std::optional(node->number)
                                      : std::nullopt;
}

bool ScalarExpr::isProgramId() const { return node->kind == Kind::ProgramId; }

unsigned ScalarExpr::getAxis() const {
  assert(node->kind == Kind::ProgramId || node->kind == Kind::Grid);
  return node->number;
}

bool ScalarExpr::dependsOnProgramId() const {
  if (node->kind == Kind::ProgramId || node->kind == Kind::Element)
    return true;
  return (node->lhs && ScalarExpr(node->lhs).dependsOnProgramId()) ||
         (node->rhs && ScalarExpr(node->rhs).dependsOnProgramId());
}

bool ScalarExpr::mentions(Kind leaf) const {
  return node->kind == leaf ||
         (node->lhs && ScalarExpr(node->lhs).mentions(leaf)) ||
         (node->rhs && ScalarExpr(node->rhs).mentions(leaf));
}

bool ScalarExpr::isNotNegative() const {
  auto holds = [](const std::shared_ptr<const Node> &operand) {
    return ScalarExpr(operand).isNotNegative();
  };
  switch (node->kind) {
  case Kind::Constant:
    return node->number >= 0;
  case Kind::ProgramId:
  case Kind::Grid:
    return true;
  case Kind::Add:
  case Kind::Mul:
  case Kind::Div:
  case Kind::CeilDiv:
  case Kind::Min:
    return holds(node->lhs) && holds(node->rhs);
  case Kind::Rem:
    return holds(node->lhs);
  case Kind::Max:
    return holds(node->lhs) || holds(node->rhs);
  case Kind::Argument:
  case Kind::Size:
  case Kind::Element:
  case Kind::Sub:
    return false;
  }
  llvm_unreachable("unknown kind");
}

bool ScalarExpr::mentionsAxis(unsigned axis) const {
  if (node->kind == Kind::ProgramId)
    return node->number == axis;
  return (node->lhs && ScalarExpr(node->lhs).mentionsAxis(axis)) ||
         (node->rhs && ScalarExpr(node->rhs).mentionsAxis(axis));
}

static llvm::StringRef spell(ScalarExpr::Kind kind) {
  switch (kind) {
  case Kind::Constant:
    return "const";
  case Kind::Argument:
    return "arg";
  case Kind::Grid:
    return "grid";
  case Kind::ProgramId:
    return "pid";
  case Kind::Size:
    break;
  case Kind::Element:
    return "element";
  case Kind::Add:
    return "add";
  case Kind::Sub:
    return "sub";
  case Kind::Mul:
    return "mul";
  case Kind::Div:
    return "div";
  case Kind::Rem:
    return "rem";
  case Kind::CeilDiv:
    return "ceildiv";
  case Kind::Min:
    return "min";
  case Kind::Max:
    return "max";
  }
  llvm_unreachable("unknown kind");
}

llvm::json::Value ScalarExpr::toJSON() const {
  if (node->kind == Kind::Constant)
    return node->number;
  if (node->kind == Kind::Size)
    return llvm::cantFail(llvm::json::parse(node->text));
  if (isLeaf())
    return llvm::json::Array{spell(node->kind), node->number};
  if (node->kind == Kind::Element)
    return llvm::json::Array{spell(node->kind), node->lhs->number,
                             ScalarExpr(node->rhs).toJSON()};
  return llvm::json::Array{spell(node->kind), ScalarExpr(node->lhs).toJSON(),
                           ScalarExpr(node->rhs).toJSON()};
}

Value ScalarExpr::emit(OpBuilder &b, Location loc, ValueRange arguments) const {
  Type i64 = b.getI64Type();
  auto widen = [&](Value value) -> Value {
    return value.getType() == i64
               ? value
               : Value(arith::ExtSIOp::create(b, loc, i64, value));
  };
  switch (node->kind) {
  case Kind::Constant:
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(node->number));
  case Kind::Argument:
    return widen(arguments[node->number]);
  case Kind::Grid:
    return widen(triton::GetNumProgramsOp::create(b, loc, node->number));
  case Kind::ProgramId:
    return widen(triton::GetProgramIdOp::create(b, loc, node->number));
  case Kind::Size:
    return SizeOp::create(b, loc, b.getStringAttr(node->text));
  case Kind::Element:
    llvm_unreachable("derived kernels do not read places");
  default:
    break;
  }
  Value lhs = ScalarExpr(node->lhs).emit(b, loc, arguments);
  Value rhs = ScalarExpr(node->rhs).emit(b, loc, arguments);
  switch (node->kind) {
  case Kind::Add:
    return arith::AddIOp::create(b, loc, lhs, rhs);
  case Kind::Sub:
    return arith::SubIOp::create(b, loc, lhs, rhs);
  case Kind::Mul:
    return arith::MulIOp::create(b, loc, lhs, rhs);
  case Kind::Div:
    return arith::DivSIOp::create(b, loc, lhs, rhs);
  case Kind::Rem:
    return arith::RemSIOp::create(b, loc, lhs, rhs);
  case Kind::CeilDiv:
    return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
  case Kind::Min:
    return arith::MinSIOp::create(b, loc, lhs, rhs);
  case Kind::Max:
    return arith::MaxSIOp::create(b, loc, lhs, rhs);
  default:
    llvm_unreachable("handled above");
  }
}

StringAttr mlir::autodiff::toAttribute(MLIRContext *context,
                                       llvm::json::Value json) {
  return StringAttr::get(context, llvm::formatv("{0}", std::move(json)).str());
}

llvm::json::Value mlir::autodiff::fromAttribute(Attribute attribute) {
  return llvm::cantFail(
      llvm::json::parse(cast<StringAttr>(attribute).getValue()));
}

bool ScalarExpr::operator==(const ScalarExpr &other) const {
  return Node::equal(node.get(), other.node.get());
}

ScalarExpr mlir::autodiff::tripCount(ScalarExpr lower, ScalarExpr upper,
                                     ScalarExpr step) {
  ScalarExpr count = ScalarExpr::binary(Kind::CeilDiv, upper - lower, step);
  // (n + c − 1) / c is ⌈n / c⌉, or neither is positive.
  if (count.getKind() == Kind::Div) {
    ScalarExpr sum = count.getLhs(), divisor = count.getRhs();
    std::optional<int64_t> c = divisor.getConstant();
    if (c && *c > 0 && sum.getKind() == Kind::Add &&
        sum.getRhs() == ScalarExpr::constant(*c - 1))
      count = ScalarExpr::binary(Kind::CeilDiv, sum.getLhs(), divisor);
  }
  return ScalarExpr::binary(Kind::Max, count, ScalarExpr::constant(0));
}
