//===- BitReader.cpp - What the bits of an integer are made of ------------===//
#include "BitReader.h"
#include "LaneTable.h"

#include "autodiff/Builders/Axis.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>

using namespace mlir;
using namespace mlir::autodiff;

/// Functions of more conditions are not followed.
constexpr unsigned kMostConditions = 4;

unsigned BitReader::widthOf(Value value) {
  return getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
}

BitForm BitReader::asSource(Value value, unsigned width) {
  BitForm form;
  for (unsigned place : llvm::seq(width))
    form.push_back(algebra.atom(value, place));
  return form;
}

BitForm BitReader::repeat(bool one, unsigned width) {
  return BitForm(width, algebra.constant(one));
}

unsigned BitReader::countConditions(ArrayRef<Bit> form) const {
  std::set<Atom> conditions;
  for (Bit bit : form)
    algebra.visitConditions(bit,
                            [&](const Atom &atom) { conditions.insert(atom); });
  return conditions.size();
}

bool BitReader::hasFloats(ArrayRef<Bit> form) const {
  bool found = false;
  for (Bit bit : form)
    algebra.visitAtoms(bit, [&](const Atom &atom) {
      found |= isFloat(algebra.getSource(atom).getType());
    });
  return found;
}

BitForm BitReader::read(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  MaybeForm form;
  if (auto result = dyn_cast<OpResult>(value))
    form = compute(result);
  if (!form || countConditions(*form) > kMostConditions)
    form = withoutKnown(value, asSource(value));
  return known[value] = *form;
}

void BitReader::setSource(Value value, Value source) {
  known[value] = asSource(source);
}

/// The bits of a source, but for those that are the same in all lanes: those of
/// a range of positions.
BitForm BitReader::withoutKnown(Value value, BitForm form) {
  DenseElementsAttr numbers = findNumbers(value);
  if (!numbers || !isa<IntegerType>(numbers.getElementType()))
    return form;
  APInt zeros = APInt::getAllOnes(form.size()), ones = zeros;
  for (const APInt &number : numbers.getValues<APInt>()) {
    zeros &= ~number;
    ones &= number;
  }
  for (auto [place, bit] : llvm::enumerate(form))
    if (zeros[place] || ones[place])
      bit = algebra.constant(ones[place]);
  return form;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Bit by bit, and sums of bits that do not meet.
BitReader::MaybeForm BitReader::combine(Operation *op) {
  BitForm a = read(op->getOperand(0)), b = read(op->getOperand(1)), form;
  Bit zero = algebra.constant(false), one = algebra.constant(true);
  auto isBool = [&](ArrayRef<Bit> x) {
    return llvm::all_of(x.drop_front(), [&](Bit bit) { return bit == zero; });
  };
  bool isDifference = isa<arith::SubIOp>(op);
  // 0 − x and x − 1 for an x that is 0 or 1.
  if (isDifference && isBool(b) && a == repeat(false, a.size()))
    return BitForm(a.size(), b[0]);
  BitForm unit = repeat(false, a.size());
  unit[0] = one;
  if (isDifference && isBool(a) && b == unit)
    return BitForm(a.size(), algebra.negation(a[0]));
  if (isa<arith::AddIOp>(op))
    for (auto [x, minusOne] : {std::pair(a, b), std::pair(b, a)})
      if (isBool(x) && minusOne == repeat(true, a.size()))
        return BitForm(a.size(), algebra.negation(x[0]));
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    std::optional<Bit> bit;
    if (isa<arith::XOrIOp>(op))
      bit = algebra.exclusive(x, y);
    else if (isa<arith::AndIOp>(op))
      bit = algebra.both(x, y);
    else if (isa<arith::OrIOp>(op))
      bit = algebra.either(x, y);
    else if (isDifference && (x == one || y == zero || x == y))
      bit = algebra.exclusive(x, y);
    else if (isa<arith::AddIOp>(op) && algebra.both(x, y) == zero)
      bit = algebra.exclusive(x, y);
    if (!bit)
      return std::nullopt;
    form.push_back(*bit);
  }
  return form;
}

