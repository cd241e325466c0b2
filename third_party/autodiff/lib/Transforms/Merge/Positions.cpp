//===- Positions.cpp - Where a lane of a program stands -------------------===//
#include "Positions.h"

#include "Programs/Independence.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UsedValues.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> mlir::autodiff::shapeOf(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.getShape() : ArrayRef<int64_t>();
}

std::optional<ScalarExpr>
Position::coefficientIn(const LinearForm &form,
                        std::optional<unsigned> at) const {
  ScalarExpr none = ScalarExpr::constant(0);
  ScalarExpr ofLane = none, ofProgram = none;
  if (axis && at)
    ofLane = form.coefficientOf({Dimension::Kind::Axis, *at}).value_or(none);
  if (digit) {
    Dimension program{Dimension::Kind::Program};
    program.digit = digit;
    ofProgram = form.coefficientOf(program).value_or(none);
  }
  if (!axis || !digit)
    return axis ? ofLane : ofProgram;
  return ofProgram == ofLane * ScalarExpr::constant(length)
             ? std::optional(ofLane)
             : std::nullopt;
}

ExprAttr Position::count(MLIRContext *context) const {
  return digit ? mulOf(extentOf(*digit), length)
               : ExprAttr::get(context, length);
}

std::optional<Positions> Positions::of(const LinearForm &address,
                                       ArrayRef<int64_t> shape) {
  Positions found;
  SmallVector<LinearForm::Term> programs;
  for (const LinearForm::Term &term : address.terms) {
    const Dimension &dimension = term.dimension;
    if (dimension.kind == Dimension::Kind::Program)
      programs.push_back(term);
    else if (dimension.kind == Dimension::Kind::Axis)
      found.positions.push_back({term.coefficient, dimension.axis, std::nullopt,
                                 shape[dimension.axis]});
    else
      return std::nullopt;
  }
  for (LinearForm::Term &term : programs) {
    auto lanes = llvm::find_if(found.positions, [&](const Position &position) {
      return !position.digit &&
             term.coefficient ==
                 position.stride * ScalarExpr::constant(position.length);
    });
    if (lanes != found.positions.end())
      lanes->digit = term.dimension.digit;
    else
      found.positions.push_back(
          {term.coefficient, std::nullopt, term.dimension.digit, 1});
  }
  return found;
}

bool Positions::explain(const LinearForm &form) const {
  return llvm::all_of(form.terms, [&](const LinearForm::Term &term) {
    if (term.dimension.kind != Dimension::Kind::Program)
      return term.dimension.kind == Dimension::Kind::Axis ||
             term.dimension.kind == Dimension::Kind::Loop;
    // Another digit is the same in the programs of all neighbours.
    const std::optional<ScalarExpr> &digit = term.dimension.digit;
    return llvm::any_of(positions,
                        [&](const Position &position) {
                          return position.digit == digit;
                        }) ||
           llvm::all_of(positions, [&](const Position &position) {
             return !position.digit || areIndependent(*position.digit, *digit);
           });
  });
}

std::optional<SmallVector<ScalarExpr>>
Positions::coefficientsIn(const LinearForm &form) const {
  SmallVector<ScalarExpr> coefficients;
  size_t terms = 0;
  for (const Position &position : positions) {
    std::optional<ScalarExpr> found =
        position.coefficientIn(form, position.axis);
    if (!found)
      return std::nullopt;
    if (found->getConstant() != 0)
      terms += position.axis.has_value() + position.digit.has_value();
    coefficients.push_back(*found);
  }
  return terms == form.terms.size() ? std::optional(coefficients)
                                    : std::nullopt;
}

/// The kernel that `b` stands in.
static triton::FuncOp getFunction(OpBuilder &b) {
  Operation *parent = b.getInsertionBlock()->getParentOp();
  auto function = dyn_cast<triton::FuncOp>(parent);
  return function ? function : parent->getParentOfType<triton::FuncOp>();
}

Value Positions::emit(OpBuilder &b, Location loc, size_t number,
                      std::optional<unsigned> axis,
                      ArrayRef<int64_t> shape) const {
  const Position &position = positions[number];
  triton::FuncOp function = getFunction(b);
  Value sum;
  if (position.digit) {
    sum = castInteger(b, loc,
                      position.digit->emit(b, loc, function.getArguments()),
                      b.getI32Type());
    sum = arith::MulIOp::create(
        b, loc, sum, integerOf(b, loc, sum.getType(), position.length));
  }
  if (!axis)
    return sum;
  Value lanes = triton::MakeRangeOp::create(b, loc, 0, position.length);
  if (sum)
    lanes = arith::AddIOp::create(b, loc, splatTo(b, loc, sum, lanes.getType()),
                                  lanes);
  return repeatOver(b, loc, lanes, {*axis}, shape);
}

