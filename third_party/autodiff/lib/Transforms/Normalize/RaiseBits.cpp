//===- RaiseBits.cpp - Floats that are made of bits of floats -------------===//
//
// A cast of bits to a float is replaced where the bits are those of floats
// (BitReader.h): by a selection of them, by an absolute value or a negation, by
// an exchange of elements. Where bits are cleared or dropped, the value stays
// as the kernel computes it, and has the derivative of a cast.
//
//===----------------------------------------------------------------------===//
#include "BitReader.h"
#include "LaneTable.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Builders/FirstOrderStop.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_RAISEBITS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Casts of bits that more conditions decide stay as they are.
constexpr unsigned kMostDecided = 5;

/// The bits of a float type: fraction, exponent, sign.
static unsigned widthOf(FloatType type) { return type.getWidth(); }
static unsigned fractionOf(FloatType type) {
  return type.getFPMantissaWidth() - 1; // without the leading one
}
static unsigned exponentOf(FloatType type) {
  return widthOf(type) - 1 - fractionOf(type);
}

/// Whether the same exponent and leading bits of the fraction are about the
/// same number.
static bool areAlike(FloatType a, FloatType b) {
  return a == b || (a.isF32() && b.isBF16()) || (a.isBF16() && b.isF32()) ||
         (a.isF16() && isa<Float8E5M2Type>(b)) ||
         (isa<Float8E5M2Type>(a) && b.isF16());
}

namespace {
/// Finds the float that the bits of a cast are those of.
class Resolver {
public:
  Resolver(Operation *cast, BitReader &reader)
      : reader(reader), algebra(reader.algebra), cast(cast), b(cast),
        loc(cast->getLoc()), type(cast->getResult(0).getType()),
        element(llvm::cast<FloatType>(getElementTypeOrSelf(type))) {
    b.setInsertionPointAfter(cast);
  }

  /// Null if there is none; then `reason` says why.
  Value resolve(ArrayRef<Bit> bits, unsigned decided = 0);

  StringRef reason;
  /// What still uses the cast itself.
  llvm::SmallPtrSet<Operation *, 2> kept;

private:
  Value fail(StringRef why) {
    reason = why;
    return {};
  }
  std::optional<Atom> findCondition(ArrayRef<Bit> bits) const;
  Value emit(const Atom &atom);
  Value emit(Bit bit);
  Value ofIntegers(ArrayRef<Bit> bits);
  Value ofFloats(ArrayRef<Bit> bits);
  Value withSign(Bit sign, Value source, Value value);
  Value exchange(ArrayRef<Atom> atoms, bool &isExact);
  Value itself();
  Value withDerivativeOf(Value source);
  /// The negative zero gives zeros another sign, too.
  Value negation(Value value) {
    return arith::SubFOp::create(
        b, loc, constantOf(b, loc, value.getType(), -0.0), value);
  }

  BitReader &reader;
  BitAlgebra &algebra;
  Operation *cast;
  OpBuilder b;
  Location loc;
  Type type;
  FloatType element;
};
} // namespace

/// A bit as a bool.
Value Resolver::emit(const Atom &atom) {
  Value source = algebra.getSource(atom);
  Type from = getElementTypeOrSelf(source.getType());
  if (from.isInteger(1))
    return source;
  Type bits = withElementType(source.getType(),
                              b.getIntegerType(from.getIntOrFloatBitWidth()));
  if (isFloat(from))
    source = triton::BitcastOp::create(b, loc, bits, source);
  Value zero = integerOf(b, loc, bits, 0);
  if (atom.place + 1 == from.getIntOrFloatBitWidth())
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, source,
                                 zero);
  Value shifted = arith::ShRUIOp::create(b, loc, source,
                                         integerOf(b, loc, bits, atom.place));
  return arith::TruncIOp::create(b, loc, withElementType(bits, b.getI1Type()),
                                 shifted);
}

/// A sum of bits as a bool; it has atoms.
Value Resolver::emit(Bit bit) {
  const BitAlgebra::Node node = algebra[bit];
  Value sum;
  for (const Atom &atom : node.atoms) {
    Value next = emit(atom);
    sum = sum ? Value(arith::XOrIOp::create(b, loc, sum, next)) : next;
  }
  return node.one ? negationOf(b, loc, sum) : sum;
}

/// The value as the kernel computes it, through which no derivative flows.
Value Resolver::itself() {
  Value stopped = createFirstOrderStop(b, loc, cast->getResult(0));
  kept.insert(stopped.getDefiningOp());
  return stopped;
}