static std::optional<uint64_t> getNumber(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) ||
      number.getActiveBits() > 64)
    return std::nullopt;
  return number.getZExtValue();
}

/// Shifts, and unsigned divisions by powers of two.
BitReader::MaybeForm BitReader::shift(Operation *op) {
  std::optional<uint64_t> amount = getNumber(op->getOperand(1));
  unsigned width = widthOf(op->getResult(0));
  bool divides = isa<arith::DivUIOp, arith::RemUIOp>(op);
  if (!amount || (divides && !llvm::isPowerOf2_64(*amount)))
    return std::nullopt;
  unsigned places = divides ? llvm::Log2_64(*amount) : *amount;
  if (places >= width && !isa<arith::RemUIOp>(op))
    return std::nullopt;
  BitForm x = read(op->getOperand(0));
  Bit shiftedIn = isa<arith::ShRSIOp>(op) ? x.back() : algebra.constant(false);
  BitForm form(width, shiftedIn);
  for (unsigned place : llvm::seq(width)) {
    if (isa<arith::ShLIOp>(op) && place >= places)
      form[place] = x[place - places];
    else if (isa<arith::RemUIOp>(op) && place < places)
      form[place] = x[place];
    else if (!isa<arith::ShLIOp, arith::RemUIOp>(op) && place + places < width)
      form[place] = x[place + places];
  }
  return form;
}

/// A product with a power of two, or with a bool.
BitReader::MaybeForm BitReader::multiply(ArrayRef<Bit> a, ArrayRef<Bit> b) {
  Bit zero = algebra.constant(false);
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    auto isSet = [&](Bit bit) { return bit != zero; };
    if (llvm::count_if(x, isSet) != 1)
      continue;
    unsigned places = llvm::find_if(x, isSet) - x.begin();
    BitForm form(x.size(), zero);
    for (unsigned place : llvm::seq<unsigned>(places, x.size())) {
      std::optional<Bit> bit = algebra.both(x[places], y[place - places]);
      if (!bit)
        return std::nullopt;
      form[place] = *bit;
    }
    return form;
  }
  return std::nullopt;
}

BitReader::MaybeForm BitReader::areEqual(ArrayRef<Bit> a, ArrayRef<Bit> b) {
  Bit same = algebra.constant(true);
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    std::optional<Bit> bit =
        algebra.both(same, algebra.negation(algebra.exclusive(x, y)));
    if (!bit || countConditions(*bit) > kMostConditions)
      return std::nullopt;
    same = *bit;
  }
  return BitForm{same};
}

/// Comparisons that ask for bits: for equality, and for the sign.
BitReader::MaybeForm BitReader::compare(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  if (!isa<IntegerType>(getElementTypeOrSelf(op.getLhs().getType())))
    return std::nullopt;
  CmpIPredicate predicate = op.getPredicate();
  BitForm a = read(op.getLhs()), b = read(op.getRhs());
  if (predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne) {
    MaybeForm same = areEqual(a, b);
    if (same && predicate == CmpIPredicate::ne)
      same->front() = algebra.negation(same->front());
    return same;
  }
  bool isZero = b == repeat(false, b.size());
  bool isMinusOne = b == repeat(true, b.size());
  if ((isZero && predicate == CmpIPredicate::slt) ||
      (isMinusOne && predicate == CmpIPredicate::sle))
    return BitForm{a.back()};
  if ((isZero && predicate == CmpIPredicate::sge) ||
      (isMinusOne && predicate == CmpIPredicate::sgt))
    return BitForm{algebra.negation(a.back())};
  return std::nullopt;
}

