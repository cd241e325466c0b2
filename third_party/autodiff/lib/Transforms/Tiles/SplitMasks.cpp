//===- SplitMasks.cpp - Masks where they let everything through -----------===//
//
// Causal masks, windows and tails leave whole blocks as they are, but for those
// at an edge. Where a comparison of a number of the iteration with lanes of a
// tile selects, it holds in all lanes from some iteration on, or up to one. The
// loop is divided there: one for the iterations before, one without these
// comparisons, and one for those behind. Together they have the iterations of
// the loop, in order.
//
// Where one loop goes on with the sums of another, the kernel's author has done
// that. In loops in others it does not pay (docs/performance.md).
//
//===----------------------------------------------------------------------===//
#include "ProductSums.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPLITMASKS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Integers of an iteration
//===----------------------------------------------------------------------===//

namespace {
/// factor · (induction variable) + Σ coefficient · scalar + (low … high) in the
/// lanes of a tile; the scalars are the same in all iterations.
struct Lanes {
  int64_t factor = 0, low = 0, high = 0;
  SmallVector<std::pair<Value, int64_t>> scalars;

  static std::optional<Lanes> of(Value value, scf::ForOp loop);
  Lanes scaled(int64_t by) const;
  Lanes operator+(const Lanes &other) const;
};
} // namespace

Lanes Lanes::scaled(int64_t by) const {
  Lanes result{factor * by, low * by, high * by, scalars};
  if (by < 0)
    std::swap(result.low, result.high);
  for (auto &[scalar, coefficient] : result.scalars)
    coefficient *= by;
  return result;
}

Lanes Lanes::operator+(const Lanes &other) const {
  Lanes sum{factor + other.factor, low + other.low, high + other.high, scalars};
  for (auto &[scalar, coefficient] : other.scalars) {
    auto *known = llvm::find_if(sum.scalars, [&, value = scalar](auto &term) {
      return term.first == value;
    });
    if (known == sum.scalars.end())
      sum.scalars.push_back({scalar, coefficient});
    else
      known->second += coefficient;
  }
  return sum;
}

std::optional<Lanes> Lanes::of(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return Lanes{1};
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 32)
    return Lanes{0, number.getSExtValue(), number.getSExtValue()};
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return Lanes{0, 0, 0, {{value, 1}}};
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto range = dyn_cast<triton::MakeRangeOp>(op))
    return Lanes{0, range.getStart(), int64_t(range.getEnd()) - 1};
  if (isa<triton::SplatOp, triton::BroadcastOp, triton::ExpandDimsOp,
          triton::TransOp, arith::ExtSIOp>(op))
    return of(op->getOperand(0), loop);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Lanes> a = of(op->getOperand(0), loop);
  std::optional<Lanes> b = of(op->getOperand(1), loop);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (isa<arith::SubIOp>(op))
    return *a + b->scaled(-1);
  return matchPattern(op->getOperand(1), m_ConstantInt(&number))
             ? std::optional(a->scaled(b->low))
             : std::nullopt;
}

/// What is not negative in the lanes in which a comparison holds.
static std::optional<Lanes> getMargin(arith::CmpIOp compare, scf::ForOp loop) {
  std::optional<Lanes> a = Lanes::of(compare.getLhs(), loop);
  std::optional<Lanes> b = Lanes::of(compare.getRhs(), loop);
  if (!a || !b)
    return std::nullopt;
  Lanes one{0, 1, 1};
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return *b + (*a + one).scaled(-1);
  case arith::CmpIPredicate::sle:
    return *b + a->scaled(-1);
  case arith::CmpIPredicate::sgt:
    return *a + (*b + one).scaled(-1);
  case arith::CmpIPredicate::sge:
    return *a + b->scaled(-1);
  default:
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
/// A comparison, and what is not negative where it holds.
struct Mask {
  arith::CmpIOp compare;
  Lanes margin;
};

class Split {
public:
  explicit Split(scf::ForOp loop) : loop(loop), b(loop) {}
  bool find();
  void apply();

private:
  Value constant(int64_t number);
  template <typename OpT> Value make(Value x, Value y) {
    return OpT::create(b, loop.getLoc(), x, y);
  }
  Value widen(Value value);
  Value getUniform(const Lanes &margin);
  Value getIterations(Value from, int64_t slack);
  Value getStart(Value iteration);
  scf::ForOp append(Value lower, Value upper, ValueRange inits, bool masked);

  scf::ForOp loop;
  OpBuilder b;
  int64_t step = 0;
  SmallVector<Mask> masks;
};
} // namespace

/// Whether a condition decides what a selection takes.
static bool selects(Value condition) {
  return llvm::any_of(condition.getUsers(), [](Operation *user) {
    if (isa<arith::AndIOp, triton::BroadcastOp, triton::ExpandDimsOp>(user))
      return selects(user->getResult(0));
    auto select = dyn_cast<arith::SelectOp>(user);
    return select && isa<RankedTensorType>(select.getType());
  });
}

