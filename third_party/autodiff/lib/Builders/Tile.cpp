//===- Tile.cpp - Arithmetic on tiles, written as formulas ----------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Dialect/Autodiff.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// `number`, in the element type of `type`, in every lane.
static Value uniform(OpBuilder &builder, Location loc, Type type,
                     TypedAttr number) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    number = DenseElementsAttr::get(tensor, Attribute(number));
  return arith::ConstantOp::create(builder, loc, number);
}

Value mlir::autodiff::constantOf(OpBuilder &builder, Location loc, Type type,
                                 double number) {
  return uniform(builder, loc, type,
                 builder.getFloatAttr(getElementTypeOrSelf(type), number));
}

Value mlir::autodiff::integerOf(OpBuilder &builder, Location loc, Type type,
                                int64_t number) {
  return uniform(builder, loc, type,
                 builder.getIntegerAttr(getElementTypeOrSelf(type), number));
}

Tile Tile::constant(double number) const {
  return like(constantOf(*builder, location, type(), number));
}

Tile mlir::autodiff::operator+(Tile a, Tile b) {
  return a.make<arith::AddFOp>(a, b);
}
Tile mlir::autodiff::operator-(Tile a, Tile b) {
  return a.make<arith::SubFOp>(a, b);
}
Tile mlir::autodiff::operator*(Tile a, Tile b) {
  return a.make<arith::MulFOp>(a, b);
}
Tile mlir::autodiff::operator/(Tile a, Tile b) {
  return a.make<arith::DivFOp>(a, b);
}
// TTIR has no negation that every Triton version lowers.
Tile mlir::autodiff::operator-(Tile a) { return 0.0 - a; }
Tile mlir::autodiff::operator+(Tile a, double b) { return a + a.constant(b); }
Tile mlir::autodiff::operator-(double a, Tile b) { return b.constant(a) - b; }
Tile mlir::autodiff::operator*(double a, Tile b) { return b.constant(a) * b; }

Tile mlir::autodiff::exp(Tile x) { return x.make<math::ExpOp>(x); }
Tile mlir::autodiff::log(Tile x) { return x.make<math::LogOp>(x); }
Tile mlir::autodiff::sqrt(Tile x) { return x.make<math::SqrtOp>(x); }
Tile mlir::autodiff::sin(Tile x) { return x.make<math::SinOp>(x); }
Tile mlir::autodiff::cos(Tile x) { return x.make<math::CosOp>(x); }

Tile mlir::autodiff::addInteger(Tile n, int64_t addend) {
  TypedAttr value =
      n.b().getIntegerAttr(getElementTypeOrSelf(n.type()), addend);
  if (auto tensor = dyn_cast<RankedTensorType>(n.type()))
    value = DenseElementsAttr::get(tensor, Attribute(value));
  Tile constant = n.like(arith::ConstantOp::create(n.b(), n.loc(), value));
  return n.make<arith::AddIOp>(n, constant);
}

Tile mlir::autodiff::toFloat(Tile n, Tile like) {
  Type type = withElementType(n.type(), getElementTypeOrSelf(like.type()));
  return n.like(arith::SIToFPOp::create(n.b(), n.loc(), type, n));
}

Value mlir::autodiff::compare(arith::CmpFPredicate predicate, Tile a, Tile b) {
  return arith::CmpFOp::create(a.b(), a.loc(), predicate, a, b);
}

Tile mlir::autodiff::where(Value condition, Tile a, Tile b) {
  return a.make<arith::SelectOp>(condition, a, b);
}

Value mlir::autodiff::findUnlessZero(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  bool isGiven = compare &&
                 compare.getPredicate() == arith::CmpFPredicate::OEQ &&
                 matchPattern(compare.getRhs(), m_AnyZeroFloat()) &&
                 matchPattern(select.getTrueValue(), m_AnyZeroFloat());
  return isGiven ? compare.getLhs() : Value();
}