Value Positions::emitBelow(OpBuilder &b, Location loc, size_t number,
                           const ScalarExpr &bound, Type like) const {
  std::optional<unsigned> axis = positions[number].axis;
  Value at = emit(b, loc, number, axis, shapeOf(like));
  if (!axis)
    at = splatTo(b, loc, at, like);
  Value end =
      castInteger(b, loc, bound.emit(b, loc, getFunction(b).getArguments()),
                  b.getI32Type());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at,
                               splatTo(b, loc, end, at.getType()));
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

Neighbors::Neighbors(OpBuilder &b, const Positions &positions,
                     Distance distance, ArrayRef<Value> written,
                     MovingDistance moving)
    : b(b), positions(positions), distance(std::move(distance)),
      moving(std::move(moving)), written(written) {
  this->moving.resize(positions.size());
}

Neighbors::Axes Neighbors::getOwnAxes() const {
  return llvm::map_to_vector(positions.get(),
                             [](const Position &p) { return p.axis; });
}

Value Neighbors::get(Value value) { return get(value, getOwnAxes()); }

bool Neighbors::needs(Value value) const {
  bool isHere = llvm::none_of(llvm::seq(positions.size()),
                              [&](size_t number) { return isFar(number); });
  auto found = known.find(value);
  return found != known.end() && llvm::any_of(found->second, [&](auto &entry) {
           return entry.second && (isHere || entry.second != value);
         });
}

void Neighbors::bind(Value value, Value moved) {
  known[value] = {{getOwnAxes(), moved}};
}

Value Neighbors::exists(Value value) {
  return limit(value.getLoc(), value.getType(), getOwnAxes());
}

/// Whether lanes of a tile of this shape have a neighbour, as far as its axes
/// tell; null if all have.
Value Neighbors::limit(Location loc, Type type, const Axes &axes) {
  Value limits;
  auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    rhs = splatTo(b, loc, rhs, lhs.getType());
    Value limit = arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
    limits =
        limits ? Value(arith::AndIOp::create(b, loc, limits, limit)) : limit;
  };
  for (auto [number, far] : llvm::enumerate(distance)) {
    const Position &position = positions[number];
    bool isHere =
        !position.axis ||
        (axes[number] && shapeOf(type)[*axes[number]] == position.length);
    if (!isFar(number) || !isHere ||
        mutation::isMade("windows:all are neighbours"))
      continue;
    Value at = positions.emit(b, loc, number, axes[number], shapeOf(type));
    if (!axes[number])
      at = splatTo(b, loc, at, type);
    if (moving[number]) {
      Value there = arith::AddIOp::create(
          b, loc, at, splatTo(b, loc, moving[number], at.getType()));
      there = arith::AddIOp::create(b, loc, there,
                                    integerOf(b, loc, there.getType(), far));
      require(arith::CmpIPredicate::sge, there,
              integerOf(b, loc, b.getI32Type(), 0));
      require(arith::CmpIPredicate::slt, there,
              createSize(b, loc, position.count(b.getContext())));
    } else if (far < 0)
      require(arith::CmpIPredicate::sge, at,
              integerOf(b, loc, b.getI32Type(), -far));
    else
      require(arith::CmpIPredicate::slt, at,
              createSize(b, loc,
                         maxOf(0, subOf(position.count(b.getContext()), far))));
  }
  return limits;
}

Value Neighbors::get(Value value, const Axes &axes) {
  for (auto &[asked, found] : known[value])
    if (asked == axes)
      return found;
  Value found = compute(value, axes);
  known[value].push_back({axes, found});
  return found;
}

/// Whether a form is a position of which neighbours are asked for, or a
/// constant away from it.
bool Neighbors::isPosition(const LinearForm &form, const Axes &axes) const {
  for (auto [number, position] : llvm::enumerate(positions.get())) {
    size_t terms = position.axis.has_value() + position.digit.has_value();
    if (isFar(number) && form.terms.size() == terms &&
        position.coefficientIn(form, axes[number]) == ScalarExpr::constant(1))
      return true;
  }
  return false;
}

static bool isUniformConstant(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  auto elements = dyn_cast<ElementsAttr>(constant);
  return !elements || elements.isSplat();
}

/// Indices and addresses are moved as early as that can be, so that what
/// several neighbours load is seen to be the same.
Value Neighbors::compute(Value value, const Axes &axes) {
  if (isUniformConstant(value))
    return value;
  Type element = getElementTypeOrSelf(value.getType());
  std::optional<LinearForm> form;
  if (isa<IntegerType, triton::PointerType>(element) && !element.isInteger(1))
    form = LinearForm::of(value);
  if (form && !isa<triton::PointerType>(element) &&
      (form->isConstant() || isPosition(*form, axes)))
    return advance(value, *form, axes);
  auto result = dyn_cast<OpResult>(value);
  if (!result) {
    Operation *parent = value.getParentBlock()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    bool isSame = isa<triton::FuncOp>(parent) ||
                  (loop && value == loop.getInductionVar());
    return isSame ? value : Value();
  }
  if (Value copied = copy(result, axes))
    return copied;
  return form ? advance(value, *form, axes) : Value();
}