bool Split::find() {
  std::optional<int64_t> constant = getConstantIntValue(loop.getStep());
  bool hasProducts = !loop.getOps<triton::DotOp>().empty();
  bool isNested = !loop.getOps<LoopLikeOpInterface>().empty() ||
                  loop->getParentOfType<LoopLikeOpInterface>();
  if (!constant || *constant <= 0 || !hasProducts || isNested ||
      loop.getUnsignedCmp() || loop.getInductionVar().getType().isIndex())
    return false;
  step = *constant;
  for (auto compare : loop.getOps<arith::CmpIOp>())
    if (isa<RankedTensorType>(compare.getType()) &&
        selects(compare.getResult()))
      if (std::optional<Lanes> margin = getMargin(compare, loop))
        if (margin->factor != 0)
          masks.push_back({compare, *margin});
  return !masks.empty();
}

Value Split::constant(int64_t number) {
  return arith::ConstantIntOp::create(b, loop.getLoc(), number, 64);
}

/// An integer in 64 bits, in which bounds of iterations are computed.
Value Split::widen(Value value) {
  if (value.getType().isInteger(64))
    return value;
  return arith::ExtSIOp::create(b, loop.getLoc(), b.getI64Type(), value);
}

/// The least that a margin is in any lane, but for its induction variable.
Value Split::getUniform(const Lanes &margin) {
  Value sum = constant(margin.low);
  for (auto [scalar, coefficient] : margin.scalars)
    sum = make<arith::AddIOp>(
        sum, make<arith::MulIOp>(widen(scalar), constant(coefficient)));
  return sum;
}

/// How many iterations have induction variables below `from` (+ `slack`).
Value Split::getIterations(Value from, int64_t slack) {
  Value distance = make<arith::SubIOp>(from, widen(loop.getLowerBound()));
  distance = make<arith::AddIOp>(distance, constant(slack));
  distance = make<arith::MaxSIOp>(distance, constant(0));
  Value rounded = make<arith::AddIOp>(distance, constant(step - 1));
  return make<arith::DivSIOp>(rounded, constant(step));
}

/// The induction variable of an iteration.
Value Split::getStart(Value iteration) {
  Value start =
      make<arith::AddIOp>(widen(loop.getLowerBound()),
                          make<arith::MulIOp>(iteration, constant(step)));
  Type type = loop.getInductionVar().getType();
  return type.isInteger(64)
             ? start
             : arith::TruncIOp::create(b, loop.getLoc(), type, start);
}

scf::ForOp Split::append(Value lower, Value upper, ValueRange inits,
                         bool masked) {
  IRMapping map;
  auto part = cast<scf::ForOp>(b.clone(*loop, map));
  part.setLowerBound(lower);
  part.setUpperBound(upper);
  part.getInitArgsMutable().assign(inits);
  if (masked)
    return part;
  for (Mask &mask : masks) {
    Operation *compare = map.lookup(mask.compare.getOperation());
    OpBuilder inside(compare);
    auto type = cast<ShapedType>(mask.compare.getType());
    compare->replaceAllUsesWith(arith::ConstantOp::create(
        inside, compare->getLoc(), DenseElementsAttr::get(type, true)));
    compare->erase();
  }
  return part;
}

void Split::apply() {
  // Margins grow, or fall, with the induction variable: they are not negative
  // from one of its values on, or below another one.
  Value most = getIterations(widen(loop.getUpperBound()), 0);
  Value first, end;
  for (const Mask &mask : masks) {
    Value margin = getUniform(mask.margin);
    Value factor = constant(std::abs(mask.margin.factor));
    if (mask.margin.factor > 0) {
      Value from = make<arith::CeilDivSIOp>(
          make<arith::SubIOp>(constant(0), margin), factor);
      Value count = getIterations(from, 0);
      first = first ? make<arith::MaxSIOp>(first, count) : count;
    } else {
      Value last = make<arith::FloorDivSIOp>(margin, factor);
      Value count = getIterations(last, 1);
      end = end ? make<arith::MinSIOp>(end, count) : count;
    }
  }
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  SmallVector<Value> carried(loop.getInitArgs());
  if (first) {
    first = make<arith::MinSIOp>(first, most);
    Value start = getStart(first);
    carried = append(lower, start, carried, /*masked=*/true).getResults();
    lower = start;
  }
  if (end) {
    end = make<arith::MinSIOp>(end, most);
    end = make<arith::MaxSIOp>(end, first ? first : constant(0));
    Value start = getStart(end);
    carried = append(lower, start, carried, /*masked=*/false).getResults();
    carried = append(start, upper, carried, /*masked=*/true).getResults();
  } else {
    carried = append(lower, upper, carried, /*masked=*/false).getResults();
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// The loops that go on with sums of products, and those that these are of.
static SmallVector<scf::ForOp> findDivided(ArrayRef<scf::ForOp> loops) {
  SmallVector<scf::ForOp> found;
  for (scf::ForOp loop : loops)
    for (Value init : loop.getInitArgs())
      if (Operation *before = findProducts(init)) {
        found.push_back(loop);
        before->walk([&](scf::ForOp part) { found.push_back(part); });
      }
  return found;
}

namespace {
struct SplitMasks : autodiff::impl::SplitMasksBase<SplitMasks> {
  void runOnOperation() override {
    if (!isBackward(getOperation()))
      return;
    llvm::SetVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.insert(loop); });
    for (scf::ForOp loop : findDivided(loops.getArrayRef()))
      loops.remove(loop);
    for (scf::ForOp loop : loops)
      if (Split split(loop); split.find())
        split.apply();
  }
};
} // namespace