Tile mlir::autodiff::unlessZero(Tile t, Tile product, Value x) {
  Operation *source = x.getDefiningOp();
  if ((source && isa<triton::SplatOp, arith::ConstantOp>(source)) ||
      findUnlessZero(product) == Value(t))
    return product;
  Tile zero = t.constant(0.0);
  Tile result =
      where(compare(arith::CmpFPredicate::OEQ, t, zero), zero, product);
  markUnlessZero(result);
  return result;
}

void mlir::autodiff::markUnlessZero(Value select) {
  Operation *op = select.getDefiningOp();
  op->setAttr(kUnlessZeroAttr, UnitAttr::get(op->getContext()));
}

Value mlir::autodiff::zeroOf(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc,
                                   cast<TypedAttr>(b.getZeroAttr(type)));
}

Value mlir::autodiff::sumOver(OpBuilder &builder, Location loc, Value tile,
                              unsigned axis) {
  return reduceOver<arith::AddFOp>(builder, loc, tile, axis);
}

Value mlir::autodiff::sumAll(OpBuilder &builder, Location loc, Value tile) {
  return reduceAll<arith::AddFOp>(builder, loc, tile);
}

Value mlir::autodiff::repeatAlong(OpBuilder &builder, Location loc, Value tile,
                                  unsigned axis, RankedTensorType type) {
  if (!isa<RankedTensorType>(tile.getType()))
    return triton::SplatOp::create(builder, loc, type, tile);
  Value expanded = triton::ExpandDimsOp::create(builder, loc, tile, axis);
  if (expanded.getType() == type)
    return expanded;
  return triton::BroadcastOp::create(builder, loc, type, expanded);
}