BitReader::MaybeForm BitReader::compute(OpResult value) {
  Operation *op = value.getOwner();
  unsigned width = isa<IntegerType>(getElementTypeOrSelf(value.getType()))
                       ? widthOf(value)
                       : 0;
  if (!width)
    return std::nullopt;
  APInt number;
  if (matchPattern(op, m_ConstantInt(&number))) {
    BitForm form;
    for (unsigned place : llvm::seq(width))
      form.push_back(algebra.constant(number[place]));
    return form;
  }
  if (isa<triton::BitcastOp, arith::BitcastOp>(op)) {
    Value source = op->getOperand(0);
    if (isFloat(source.getType()))
      return asSource(source);
    return isa<IntegerType>(getElementTypeOrSelf(source.getType()))
               ? MaybeForm(read(source))
               : std::nullopt;
  }
  if (isa<arith::XOrIOp, arith::AndIOp, arith::OrIOp, arith::AddIOp,
          arith::SubIOp>(op))
    return combine(op);
  if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp,
          arith::RemUIOp>(op))
    return shift(op);
  if (isa<arith::MulIOp>(op))
    return multiply(read(op->getOperand(0)), read(op->getOperand(1)));
  if (isa<arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
    BitForm form = read(op->getOperand(0));
    form.resize(width, isa<arith::ExtSIOp>(op) ? form.back()
                                               : algebra.constant(false));
    return form;
  }
  if (auto compared = dyn_cast<arith::CmpIOp>(op))
    return compare(compared);
  if (auto selected = dyn_cast<arith::SelectOp>(op))
    return select(selected);
  if (isa<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op))
    return pickExtremum(op);
  if (triton::isMove(op) || isa<triton::GatherOp, triton::SplitOp>(op))
    return move(value);
  if (auto joined = dyn_cast<triton::JoinOp>(op))
    return join(joined);
  if (isa<triton::ReduceOp>(op))
    return reduce(value);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

Bit BitReader::readCondition(Value condition) {
  Bit bit = read(condition)[0];
  bool mayDecide = true;
  algebra.visitAtoms(
      bit, [&](const Atom &atom) { mayDecide &= algebra.mayDecide(atom); });
  return mayDecide ? bit : algebra.atom(condition, 0);
}

std::optional<Bit> BitReader::chooseSource(Operation *op, Value condition,
                                           const Atom &a, const Atom &b) {
  Value x = algebra.getSource(a), y = algebra.getSource(b);
  if (x.getType() != y.getType() || a.place != b.place)
    return std::nullopt;
  if (x == y)
    return algebra.atom(x, a.place);
  Value &chosen = emitted[{condition.getAsOpaquePointer(),
                           x.getAsOpaquePointer(), y.getAsOpaquePointer()}];
  if (!chosen) {
    OpBuilder b(op);
    chosen = arith::SelectOp::create(b, op->getLoc(), condition, x, y);
  }
  return algebra.atom(chosen, a.place);
}

/// Decides bools: what one chooses between becomes a function of chosen
/// sources.
Bit BitReader::collapse(Operation *op, Bit bit) {
  BitAlgebra::Node node = algebra[bit];
  if (!node.condition)
    return bit;
  Bit whenOne = collapse(op, node.whenOne);
  Bit whenZero = collapse(op, node.whenZero);
  Value condition = algebra.getSource(*node.condition);
  if (!isFloat(condition.getType())) {
    auto merge = [&](const Atom &a, const Atom &b) {
      return chooseSource(op, condition, a, b);
    };
    if (std::optional<Bit> merged = algebra.unify(whenOne, whenZero, merge))
      return *merged;
  }
  return *algebra.choose(algebra.atom(condition, node.condition->place),
                         whenOne, whenZero);
}

/// A choice stays one where nothing else has been chosen before: its bits may
/// cancel others. Otherwise sources are chosen.
BitReader::MaybeForm BitReader::choose(Operation *op, Value condition,
                                       ArrayRef<Bit> a, ArrayRef<Bit> b) {
  bool isFirst = llvm::none_of(llvm::concat<const Bit>(a, b), [&](Bit bit) {
    return algebra.findCondition(bit).has_value();
  });
  Bit decided = readCondition(condition);
  auto merge = [&](const Atom &x, const Atom &y) {
    return chooseSource(op, condition, x, y);
  };
  BitForm form;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    std::optional<Bit> bit;
    if (isFirst) {
      bit = algebra.choose(decided, x, y);
    } else {
      Bit one = collapse(op, x), other = collapse(op, y);
      bit = algebra.unify(one, other, merge);
      if (!bit)
        bit = algebra.choose(decided, one, other);
    }
    if (!bit)
      return std::nullopt;
    form.push_back(*bit);
  }
  return form;
}

