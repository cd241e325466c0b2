//===- UnseenRows.cpp - Sums of which no term is seen yet -----------------===//
#include "UnseenRows.h"

#include "Maxima.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using Special = Degree::Special;

static Degree unseen(ArrayRef<unsigned> axes) {
  return Degree().with(Special::NegativeInfinity).at(axes);
}

static Degree seen(Degree::Vector shift, ArrayRef<unsigned> axes) {
  return Degree::shifted(shift, axes).with(Special::Finite).at(axes);
}

/// Adds the facts that a value is −∞, and so are all values that it is the
/// maximum of.
static void seedUnseen(ScalingDegrees &degrees, Value value,
                       SmallVector<unsigned, 2> axes) {
  degrees.seed(value, unseen(axes));
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp, arith::ExtFOp>(op)) {
    for (Value operand : op->getOperands())
      seedUnseen(degrees, operand, axes);
    return;
  }
  auto reduce = dyn_cast_or_null<triton::ReduceOp>(op);
  if (!reduce || !isMaximum(value))
    return;
  for (unsigned &axis : axes)
    axis = *reduce.getAxisMap(0).toOperand(axis);
  seedUnseen(degrees, reduce.getSrcs()[0], axes);
}

namespace {
/// The facts about rows in one state: before an iteration, and after it.
struct Rows {
  Degree current, next;
  bool seesNothing;
};
} // namespace

static ScalingDegrees seed(const RescaledLoop &loop, const Rows &rows,
                           bool sumsAreZero) {
  ScalingDegrees degrees;
  if (rows.seesNothing)
    seedUnseen(degrees, loop.update->getResult(0), seedAxes(loop.getCurrent()));
  degrees.seed(loop.getCurrent(), rows.current);
  degrees.seed(loop.next, rows.next);
  scf::ForOp op = loop.loop;
  for (unsigned index = 0; index < op.getNumResults(); ++index) {
    if (index == loop.maximum)
      continue;
    auto sum = loop.accumulators.find(index);
    Degree degree;
    if (sum != loop.accumulators.end())
      degree = degree.at(sum->second);
    if (sumsAreZero || matchPattern(op.getInitArgs()[index], m_AnyZeroFloat()))
      degree = degree.with(Special::Zero);
    degrees.seed(op.getRegionIterArg(index), degree);
  }
  return degrees;
}

namespace {
/// Whether an iteration computes the same in rows of two states: its inputs are
/// zero in both, or are the same.
class Comparison {
public:
  Comparison(Value next, ScalingDegrees a, ScalingDegrees b)
      : next(next), a(std::move(a)), b(std::move(b)) {}
  bool isSame(Value value);

private:
  bool compute(Value value);

  Value next;
  ScalingDegrees a, b;
  llvm::DenseMap<Value, bool> known;
};
} // namespace

static bool isZero(ScalingDegrees &degrees, Value value) {
  std::optional<Degree> degree = degrees.of(value);
  return degree && degree->is(Special::Zero);
}

/// Looks through selections whose condition is known, and sums with zero.
static Value simplify(ScalingDegrees &degrees, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto select = dyn_cast<arith::SelectOp>(op);
    std::optional<bool> choice =
        select ? degrees.decide(select.getCondition()) : std::nullopt;
    bool isSum = isa<arith::AddFOp>(op);
    if (choice)
      value = *choice ? select.getTrueValue() : select.getFalseValue();
    else if (isSum && isZero(degrees, op->getOperand(0)))
      value = op->getOperand(1);
    else if (isSum && isZero(degrees, op->getOperand(1)))
      value = op->getOperand(0);
    else
      return value;
  }
  return value;
}

bool Comparison::compute(Value value) {
  if (isZero(a, value) && isZero(b, value))
    return true;
  Value x = simplify(a, value), y = simplify(b, value);
  if (x != y)
    return false;
  if (x == next || (a.isInvariant(x) && b.isInvariant(x)))
    return true;
  Operation *op = x.getDefiningOp();
  bool hasBranches = op && isa<RegionBranchOpInterface>(op);
  return op && !hasBranches &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isSame(operand); });
}

bool Comparison::isSame(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  bool same = compute(value);
  known[value] = same;
  return same;
}

static bool areZero(const RescaledLoop &loop, ScalingDegrees degrees) {
  return llvm::all_of(loop.accumulators, [&](auto &sum) {
    return isZero(degrees, scf::ForOp(loop.loop).getYieldedValues()[sum.first]);
  });
}

/// Whether a row may be unseen before the loop.
static bool mayStartUnseen(const RescaledLoop &candidate) {
  APFloat start(0.0);
  return !matchPattern(candidate.getStart(), m_ConstantFloat(&start)) ||
         !start.isFinite();
}

bool mlir::autodiff::mayStayUnseen(const RescaledLoop &candidate) {
  return candidate.next == candidate.update->getResult(0) &&
         mayStartUnseen(candidate);
}

bool mlir::autodiff::proveUnseenRows(const RescaledLoop &candidate) {
  if (!mayStartUnseen(candidate) ||
      mutation::isMade("rescale:rows that have seen nothing"))
    return true;
  SmallVector<unsigned, 2> axes = seedAxes(candidate.getCurrent());
  // The first term makes the same of the sum as it would of zero.
  Rows first{unseen(axes), seen({0, 1}, axes), /*seesNothing=*/false};
  Rows later{seen({1, 0}, axes), seen({0, 1}, axes), /*seesNothing=*/false};
  Comparison states(candidate.next, seed(candidate, first, false),
                    seed(candidate, later, true));
  scf::ForOp loop = candidate.loop;
  if (!llvm::all_of(candidate.accumulators, [&](auto &sum) {
        return states.isSame(loop.getYieldedValues()[sum.first]);
      }))
    return false;
  if (!candidate.isGuarded || !mayStayUnseen(candidate))
    return true;
  Rows before{unseen(axes), unseen(axes), /*seesNothing=*/true};
  Rows framed{seen({1, 0}, axes), seen({1, 0}, axes), /*seesNothing=*/true};
  return areZero(candidate, seed(candidate, before, false)) &&
         areZero(candidate, seed(candidate, framed, true));
}