/// What depends on positions by multiples of them.
Value Neighbors::advance(Value value, const LinearForm &form,
                         const Axes &axes) {
  if (!positions.explain(form))
    return {};
  Location loc = value.getLoc();
  Type element = getElementTypeOrSelf(value.getType());
  bool isPointer = isa<triton::PointerType>(element);
  Type integer = isPointer ? b.getI64Type() : element;
  ScalarExpr sum = ScalarExpr::constant(0);
  Value step;
  auto emitted = [&](const ScalarExpr &number) {
    Value scalar = number.emit(b, loc, getFunction(b).getArguments());
    return castInteger(b, loc, scalar, integer);
  };
  for (size_t number : llvm::seq(positions.size())) {
    if (!isFar(number))
      continue;
    std::optional<ScalarExpr> coefficient =
        positions[number].coefficientIn(form, axes[number]);
    if (!coefficient)
      return {};
    sum = sum + *coefficient * ScalarExpr::constant(distance[number]);
    if (!moving[number] || coefficient->getConstant() == 0)
      continue;
    Value moved = arith::MulIOp::create(
        b, loc, castInteger(b, loc, moving[number], integer),
        emitted(*coefficient));
    step = step ? Value(arith::AddIOp::create(b, loc, step, moved)) : moved;
  }
  if (sum.getConstant() == 0 && !step)
    return value;
  Type type = withElementType(value.getType(), integer);
  if (!step && sum.getConstant()) {
    step = integerOf(b, loc, type, *sum.getConstant());
  } else {
    if (sum.getConstant() != 0)
      step = step ? Value(arith::AddIOp::create(b, loc, step, emitted(sum)))
                  : emitted(sum);
    step = splatTo(b, loc, step, type);
  }
  if (isPointer)
    return triton::AddPtrOp::create(b, loc, value.getType(), value, step);
  return arith::AddIOp::create(b, loc, value, step);
}

/// The axes of operand number `number` of an operation that does the same for
/// each lane; none if it does not.
static std::optional<Neighbors::Axes>
findOperandAxes(Operation *op, unsigned number, Neighbors::Axes axes) {
  if (isElementwise(op) || isa<triton::LoadOp>(op))
    return axes;
  if (auto dot = dyn_cast<triton::DotOp>(op)) {
    // Rows are lanes of the first factor, columns of the second one.
    unsigned rank = cast<RankedTensorType>(dot.getType()).getRank();
    for (std::optional<unsigned> &axis : axes)
      if (axis && ((number == 0 && *axis == rank - 1) ||
                   (number == 1 && *axis == rank - 2)))
        axis = std::nullopt;
    return axes;
  }
  if (!isa<triton::ReduceOp>(op) && !triton::AxisMap::ofMove(op))
    return std::nullopt;
  auto map = *triton::AxisMap::of(op->getOpOperand(number));
  for (std::optional<unsigned> &axis : axes)
    if (axis)
      axis = map.toOperand(*axis);
  return axes;
}

Value Neighbors::copy(OpResult result, const Axes &axes) {
  Operation *op = result.getOwner();
  auto load = dyn_cast<triton::LoadOp>(op);
  // Program ids and lanes that are used by themselves are not positions.
  if (op->getNumOperands() == 0 || mayWrite(op) ||
      !findOperandAxes(op, 0, axes) ||
      (load && (load.getIsVolatile() || mayAlias(load.getPtr(), written))))
    return {};
  bool isMoved = false;
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Value moved = get(operand.get(), *findOperandAxes(op, number, axes));
    if (!moved)
      return {};
    operands.push_back(moved);
    isMoved |= moved != operand.get();
  }
  for (Value used : getUsedValues(op))
    if (!llvm::is_contained(op->getOperands(), used) &&
        !matchPattern(used, m_Constant()))
      return {};
  if (!isMoved)
    return result;
  // Where no neighbour is, a divisor may be zero.
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) &&
      operands[1] != op->getOperand(1))
    return {};
  Location loc = op->getLoc();
  Value exists = load ? limit(loc, load.getType(), axes) : Value();
  if (exists && load.getMask())
    exists = arith::AndIOp::create(
        b, loc, exists,
        operands[load.getMaskMutable().begin()->getOperandNumber()]);
  Operation *copied = b.clone(*op);
  copied->setOperands(operands);
  dropHints(copied);
  loads += load != nullptr;
  if (exists)
    cast<triton::LoadOp>(copied).getMaskMutable().assign(exists);
  return copied->getResult(result.getResultNumber());
}
