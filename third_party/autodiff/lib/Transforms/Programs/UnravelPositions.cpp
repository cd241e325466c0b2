//===- UnravelPositions.cpp - Tiles with an axis for each digit -----------===//
//
// A kernel that goes along a line of elements (Line.h) finds its index into a
// smaller tensor (a bias, a scale for each channel) by division: p / n, p % n.
// Many positions share an address there, but the address is no linear form in
// programs and lanes. In tiles with an axis for each digit of the position, the
// address depends on some axes, and its gradient is reduced over the others.
//
//===----------------------------------------------------------------------===//
#include "Independence.h"
#include "Line.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_UNRAVELPOSITIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("unravel-positions");
using Kind = ScalarExpr::Kind;

namespace {
/// A line whose tiles have an axis of one of `lengths` for each digit, the
/// lowest first. Triton puts threads along the first axis unless it sees that
/// another axis is contiguous in memory.
class Unraveled {
public:
  Unraveled(triton::FuncOp kernel, const Line &line, ScalarExpr programs,
            ArrayRef<int64_t> lengths);

  /// The number of programs along the axis of the line.
  ScalarExpr countPrograms() const;
  /// Numbers that must not be negative so that the whole line is covered.
  SmallVector<ScalarExpr> getAssumed() const;
  /// Rewrites the kernel. Operations that are not about positions stay.
  void rewrite();
  ArrayRef<triton::StoreOp> getStores() const { return stores; }

private:
  /// The order of digits in the grid, the fastest first.
  SmallVector<unsigned> orderDigits() const;
  ScalarExpr getLimit(unsigned digit) const {
    return chain.getLimit(digit, end);
  }
  ScalarExpr countPlaces(unsigned digit) const;

  RankedTensorType typeFor(Type type, Line::Digits digits) const;
  Value spread(OpBuilder &b, Value value, Line::Digits digits) const;
  Value shrink(OpBuilder &b, Value uniform) const;
  Value number(OpBuilder &b, Location loc, const ScalarExpr &expr, Type like);
  void emitDigits(OpBuilder &b);
  Value emitRange(OpBuilder &b, Value value);
  Value emitMask(OpBuilder &b, Operation *access);
  Value get(OpBuilder &b, Value value);
  void emit(OpBuilder &b, Operation *op);

  triton::FuncOp kernel;
  const Line &line;
  const DivisorChain &chain;
  ScalarExpr programs, end;
  ArrayRef<int64_t> lengths;
  SmallVector<Value> digits, inside;
  llvm::DenseMap<Value, Value> known;
  SmallVector<triton::StoreOp> stores;
};

struct UnravelPositions
    : autodiff::impl::UnravelPositionsBase<UnravelPositions> {
  using UnravelPositionsBase::UnravelPositionsBase;

  void transform() override;
  bool isWanted(const Line &line) const;
};
} // namespace

//===----------------------------------------------------------------------===//
// The programs
//===----------------------------------------------------------------------===//

/// The end of the line: where all stores end, or the end of the programs.
static ScalarExpr findEnd(const Line &line, const ScalarExpr &programs) {
  return line.getEnd().value_or(programs *
                                ScalarExpr::constant(line.getTile()));
}

Unraveled::Unraveled(triton::FuncOp kernel, const Line &line,
                     ScalarExpr programs, ArrayRef<int64_t> lengths)
    : kernel(kernel), line(line), chain(line.getChain()), programs(programs),
      end(findEnd(line, programs)), lengths(lengths) {}

ScalarExpr Unraveled::countPlaces(unsigned digit) const {
  ScalarExpr length = ScalarExpr::constant(lengths[digit]);
  ScalarExpr rounded =
      getLimit(digit) + ScalarExpr::constant(lengths[digit] - 1);
  return ScalarExpr::binary(Kind::Div, rounded, length);
}