/// The value as the kernel computes it, which changes as `source` does.
Value Resolver::withDerivativeOf(Value source) {
  Type wide =
      withElementType(type, element.isF64() ? b.getF64Type() : b.getF32Type());
  auto same = CustomVjpOp::create(b, loc, TypeRange{type}, itself(), source,
                                  "a cast of bits", /*call=*/nullptr);
  OpBuilder::InsertionGuard guard(b);
  Block *pullback = b.createBlock(&same.getPullback(), {}, wide, loc);
  YieldOp::create(b, loc, pullback->getArgument(0));
  return same.getResult(0);
}

/// The condition to decide first: one that bits are chosen by, or that negates
/// bits of a fraction or an exponent.
std::optional<Atom> Resolver::findCondition(ArrayRef<Bit> bits) const {
  for (Bit bit : bits)
    if (std::optional<Atom> condition = algebra.findCondition(bit))
      return condition;
  if (!reader.hasFloats(bits.drop_back()))
    return std::nullopt;
  for (Bit bit : bits.drop_back())
    for (const Atom &atom : algebra[bit].atoms)
      if (algebra.mayDecide(atom) &&
          (algebra[bit].atoms.size() > 1 ||
           !isFloat(algebra.getSource(atom).getType())))
        return atom;
  return std::nullopt;
}

Value Resolver::resolve(ArrayRef<Bit> bits, unsigned decided) {
  std::optional<Atom> condition = findCondition(bits);
  if (!condition) {
    bool hasFloats = reader.hasFloats(bits.drop_back());
    return hasFloats ? ofFloats(bits) : ofIntegers(bits);
  }
  if (decided == kMostDecided)
    return fail("they are chosen by many conditions");
  auto decide = [&](bool one) {
    BitForm known;
    for (Bit bit : bits)
      known.push_back(algebra.given(bit, *condition, one));
    return resolve(known, decided + 1);
  };
  Value whenOne = decide(true);
  Value whenZero = whenOne ? decide(false) : Value();
  if (!whenZero || whenOne == whenZero)
    return whenZero;
  return arith::SelectOp::create(b, loc, emit(*condition), whenOne, whenZero);
}

/// Bits of integers that were not looked into: a cast of these bits.
Value Resolver::ofIntegers(ArrayRef<Bit> bits) {
  unsigned width = widthOf(element);
  Type integers = withElementType(type, b.getIntegerType(width));
  // Runs of bits that lie alike in their source, by source and distance.
  std::map<std::pair<unsigned, int>, APInt> runs;
  APInt ones(width, 0);
  for (auto [place, bit] : llvm::enumerate(bits.drop_back())) {
    for (const Atom &atom : algebra[bit].atoms)
      runs.try_emplace({atom.source, int(atom.place) - int(place)}, width, 0)
          .first->second.setBit(place);
    ones.setBitVal(place, algebra[bit].one);
  }
  auto constant = [&](Type type, const APInt &number) -> Value {
    TypedAttr attribute = IntegerAttr::get(getElementTypeOrSelf(type), number);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, number);
    return arith::ConstantOp::create(b, loc, attribute);
  };
  Value sum = constant(integers, ones);
  for (auto &[run, mask] : runs) {
    Value source = algebra.getSource({run.first, 0});
    Type from = source.getType();
    unsigned fromWidth = getElementTypeOrSelf(from).getIntOrFloatBitWidth();
    if (run.second > 0)
      source = arith::ShRUIOp::create(
          b, loc, source, constant(from, APInt(fromWidth, run.second)));
    if (fromWidth < width)
      source = arith::ExtUIOp::create(b, loc, integers, source);
    else if (fromWidth > width)
      source = arith::TruncIOp::create(b, loc, integers, source);
    if (run.second < 0)
      source = arith::ShLIOp::create(
          b, loc, source, constant(integers, APInt(width, -run.second)));
    source = arith::AndIOp::create(b, loc, source, constant(integers, mask));
    sum = arith::XOrIOp::create(b, loc, sum, source);
  }
  Value magnitude = triton::BitcastOp::create(b, loc, type, sum);
  const BitAlgebra::Node &sign = algebra[bits.back()];
  if (sign.atoms.empty())
    return sign.one ? negation(magnitude) : magnitude;
  return arith::SelectOp::create(b, loc, emit(bits.back()), negation(magnitude),
                                 magnitude);
}

/// `value`, which is `source` or a part of it, with another sign.
Value Resolver::withSign(Bit sign, Value source, Value value) {
  Bit own = algebra.atom(
      source,
      getElementTypeOrSelf(source.getType()).getIntOrFloatBitWidth() - 1);
  if (llvm::is_contained(algebra[sign].atoms, algebra[own].atoms[0]))
    sign = algebra.exclusive(sign, own);
  else
    value = math::AbsFOp::create(b, loc, value);
  const BitAlgebra::Node node = algebra[sign];
  if (node.atoms.empty())
    return node.one ? negation(value) : value;
  return arith::SelectOp::create(b, loc, emit(sign), negation(value), value);
}