BitReader::MaybeForm BitReader::select(arith::SelectOp op) {
  Value condition = op.getCondition();
  if (!isa<RankedTensorType>(condition.getType()) &&
      isa<RankedTensorType>(op.getType())) {
    Value &splat = emitted[{op.getOperation()}];
    if (!splat) {
      OpBuilder b(op);
      splat = splatTo(b, op.getLoc(), condition,
                      withElementType(op.getType(), b.getI1Type()));
    }
    condition = splat;
  }
  return choose(op, condition, read(op.getTrueValue()),
                read(op.getFalseValue()));
}

static arith::CmpIPredicate getPredicate(Operation *extremum) {
  using arith::CmpIPredicate;
  if (isa<arith::MaxSIOp>(extremum))
    return CmpIPredicate::sgt;
  if (isa<arith::MinSIOp>(extremum))
    return CmpIPredicate::slt;
  return isa<arith::MaxUIOp>(extremum) ? CmpIPredicate::ugt
                                       : CmpIPredicate::ult;
}

/// The larger or smaller of two integers.
BitReader::MaybeForm BitReader::pickExtremum(Operation *op) {
  BitForm a = read(op->getOperand(0)), b = read(op->getOperand(1));
  if (!hasFloats(a) && !hasFloats(b))
    return std::nullopt;
  OpBuilder builder(op);
  Value condition =
      arith::CmpIOp::create(builder, op->getLoc(), getPredicate(op),
                            op->getOperand(0), op->getOperand(1));
  return choose(op, condition, a, b);
}

//===----------------------------------------------------------------------===//
// Moves and reductions
//===----------------------------------------------------------------------===//

/// The same function of other sources, where each has one.
BitReader::MaybeForm
BitReader::rename(ArrayRef<Bit> form,
                  llvm::function_ref<Value(Value)> sourceOf) {
  llvm::DenseMap<Value, Value> renamed;
  BitForm result;
  for (Bit bit : form) {
    std::optional<Bit> other =
        algebra.rename(bit, [&](const Atom &atom) -> std::optional<Bit> {
          Value source = algebra.getSource(atom);
          auto [it, isNew] = renamed.try_emplace(source);
          if (isNew)
            it->second = sourceOf(source);
          if (!it->second)
            return std::nullopt;
          return algebra.atom(it->second, atom.place);
        });
    if (!other)
      return std::nullopt;
    result.push_back(*other);
  }
  return result;
}

BitReader::MaybeForm BitReader::move(OpResult result) {
  Operation *op = result.getOwner();
  return rename(read(op->getOperand(0)), [&](Value source) -> Value {
    OpBuilder b(op);
    Operation *copy = b.clone(*op);
    copy->setOperand(0, source);
    for (Value moved : copy->getResults())
      moved.setType(withElementType(moved.getType(),
                                    getElementTypeOrSelf(source.getType())));
    return copy->getResult(result.getResultNumber());
  });
}

/// Two tiles whose bits are the same function of their sources.
BitReader::MaybeForm BitReader::join(triton::JoinOp op) {
  auto merge = [&](const Atom &a, const Atom &b) -> std::optional<Bit> {
    Value x = algebra.getSource(a), y = algebra.getSource(b);
    if (x.getType() != y.getType() || a.place != b.place)
      return std::nullopt;
    Value &joined = emitted[{op.getOperation(), x.getAsOpaquePointer(),
                             y.getAsOpaquePointer()}];
    if (!joined) {
      OpBuilder builder(op);
      joined = triton::JoinOp::create(builder, op.getLoc(), x, y);
    }
    return algebra.atom(joined, a.place);
  };
  BitForm form;
  for (auto [x, y] : llvm::zip_equal(read(op.getLhs()), read(op.getRhs()))) {
    std::optional<Bit> bit = algebra.unify(x, y, merge);
    if (!bit)
      return std::nullopt;
    form.push_back(*bit);
  }
  return form;
}