ScalarExpr Unraveled::countPrograms() const {
  ScalarExpr count = ScalarExpr::constant(1);
  for (unsigned digit = 0; digit < chain.getLength(); ++digit)
    count = count * countPlaces(digit);
  return count;
}

SmallVector<ScalarExpr> Unraveled::getAssumed() const {
  ScalarExpr none = ScalarExpr::constant(0);
  SmallVector<ScalarExpr> assumed = chain.getAssumed(end);
  unsigned last = chain.getLength() - 1;
  if (line.getEnd())
    assumed.push_back(programs * ScalarExpr::constant(line.getTile()) - end);
  else
    // No mask limits the line.
    assumed.push_back(none -
                      ScalarExpr::binary(Kind::Rem, getLimit(last),
                                         ScalarExpr::constant(lengths[last])));
  int64_t limit = Target::getMostPrograms(line.getAxis());
  assumed.push_back(ScalarExpr::constant(std::numeric_limits<int32_t>::max()) -
                    end);
  assumed.push_back(ScalarExpr::constant(limit) - countPrograms());
  llvm::erase_if(assumed,
                 [](const ScalarExpr &n) { return n.isNotNegative(); });
  return assumed;
}

/// Digits that a gradient is summed over come last: neighbours in that order
/// are far apart in the numbers of programs, of which each may do several.
SmallVector<unsigned> Unraveled::orderDigits() const {
  Line::Digits kept = 0;
  for (Operation *op : line.getOps())
    if (isa<triton::LoadOp>(op) && line.getDigits(op) != line.getAllDigits())
      kept |= line.getDigits(op);
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(0, chain.getLength()));
  // A digit with a single value does not matter.
  auto rank = [&](unsigned digit) {
    if (countPlaces(digit) == ScalarExpr::constant(1))
      return 0;
    return kept >> digit & 1 ? 1 : 2;
  };
  llvm::stable_sort(order,
                    [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
  if (!line.getEnd()) // the count of places is not known in the kernel
    std::rotate(llvm::find(order, chain.getLength() - 1),
                llvm::find(order, chain.getLength() - 1) + 1, order.end());
  return order;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The type of tiles with the axes of some digits.
RankedTensorType Unraveled::typeFor(Type type, Line::Digits varying) const {
  SmallVector<int64_t> shape;
  for (unsigned digit = 0; digit < chain.getLength(); ++digit)
    shape.push_back(varying >> digit & 1 ? lengths[digit] : 1);
  return RankedTensorType::get(shape, getElementTypeOrSelf(type));
}

Value Unraveled::spread(OpBuilder &b, Value value, Line::Digits varying) const {
  RankedTensorType type = typeFor(value.getType(), varying);
  if (value.getType() == type)
    return value;
  return triton::BroadcastOp::create(b, value.getLoc(), type, value);
}

/// The scalar of a tile that is the same constant everywhere, as a tile without
/// long axes.
Value Unraveled::shrink(OpBuilder &b, Value uniform) const {
  RankedTensorType type = typeFor(uniform.getType(), 0);
  if (auto splat = uniform.getDefiningOp<triton::SplatOp>())
    return triton::SplatOp::create(b, uniform.getLoc(), type, splat.getSrc());
  auto constant = uniform.getDefiningOp<arith::ConstantOp>();
  auto element = cast<SplatElementsAttr>(constant.getValue());
  return arith::ConstantOp::create(
      b, uniform.getLoc(),
      DenseElementsAttr::get(type, element.getSplatValue<Attribute>()));
}

Value Unraveled::number(OpBuilder &b, Location loc, const ScalarExpr &expr,
                        Type like) {
  Value value = expr.emit(b, loc, kernel.getArguments());
  return castInteger(b, loc, value, getElementTypeOrSelf(like));
}

void Unraveled::emitDigits(OpBuilder &b) {
  Location loc = line.getDivision()->getLoc();
  SmallVector<Value> places(chain.getLength());
  SmallVector<unsigned> order = orderDigits();
  Value rest = triton::GetProgramIdOp::create(b, loc, line.getAxis());
  for (unsigned digit : ArrayRef(order).drop_back()) {
    Value count = number(b, loc, countPlaces(digit), rest.getType());
    places[digit] = arith::RemSIOp::create(b, loc, rest, count);
    rest = arith::DivSIOp::create(b, loc, rest, count);
  }
  places[order.back()] = rest;
  for (auto [digit, place] : llvm::enumerate(places)) {
    RankedTensorType type = typeFor(b.getI32Type(), 1u << digit);
    auto flat = RankedTensorType::get(lengths[digit], b.getI32Type());
    Value lanes = triton::MakeRangeOp::create(b, loc, flat, 0, lengths[digit]);
    lanes = repeatOver(b, loc, lanes, {static_cast<unsigned>(digit)},
                       type.getShape());
    Value size = integerOf(b, loc, b.getI32Type(), lengths[digit]);
    Value first = arith::MulIOp::create(b, loc, place, size);
    digits.push_back(
        arith::AddIOp::create(b, loc, splatTo(b, loc, first, type), lanes));
    bool isLast = digit + 1 == chain.getLength();
    if (lengths[digit] == 1 || (isLast && !line.getEnd()) ||
        mutation::isMade("unravel:no limits")) {
      inside.push_back(Value());
      continue;
    }
    Value limit = number(b, loc, getLimit(digit), type);
    inside.push_back(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           digits.back(),
                                           splatTo(b, loc, limit, type)));
  }
}

/// Emits the digits of a position that `value` consists of, as a sum.
Value Unraveled::emitRange(OpBuilder &b, Value value) {
  Location loc = value.getLoc();
  auto [first, last] = chain.getDigits(*line.getRange(value));
  Value sum;
  Line::Digits varying = 0;
  for (unsigned digit = first; digit < last; ++digit) {
    Value term = castInteger(b, loc, digits[digit],
                             getElementTypeOrSelf(value.getType()));
    Value weight =
        number(b, loc, chain.getWeight(digit, first), value.getType());
    term = arith::MulIOp::create(b, loc, term,
                                 splatTo(b, loc, weight, term.getType()));
    varying |= 1u << digit;
    sum = sum ? Value(arith::AddIOp::create(b, loc, spread(b, sum, varying),
                                            spread(b, term, varying)))
              : term;
  }
  return sum ? sum : integerOf(b, loc, typeFor(value.getType(), 0), 0);
}

/// `value` with the axes of the digits that it depends on.
Value Unraveled::get(OpBuilder &b, Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return value;
  Value &found = known[value];
  if (!found)
    found = line.getRange(value) ? emitRange(b, value) : shrink(b, value);
  return found;
}

/// Emits the rest of a mask, with the limits of the digits that matter.
Value Unraveled::emitMask(OpBuilder &b, Operation *access) {
  Location loc = access->getLoc();
  Line::Digits varying = line.getDigits(access);
  SmallVector<Value> conditions;
  for (Value condition : line.getConditions(access))
    conditions.push_back(get(b, condition));
  for (unsigned digit = 0; digit < chain.getLength(); ++digit)
    if (varying >> digit & 1 && inside[digit])
      conditions.push_back(inside[digit]);
  Value mask;
  for (Value condition : conditions) {
    condition = spread(b, condition, varying);
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, condition))
                : condition;
  }
  return mask;
}