/// A tile each of whose elements is an exclusive or of elements of some tiles,
/// all but one of which cancel. Null if the one is neither an element of one of
/// the tiles, at the same place, nor at that with other bits of its number.
Value Resolver::exchange(ArrayRef<Atom> atoms, bool &isExact) {
  std::vector<LaneTable> tables;
  for (const Atom &atom : atoms)
    tables.push_back(LaneTable::of(algebra.getSource(atom)));
  auto whole = dyn_cast<RankedTensorType>(type);
  if (!whole)
    return {};
  std::vector<int64_t> left;
  for (size_t lane : llvm::seq(tables[0].elements.size())) {
    SmallVector<int64_t> remaining;
    for (const LaneTable &table : tables) {
      if (table.root != tables[0].root)
        return {};
      int64_t held = table.elements[lane];
      auto same = llvm::find(remaining, held);
      if (same != remaining.end())
        remaining.erase(same);
      else if (held != LaneTable::kZero)
        remaining.push_back(held);
    }
    if (remaining.size() != 1)
      return {};
    left.push_back(remaining[0]);
  }
  isExact = llvm::all_of(tables, [](const LaneTable &t) { return t.isExact; });
  for (size_t number : llvm::seq(atoms.size())) {
    const LaneTable &table = tables[number];
    // lane ^ step holds what is left in `lane`.
    size_t step = llvm::find(table.elements, left[0]) - table.elements.begin();
    auto holds = [&](size_t lane) {
      size_t other = lane ^ step;
      return other < left.size() && table.elements[other] == left[lane];
    };
    if (!llvm::all_of(llvm::seq(left.size()), holds))
      continue;
    Value tile = algebra.getSource(atoms[number]);
    for (int64_t inner = 1; inner <= int64_t(step); inner *= 2) {
      if (!(step & inner))
        continue;
      int64_t outer = whole.getNumElements() / (2 * inner);
      auto pairs =
          RankedTensorType::get({outer, 2, inner}, whole.getElementType());
      tile = triton::ReshapeOp::create(b, loc, pairs, tile);
      tile = SwapOp::create(b, loc, pairs, tile, 1);
      tile = triton::ReshapeOp::create(b, loc, whole, tile);
    }
    return tile;
  }
  return {};
}

Value Resolver::ofFloats(ArrayRef<Bit> bits) {
  unsigned width = widthOf(element), top = width - 1;
  ArrayRef<Bit> magnitude = bits.drop_back();
  auto isConstant = [&](Bit bit) { return algebra[bit].atoms.empty(); };
  unsigned cleared =
      llvm::find_if_not(magnitude, isConstant) - magnitude.begin();
  ArrayRef<Atom> first = algebra[magnitude.back()].atoms;
  if (first.empty())
    return fail("their exponent is not that of a float");
  // All other bits are those of the same floats, at the same distance.
  int distance = int(first[0].place) - int(top - 1);
  for (unsigned place : llvm::seq(cleared, top)) {
    const BitAlgebra::Node &node = algebra[magnitude[place]];
    if (node.atoms.size() != first.size() || node.one)
      return fail("bits of a float are changed or set by others");
    for (auto [atom, like] : llvm::zip_equal(node.atoms, first))
      if (atom.source != like.source ||
          int(atom.place) != int(place) + distance)
        return fail("they are those of several floats, or of other places");
  }
  Value source = algebra.getSource(first[0]);
  Bit sign = bits.back();
  bool isExact = true;
  if (first.size() > 1) {
    // The sign, too, is an exclusive or of theirs.
    BitAlgebra::Node signs = algebra[sign];
    bool isWhole =
        !cleared && distance == 0 && !signs.one &&
        signs.atoms.size() == first.size() &&
        llvm::all_of(llvm::zip_equal(signs.atoms, first),
                     [&](const auto &pair) {
                       auto [atom, like] = pair;
                       return atom.source == like.source && atom.place == top;
                     }) &&
        source.getType() == type;
    SmallVector<Atom> atoms(first);
    source = isWhole ? exchange(atoms, isExact) : Value();
    if (!source)
      return fail("they are an exclusive or of several floats, of which not "
                  "all but one cancel");
    return isExact ? source : withDerivativeOf(source);
  }
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(source.getType()));
  if (!from || !areAlike(from, element) ||
      distance != int(widthOf(from)) - int(width))
    return fail("they are not at the places that they have in the float");
  unsigned kept = top - cleared, wide = exponentOf(element);
  if (kept <= wide) // sign and exponent: piecewise constant
    return itself();
  unsigned dropped = fractionOf(from) - std::min(fractionOf(from), kept - wide);
  bool areZeros = llvm::all_of(magnitude.take_front(cleared), [&](Bit bit) {
    return bit == algebra.constant(false);
  });
  Value value = withSign(sign, source, castFloat(b, loc, source, element));
  if (dropped == 0 && areZeros)
    return value;
  return withDerivativeOf(value);
}

