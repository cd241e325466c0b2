//===- Emitter.cpp - Elementwise arithmetic, each once --------------------===//
#include "autodiff/Assembly/Emitter.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/TypeUtilities.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff::ptx;
using llvm::KnownBits;

Type Emitter::elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

unsigned Emitter::widthOf(Value value) {
  return elementOf(value).getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value Emitter::constant(const APInt &bits) {
  return create(
      arith::ConstantOp::getOperationName(), integer(bits.getBitWidth()), {},
      builder.getNamedAttr(
          "value", builder.getIntegerAttr(integer(bits.getBitWidth()), bits)));
}

Value Emitter::constant(FloatType type, APFloat number) {
  bool losesInfo;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return create(
      arith::ConstantOp::getOperationName(), type, {},
      builder.getNamedAttr("value", builder.getFloatAttr(type, number)));
}

std::optional<APInt> Emitter::getConstant(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getValue();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValue().bitcastToAPInt();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value Emitter::create(StringRef operation, Type element, ValueRange operands,
                      ArrayRef<NamedAttribute> attributes) {
  Type type = element;
  SmallVector<NamedAttribute> typed(attributes);
  if (auto tile = dyn_cast<RankedTensorType>(shape)) {
    auto tileType = tile.clone(element);
    type = tileType;
    // A constant is the same in all lanes.
    if (operation == arith::ConstantOp::getOperationName())
      typed = {builder.getNamedAttr(
          "value", DenseElementsAttr::get(tileType, attributes[0].getValue()))};
  }
  OperationState state(location, operation, operands, type, typed);
  Operation *op = builder.create(state);
  SmallVector<Value> folded;
  SmallVector<Operation *> constants;
  // Folding may also change the operation itself: constants move to the right.
  if (!op->hasTrait<OpTrait::ConstantLike>() &&
      succeeded(builder.tryFold(op, folded, &constants)) && !folded.empty()) {
    op->erase();
    emitted.insert_range(constants);
    return simplify(folded[0]);
  }
  unsigned hash = OperationEquivalence::computeHash(
      op, OperationEquivalence::directHashValue,
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
  for (Operation *other : byHash[hash])
    if (OperationEquivalence::isEquivalentTo(
            op, other, OperationEquivalence::exactValueMatch,
            /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations)) {
      op->erase();
      return other->getResult(0);
    }
  byHash[hash].push_back(op);
  emitted.insert(op);
  if (op->hasTrait<OpTrait::ConstantLike>())
    return op->getResult(0);
  return simplify(op->getResult(0));
}

/// If all bits are known, replaces the value by a constant that is emitted
/// here.
Value Emitter::simplify(Value value) {
  std::optional<APInt> bits = getConstant(value);
  if (auto type = dyn_cast<FloatType>(elementOf(value)))
    return bits ? constant(type, APFloat(type.getFloatSemantics(), *bits))
                : value;
  if (!isa<IntegerType>(elementOf(value)))
    return value;
  KnownBits sure = known(value);
  return sure.isConstant() ? constant(sure.getConstant()) : value;
}

SmallVector<Operation *> Emitter::removeUnused() {
  SmallVector<Operation *> used;
  for (Operation *op : llvm::reverse(emitted)) {
    if (op->use_empty())
      op->erase();
    else
      used.push_back(op);
  }
  std::reverse(used.begin(), used.end());
  emitted.clear();
  byHash.clear();
  knownBits.clear();
  return used;
}

Value Emitter::shl(Value a, unsigned bits) {
  unsigned width = widthOf(a);
  if (bits >= width)
    return constant(width, 0);
  return bits ? map<arith::ShLIOp>(a, constant(width, bits)) : a;
}

Value Emitter::shrUnsigned(Value a, unsigned bits) {
  unsigned width = widthOf(a);
  if (bits >= width)
    return constant(width, 0);
  return bits ? map<arith::ShRUIOp>(a, constant(width, bits)) : a;
}

Value Emitter::shrSigned(Value a, unsigned bits) {
  unsigned width = widthOf(a);
  bits = std::min(bits, width - 1);
  return bits ? map<arith::ShRSIOp>(a, constant(width, bits)) : a;
}

Value Emitter::resize(Value a, unsigned width, bool isSigned) {
  unsigned from = widthOf(a);
  if (from == width)
    return a;
  if (from > width)
    return make<arith::TruncIOp>(integer(width), a);
  return isSigned ? make<arith::ExtSIOp>(integer(width), a)
                  : make<arith::ExtUIOp>(integer(width), a);
}

Value Emitter::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return make<arith::CmpIOp>(
      integer(1), {a, b},
      builder.getNamedAttr(
          "predicate", arith::CmpIPredicateAttr::get(context(), predicate)));
}

Value Emitter::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return make<arith::CmpFOp>(
      integer(1), {a, b},
      {builder.getNamedAttr(
           "predicate", arith::CmpFPredicateAttr::get(context(), predicate)),
       builder.getNamedAttr("fastmath",
                            arith::FastMathFlagsAttr::get(
                                context(), arith::FastMathFlags::none))});
}

Value Emitter::select(Value condition, Value a, Value b) {
  if (a == b)
    return a;
  return make<arith::SelectOp>(elementOf(a), {condition, a, b});
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Value Emitter::toInteger(Value value) {
  if (!isFloat(value))
    return value;
  if (std::optional<APInt> bits = getConstant(value))
    return constant(*bits);
  return make<triton::BitcastOp>(integer(widthOf(value)), value);
}

Value Emitter::toFloat(Value value, FloatType type) {
  if (elementOf(value) == type)
    return value;
  if (std::optional<APInt> bits = getConstant(value))
    return constant(type, APFloat(type.getFloatSemantics(), *bits));
  return make<triton::BitcastOp>(type, toInteger(value));
}

KnownBits Emitter::known(Value value) {
  auto found = knownBits.find(value);
  if (found != knownBits.end())
    return found->second;
  KnownBits bits = compute(value);
  knownBits[value] = bits;
  return bits;
}

/// For a comparison or minimum with a positive constant, the constant, if the
/// other operand is not negative.
std::optional<APInt> Emitter::getBoundOf(Value floating) {
  Operation *op = floating.getDefiningOp();
  if (!isa_and_nonnull<arith::MinNumFOp, arith::CmpFOp>(op))
    return std::nullopt;
  std::optional<APInt> bound = getConstant(op->getOperand(1));
  auto bits = op->getOperand(0).getDefiningOp<triton::BitcastOp>();
  if (!bound || bound->isNegative() || !bits || isFloat(bits.getSrc()) ||
      !known(bits.getSrc()).isNonNegative())
    return std::nullopt;
  return bound;
}

KnownBits Emitter::compute(Value value) {
  KnownBits unknown(widthOf(value));
  if (std::optional<APInt> bits = getConstant(value))
    return KnownBits::makeConstant(*bits);
  Operation *op = value.getDefiningOp();
  // Values from outside were not emitted here, and may be anything.
  if (!op || !emitted.contains(op))
    return unknown;
  auto of = [&](unsigned operand) { return known(op->getOperand(operand)); };
  if (isa<arith::AndIOp>(op))
    return of(0) & of(1);
  if (isa<arith::OrIOp>(op))
    return of(0) | of(1);
  if (isa<arith::XOrIOp>(op))
    return of(0) ^ of(1);
  if (isa<arith::ShLIOp>(op))
    return KnownBits::shl(of(0), of(1));
  if (isa<arith::ShRUIOp>(op))
    return KnownBits::lshr(of(0), of(1));
  if (isa<arith::ShRSIOp>(op))
    return KnownBits::ashr(of(0), of(1));
  if (isa<arith::AddIOp>(op))
    return KnownBits::add(of(0), of(1));
  if (isa<arith::MulIOp>(op))
    return KnownBits::mul(of(0), of(1));
  if (isa<arith::ExtUIOp>(op))
    return of(0).zext(unknown.getBitWidth());
  if (isa<arith::ExtSIOp>(op))
    return of(0).sext(unknown.getBitWidth());
  if (isa<arith::TruncIOp>(op))
    return of(0).trunc(unknown.getBitWidth());
  if (auto cast = dyn_cast<triton::BitcastOp>(op)) {
    if (std::optional<APInt> bound = getBoundOf(cast.getSrc()))
      unknown.Zero.setHighBits(bound->countLeadingZeros());
    return unknown;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    KnownBits taken = of(1);
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (compare &&
        (compare.getPredicate() == arith::CmpFPredicate::OLT ||
         compare.getPredicate() == arith::CmpFPredicate::OLE) &&
        toInteger(compare.getLhs()) == select.getTrueValue())
      if (std::optional<APInt> bound = getBoundOf(select.getCondition()))
        taken.Zero.setHighBits(bound->countLeadingZeros());
    return taken.intersectWith(of(2));
  }
  return unknown;
}

//===----------------------------------------------------------------------===//
// Equality
//===----------------------------------------------------------------------===//

/// The constant of this type, or a tile of it, with these bits.
static Attribute numberOf(Type type, const APInt &bits) {
  Type element = getElementTypeOrSelf(type);
  Attribute number;
  if (auto floating = dyn_cast<FloatType>(element))
    number =
        FloatAttr::get(element, APFloat(floating.getFloatSemantics(), bits));
  else
    number = IntegerAttr::get(element, bits);
  if (auto tile = dyn_cast<RankedTensorType>(type))
    return DenseElementsAttr::get(tile, number);
  return number;
}

static APInt bitsOf(Attribute number) {
  if (auto splat = dyn_cast<DenseElementsAttr>(number))
    number = splat.getSplatValue<Attribute>();
  if (auto floating = dyn_cast<FloatAttr>(number))
    return floating.getValue().bitcastToAPInt();
  return cast<IntegerAttr>(number).getValue();
}

/// Evaluates `value`, given constants for the values in `known`; null if that
/// is not possible.
static Attribute evaluate(Value value,
                          llvm::DenseMap<Value, Attribute> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isMemoryEffectFree(op))
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    Attribute number = evaluate(operand, known);
    if (!number)
      return {};
    operands.push_back(number);
  }
  Attribute result;
  SmallVector<OpFoldResult> folded;
  if (isa<triton::BitcastOp>(op))
    result = numberOf(value.getType(), bitsOf(operands[0]));
  else if (succeeded(op->fold(operands, folded)) && !folded.empty())
    result = isa<Attribute>(folded[0])
                 ? cast<Attribute>(folded[0])
                 : evaluate(cast<Value>(folded[0]), known);
  return known[value] = result;
}

bool Emitter::areEqual(Value a, Value b, Value leaf) {
  constexpr unsigned kFewBits = 8;
  if (a == b)
    return true;
  if (!leaf || a.getType() != b.getType() || widthOf(leaf) > kFewBits)
    return false;
  for (unsigned bits = 0; bits < (1u << widthOf(leaf)); ++bits) {
    llvm::DenseMap<Value, Attribute> known;
    known[leaf] = numberOf(leaf.getType(), APInt(widthOf(leaf), bits));
    Attribute x = evaluate(a, known), y = evaluate(b, known);
    if (!x || !y || bitsOf(x) != bitsOf(y))
      return false;
  }
  return true;
}