SmallVector<int32_t> mlir::autodiff::invertOrder(ArrayRef<int32_t> order) {
  SmallVector<int32_t> inverse(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    inverse[from] = to;
  return inverse;
}

void mlir::autodiff::dropHints(Operation *op) {
  for (StringRef hint : {"tt.divisibility", "tt.contiguity", "tt.constancy"})
    op->removeDiscardableAttr(hint);
}

Value mlir::autodiff::bothHold(OpBuilder &builder, Location loc, Value a,
                               Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

Value mlir::autodiff::oneHolds(OpBuilder &builder, Location loc,
                               ArrayRef<Value> conditions) {
  if (conditions.empty() || llvm::is_contained(conditions, Value()))
    return {};
  Value any = conditions.front();
  for (Value condition : conditions.drop_front())
    any = arith::OrIOp::create(builder, loc, any, condition);
  return any;
}

static arith::CmpFPredicate invertPredicate(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  constexpr std::pair<P, P> kOpposites[] = {
      {P::OEQ, P::UNE}, {P::OGT, P::ULE},
      {P::OGE, P::ULT}, {P::OLT, P::UGE},
      {P::OLE, P::UGT}, {P::ONE, P::UEQ},
      {P::ORD, P::UNO}, {P::AlwaysFalse, P::AlwaysTrue}};
  for (auto [one, other] : kOpposites) {
    if (predicate == one)
      return other;
    if (predicate == other)
      return one;
  }
  llvm_unreachable("a comparison of floats");
}

Value mlir::autodiff::negationOf(OpBuilder &b, Location loc, Value condition) {
  Operation *op = condition.getDefiningOp();
  if (auto integers = dyn_cast_if_present<arith::CmpIOp>(op))
    return arith::CmpIOp::create(
        b, loc, arith::invertPredicate(integers.getPredicate()),
        integers.getLhs(), integers.getRhs());
  if (auto floats = dyn_cast_if_present<arith::CmpFOp>(op))
    return arith::CmpFOp::create(b, loc, invertPredicate(floats.getPredicate()),
                                 floats.getLhs(), floats.getRhs());
  if (!isa_and_present<arith::AndIOp, arith::OrIOp>(op))
    return arith::XOrIOp::create(b, loc, condition,
                                 integerOf(b, loc, condition.getType(), 1));
  Value one = negationOf(b, loc, op->getOperand(0));
  Value other = negationOf(b, loc, op->getOperand(1));
  if (isa<arith::OrIOp>(op))
    return arith::AndIOp::create(b, loc, one, other);
  return arith::OrIOp::create(b, loc, one, other);
}

Value mlir::autodiff::repeatOver(OpBuilder &builder, Location loc, Value value,
                                 ArrayRef<unsigned> axes,
                                 ArrayRef<int64_t> shape) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (shape.empty())
    return type ? Value(triton::UnsplatOp::create(builder, loc, value)) : value;
  auto full =
      RankedTensorType::get(shape, getElementTypeOrSelf(value.getType()));
  if (!type)
    return triton::SplatOp::create(builder, loc, full, value);
  if (!llvm::is_sorted(axes)) {
    SmallVector<int64_t> lengths;
    for (unsigned axis : axes)
      lengths.push_back(shape[axis]);
    if (type.getShape() != ArrayRef<int64_t>(lengths))
      value = triton::ReshapeOp::create(
          builder, loc, RankedTensorType::get(lengths, type.getElementType()),
          value);
    auto order = llvm::to_vector_of<int32_t>(llvm::seq<size_t>(0, axes.size()));
    llvm::sort(order, [&](int32_t a, int32_t b) { return axes[a] < axes[b]; });
    SmallVector<unsigned> ascending(axes);
    llvm::sort(ascending);
    return repeatOver(builder, loc,
                      triton::TransOp::create(builder, loc, value, order),
                      ascending, shape);
  }
  SmallVector<int64_t> sizes(shape.size(), 1);
  for (unsigned axis : axes)
    sizes[axis] = shape[axis];
  if (type.getShape().size() == axes.size()) {
    for (unsigned axis = 0; axis < shape.size(); ++axis)
      if (!llvm::is_contained(axes, axis))
        value = triton::ExpandDimsOp::create(builder, loc, value, axis);
  } else if (type.getShape() != ArrayRef<int64_t>(sizes)) {
    value = triton::ReshapeOp::create(
        builder, loc, RankedTensorType::get(sizes, type.getElementType()),
        value);
  }
  if (value.getType() == full)
    return value;
  return triton::BroadcastOp::create(builder, loc, full, value);
}

Value mlir::autodiff::splatTo(OpBuilder &builder, Location loc, Value scalar,
                              Type type) {
  if (!isa<RankedTensorType>(type))
    return scalar;
  return triton::SplatOp::create(
      builder, loc, withElementType(type, scalar.getType()), scalar);
}

Type mlir::autodiff::withElementType(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

Value mlir::autodiff::castInteger(OpBuilder &builder, Location loc, Value value,
                                  Type element) {
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  unsigned to = element.getIntOrFloatBitWidth();
  Type type = withElementType(value.getType(), element);
  if (from < to)
    return arith::ExtSIOp::create(builder, loc, type, value);
  if (from > to)
    return arith::TruncIOp::create(builder, loc, type, value);
  return value;
}

Value mlir::autodiff::castFloat(OpBuilder &builder, Location loc, Value value,
                                Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  Type type = withElementType(value.getType(), element);
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = element.getIntOrFloatBitWidth();
  // 8-bit floats convert through Triton's own operation.
  if (fromWidth == 8)
    return triton::FpToFpOp::create(builder, loc, type, value);
  if (toWidth == 8)
    return triton::FpToFpOp::create(
        builder, loc, type, value,
        triton::RoundingModeAttr::get(builder.getContext(),
                                      triton::RoundingMode::RTNE));
  if (fromWidth < toWidth)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (fromWidth > toWidth)
    return arith::TruncFOp::create(builder, loc, type, value);
  // f16 and bf16 are converted through f32.
  Value wide = castFloat(builder, loc, value, builder.getF32Type());
  return castFloat(builder, loc, wide, element);
}