/// The integers that `value` is computed from, itself first, and whether bits
/// of floats are among them.
static std::pair<llvm::SetVector<Value>, bool> findComputed(Value value) {
  llvm::SetVector<Value> found;
  found.insert(value);
  bool hasFloats = false;
  for (size_t next = 0; next < found.size(); ++next) {
    Operation *op = found[next].getDefiningOp();
    if (!op)
      op = cast<BlockArgument>(found[next]).getOwner()->getParentOp();
    if (isa<triton::FuncOp, triton::LoadOp>(op))
      continue;
    llvm::SetVector<Value> used;
    for (Region &region : op->getRegions())
      if (!region.empty())
        used.insert_range(region.front().getTerminator()->getOperands());
    used.insert_range(op->getOperands());
    for (Value operand : used)
      if (isa<IntegerType>(getElementTypeOrSelf(operand.getType())))
        found.insert(operand);
    hasFloats |= isa<triton::BitcastOp, arith::BitcastOp>(op) &&
                 isFloat(op->getOperand(0).getType());
  }
  return {found, hasFloats};
}

/// Where the bits of floats go into an operation that is not understood, on the
/// way to `integer`: why it is not, as a clause. Empty if no floats do.
static std::string explain(Value integer, BitReader &reader) {
  auto values = findComputed(integer).first;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<LoopLikeOpInterface, scf::IfOp, triton::ScanOp>(op) ||
        !findComputed(value).second)
      continue;
    if (isa<scf::IfOp>(op))
      return "a branch chooses them: use tl.where";
    if (isa<triton::ScanOp>(op))
      return "a scan combines them: scan the float, and what is packed with "
             "it, as a tuple";
    return "a loop carries them: let it carry the float, and what is packed "
           "with it, as values of their own";
  }
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    bool isOpaque = false;
    for (Bit bit : reader.read(value))
      reader.algebra.visitAtoms(bit, [&](const Atom &atom) {
        isOpaque |= reader.algebra.getSource(atom) == value;
      });
    // A comparison decides, but what it chooses are floats still.
    if (op && isOpaque && !getElementTypeOrSelf(value.getType()).isInteger(1) &&
        llvm::any_of(op->getOperands(), [&](Value operand) {
          return isa<IntegerType>(getElementTypeOrSelf(operand.getType())) &&
                 reader.hasFloats(reader.read(operand));
        }))
      return "'" + op->getName().getStringRef().str() + "' at " +
             spellPosition(op->getLoc()) + " computes with them";
  }
  return {};
}

namespace {
struct RaiseBits : autodiff::impl::RaiseBitsBase<RaiseBits> {
  void runOnOperation() override;
};
} // namespace

void RaiseBits::runOnOperation() {
  SmallVector<Operation *> casts;
  getOperation().walk([&](Operation *op) {
    if (isa<triton::BitcastOp, arith::BitcastOp>(op) &&
        isFloat(op->getResult(0).getType()) &&
        isa<IntegerType>(getElementTypeOrSelf(op->getOperand(0).getType())))
      casts.push_back(op);
  });
  BitReader reader;
  for (Operation *op : casts) {
    Value integer = op->getOperand(0);
    BitForm bits = reader.read(integer);
    if (!reader.hasFloats(bits)) {
      if (std::string reason = explain(integer, reader); !reason.empty())
        op->setAttr(kReasonAttr, StringAttr::get(&getContext(), reason));
      continue;
    }
    // Whatever else uses the bits may then use the float.
    if (Operation *source = integer.getDefiningOp())
      op->moveAfter(source);
    Resolver resolver(op, reader);
    Value result = op->getResult(0), resolved = resolver.resolve(bits);
    if (resolved) {
      result.replaceAllUsesExcept(resolved, resolver.kept);
      reader.setSource(integer, resolved);
    } else {
      std::string reason = explain(integer, reader);
      if (reason.empty())
        reason = resolver.reason;
      op->setAttr(kReasonAttr, StringAttr::get(&getContext(), reason));
    }
  }
}