/// A sum of integers that is one lane of the axis. Of floats, that is a sum
/// with negative zeros, which leave each number as it is.
BitReader::MaybeForm BitReader::pickLane(triton::ReduceOp op) {
  std::optional<PickedLane> picked = findPickedLane(op);
  if (!picked)
    return std::nullopt;
  return rename(read(picked->tile), [&](Value source) -> Value {
    auto type = cast<RankedTensorType>(source.getType());
    unsigned width = type.getElementTypeBitWidth();
    if (width < 16)
      return {};
    OpBuilder b(op);
    Location loc = op.getLoc();
    Value isPicked =
        Axis(b, loc, type.getShape(), op.getAxis()).isAt(picked->lane);
    bool isReal = isFloat(type);
    Value zero = isReal ? constantOf(b, loc, type, -0.0) : zeroOf(b, loc, type);
    Value only = arith::SelectOp::create(b, loc, isPicked, source, zero);
    return isReal ? sumOver(b, loc, only, op.getAxis())
                  : reduceOver<arith::AddIOp>(b, loc, only, op.getAxis());
  });
}

/// A reduction that chooses an element also chooses those of its sources. Of
/// equal elements it takes the first one.
BitReader::MaybeForm BitReader::reduce(OpResult result) {
  auto op = cast<triton::ReduceOp>(result.getOwner());
  Operation *combiner = op.getSingleCombiner();
  if (isa_and_nonnull<arith::AddIOp>(combiner))
    return pickLane(op);
  if (op.getSrcs().size() != 1 ||
      !isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
                       arith::MinUIOp>(combiner))
    return std::nullopt;
  Value tile = op.getSrcs()[0];
  BitForm form = read(tile);
  if (!hasFloats(form))
    return std::nullopt;
  auto type = cast<RankedTensorType>(tile.getType());
  OpBuilder b(op);
  Location loc = op.getLoc();
  llvm::SetVector<Value> sources;
  for (Bit bit : form)
    algebra.visitAtoms(bit, [&](const Atom &atom) {
      sources.insert(algebra.getSource(atom));
    });
  // A reduction of bools is none that Triton has.
  if (llvm::any_of(sources, [](Value source) {
        return getElementTypeOrSelf(source.getType()).isInteger(1);
      }))
    return std::nullopt;
  SmallVector<Value> tiles{
      tile, Axis(b, loc, type.getShape(), op.getAxis()).position()};
  llvm::append_range(tiles, sources);
  auto chooseOne = [&](OpBuilder &b, ValueRange left, ValueRange right) {
    using arith::CmpIPredicate;
    auto compare = [&](CmpIPredicate predicate, unsigned number) -> Value {
      return arith::CmpIOp::create(b, loc, predicate, left[number],
                                   right[number]);
    };
    Value isFirst = arith::AndIOp::create(b, loc, compare(CmpIPredicate::eq, 0),
                                          compare(CmpIPredicate::slt, 1));
    Value takesLeft = arith::OrIOp::create(
        b, loc, compare(getPredicate(combiner), 0), isFirst);
    SmallVector<Value> chosen;
    for (auto [x, y] : llvm::zip_equal(left, right))
      chosen.push_back(arith::SelectOp::create(b, loc, takesLeft, x, y));
    return chosen;
  };
  SmallVector<Value> chosen =
      reduceWith(b, loc, tiles, op.getAxis(), chooseOne);
  return rename(form, [&](Value source) {
    return chosen[2 + llvm::find(sources, source) - sources.begin()];
  });
}