void Unraveled::emit(OpBuilder &b, Operation *op) {
  Line::Digits varying = line.getDigits(op);
  Value oldMask = getMask(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isTile = isa<RankedTensorType>(operand.getType());
    operands.push_back(operand == oldMask || !isTile
                           ? operand
                           : spread(b, get(b, operand), varying));
  }
  bool isAccess = isa<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp>(op);
  Value mask = isAccess ? emitMask(b, op) : Value();
  Operation *copy = cloneOnto(
      b, op, operands, [&](Type type) { return typeFor(type, varying); });
  dropHints(copy);
  for (auto [result, copied] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    known[result] = copied;
  auto setMask = [&](auto access) {
    access.getMaskMutable().assign(mask ? ValueRange(mask) : ValueRange());
  };
  llvm::TypeSwitch<Operation *>(copy)
      .Case<triton::AtomicRMWOp>(setMask)
      .Case([&](triton::LoadOp load) {
        setMask(load);
        if (!mask)
          load.getOtherMutable().clear();
      })
      .Case([&](triton::StoreOp store) {
        setMask(store);
        stores.push_back(store);
      });
}

void Unraveled::rewrite() {
  OpBuilder b(kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  emitDigits(b);
  for (Operation *op : line.getOps()) {
    b.setInsertionPoint(op);
    emit(b, op);
  }
  for (Operation *op : line.getOps())
    if (mayWrite(op))
      op->erase();
  IRRewriter rewriter(kernel.getContext());
  (void)runRegionDCE(rewriter, kernel->getRegions());
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether a gradient is wanted to which several lanes contribute.
bool UnravelPositions::isWanted(const Line &line) const {
  return llvm::any_of(line.getTakenApart(), [&](BlockArgument argument) {
    return allWanted || llvm::is_contained(wanted, argument.getArgNumber());
  });
}

void UnravelPositions::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  if (primal->hasAttr(kOrderedAttr))
    return;
  OpBuilder b(primal);
  auto kernel = cast<triton::FuncOp>(b.clone(*primal));
  ReasonOr<Line> line = Line::match(kernel);
  if (!line) {
    // Other kernels do not divide positions.
    for (Operation &op : kernel.getBody().front())
      if (isa<arith::DivSIOp, arith::RemSIOp>(op) &&
          isa<RankedTensorType>(op.getResult(0).getType()))
        kRemarks.missed(&op, line.why());
    return kernel.erase();
  }
  Operation *division = line->getDivision();
  if (!isWanted(*line)) {
    kRemarks.missed(division,
                    "no gradient is wanted of what is loaded at parts of "
                    "positions");
    return kernel.erase();
  }
  RearrangedLaunch launch = RearrangedLaunch::of(module);
  ExprAttr &count = launch.grid[line->getAxis()];
  ScalarExpr programs(count);
  const DivisorChain &chain = line->getChain();
  if (lengths.size() != chain.getLength()) {
    SmallVector<ExprAttr> limits;
    for (unsigned digit = 0; digit < chain.getLength(); ++digit)
      limits.push_back(
          chain.getLimit(digit, findEnd(*line, programs)).get(&getContext()));
    PlanOp::getOrCreate(module).add<OfferOp>(
        UnravelAttr::get(&getContext(), limits, line->getTile()));
    kRemarks.passed(division,
                    "offered: a launch decides how long the axes of "
                    "tiles are that get {0} parts of positions",
                    limits.size());
    return kernel.erase();
  }
  SmallVector<int64_t> shape(lengths.begin(), lengths.end());
  Unraveled unraveled(kernel, *line, programs, shape);
  launch.assume(unraveled.getAssumed());
  count = unraveled.countPrograms().get(&getContext());
  launch.lengths = shape;
  launch.unraveled =
      b.getStringAttr(spellPosition(line->getDivision()->getLoc()));
  Location loc = division->getLoc();
  unraveled.rewrite();
  ReasonOr<SmallVector<CheckAttr>> checks = checkStores(unraveled.getStores());
  if (!checks) {
    kRemarks.missed({kernel, loc}, checks.why());
    return kernel.erase();
  }
  kRemarks.passed({kernel, loc},
                  "tiles have an axis for each of {0} parts of "
                  "positions",
                  lengths.size());
  llvm::append_range(launch.checks, *checks);
  primal.erase();
  launch.record(module);
}
