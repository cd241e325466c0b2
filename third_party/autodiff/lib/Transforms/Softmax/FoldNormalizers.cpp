//===- FoldNormalizers.cpp - One value for a maximum and a sum ------------===//
//
// If a maximum m may be any other value (DropMaxima.cpp), and a sum of
// exponentials l = Σ e^(δ(x−m)) is relative to it, m is replaced by the value
// for which the sum is one: L = m + log(l)/δ. Then only L is saved instead of m
// and l. Quotients by the sum become plain exponentials, since e^(δ(x−m))/l is
// e^(δ(x−L)).
//
// Only the value of the sum is one: the sum still has its derivative, while L,
// like m before, has none.
//
// A row with an empty sum (l = 0) has L = −∞. No gradient may get lost there.
// So every store has to depend on log(l) or on a quotient by l, and nothing
// that depends on m may be compared. Then the forward stores NaN in such a row,
// or another sum of which the row is no part. Exponentials relative to L are
// zero (as if L were ∞). A sum that starts from one, with a maximum of −∞,
// stays one in such rows, and nothing has a gradient.
//
// L is rounded, by up to |L|·2⁻²⁴ in float32, where x−m may be exact. That only
// matters if x itself is exact. So x has to be computed, not loaded, nor loaded
// and scaled: a row with one large number would otherwise have errors. Nor may
// a mask select or add a large number: in a row that has nothing else, that is
// the maximum, and L loses the sum. (A mask that provably leaves something of
// each row may.)
//
//===----------------------------------------------------------------------===//
#include "Combination.h"
#include "Maxima.h"
#include "Reciprocals.h"
#include "autodiff/Analysis/Dependents.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LoopBounds.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Analysis/Sign.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Constants.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/Statement.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

namespace mlir::autodiff {
#define GEN_PASS_DEF_FOLDNORMALIZERS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Whether loops with the initial value `init` carry it until it is a sum.
static bool becomes(Value init, ResidualOp sum) {
  return llvm::any_of(init.getUses(), [&](OpOperand &use) {
    if (!isa<scf::ForOp, ResidualOp>(use.getOwner()))
      return false;
    SmallVector<Value> results = resultsOf(use);
    return !results.empty() &&
           (results[0] == sum.getResult() || becomes(results[0], sum));
  });
}

/// The quotients by `sum`, and by means of its logarithm.
static SmallVector<Value> findNormalized(Value sum) {
  SmallVector<Value> found, pending{sum};
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      Operation *op = use.getOwner();
      bool isDivisor = isa<arith::DivFOp, triton::PreciseDivFOp>(op) &&
                       use.getOperandNumber() == 1;
      if (isDivisor || isa<math::LogOp, math::Log2Op>(op))
        found.push_back(op->getResult(0));
      else if (isa<ResidualOp, arith::ExtFOp, triton::ReshapeOp>(op) ||
               triton::isRepetition(op) || op->hasAttr(kIfRunAttr))
        pending.push_back(op->getResult(0));
    }
  return found;
}

//===----------------------------------------------------------------------===//
// The theorem
//===----------------------------------------------------------------------===//

namespace {
/// A maximum, and a sum of exponentials relative to it.
struct Normalizer {
  ResidualOp maximum, sum;
  double delta = 0;
  /// The operations between the maximum and the sum that depend on the maximum.
  SmallVector<Operation *> moving;
  /// Residuals behind the sum that depend on it, too.
  SmallVector<ResidualOp> after;
};

/// Looks for such sums in a kernel.
class Search {
public:
  Search(ResidualOp maximum, ArrayRef<ResidualOp> maxima);
  std::optional<Normalizer> find();

private:
  bool movesNormalized();
  std::optional<double> getDelta(ResidualOp sum);
  bool isInEveryStore(ResidualOp sum);
  bool seesFirst(Value mask, Operation *op) const;
  bool mayPrevail(Value value, double largest) const;
  bool isOneNumber(Value factor, Operation *score) const;
  bool isRounded(Value exponent);
  bool collect(Normalizer &found);

  ResidualOp maximum;
  SmallVector<unsigned, 2> axes;
  ScalingDegrees degrees;
};
} // namespace

Search::Search(ResidualOp maximum, ArrayRef<ResidualOp> maxima)
    : maximum(maximum), axes(seedAxes(maximum.getResult())) {
  for (ResidualOp other : maxima)
    degrees.seed(other.getResult(), Degree());
  degrees.seed(maximum.getResult(), Degree::shifted({1, 0}, axes));
}

/// The name of a sum whose value is known to be one.
constexpr llvm::StringLiteral kSumOfOne = "a sum that is one";

/// Whether another sum, which is one because its maximum was replaced, would no
/// longer be one.
bool Search::movesNormalized() {
  auto kernel = maximum->getParentOfType<triton::FuncOp>();
  WalkResult walk = kernel.walk([&](CustomVjpOp op) {
    bool moves = op.getRule() == kSumOfOne &&
                 !llvm::all_of(op.getInputs(), [&](Value sum) {
                   return degrees.isInvariant(sum);
                 });
    return moves ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

/// δ if this is Σ e^(δ(x−m)), and each maximum has one sum.
std::optional<double> Search::getDelta(ResidualOp sum) {
  std::optional<Degree> degree = degrees.of(sum.getResult());
  if (sum.getType() != maximum.getType() || !degree || degree->isInvariant() ||
      !degree->isScale() || degree->axes != axes ||
      Signs().of(sum.getValue()) != Sign::Positive)
    return std::nullopt;
  return -degree->scale[0];
}

/// Whether a comparison only serves to make an initial value relative to
/// another maximum.
static bool changesFrame(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return user->hasAttr(kChangesFrameAttr);
  });
}

/// Whether a row with an empty sum stores NaN wherever the maximum matters.
bool Search::isInEveryStore(ResidualOp sum) {
  llvm::DenseSet<Operation *> normalized = findDependents(findNormalized(sum));
  return llvm::all_of(
      findDependents({maximum.getResult()}), [&](Operation *op) {
        if (isa<arith::CmpFOp>(op))
          return changesFrame(op) ||
                 llvm::all_of(op->getOperands(), [&](Value value) {
                   return degrees.isInvariant(value);
                 });
        bool stores = op->getNumRegions() == 0 && mayWrite(op);
        return !stores || normalized.contains(op) ||
               mutation::isMade("normalizers:of some stores");
      });
}

/// Whether a finite number may be used as −∞ in a mask.
static bool isLarge(Attribute constant, double limit) {
  std::optional<APFloat> number = getNumber(constant);
  return !number ||
         (!number->isInfinity() && abs(*number).convertToDouble() > limit &&
          !mutation::isMade("normalizers:masks of finite numbers"));
}

static bool isRepeated(Operation *op) {
  return isa<arith::ExtFOp, triton::FpToFpOp>(op) || triton::isMove(op);
}

/// Whether a mask includes the first lane of each row in the first iteration of
/// the loop around `op`: then each row has an unmasked value.
bool Search::seesFirst(Value mask, Operation *op) const {
  Constraints needed = constraintsOf(mask, From::Memory);
  auto loop = op->getParentOfType<scf::ForOp>();
  std::optional<LinearForm> lower;
  Constraints known;
  if (loop) {
    lower = LinearForm::of(loop.getLowerBound(), {}, From::Memory);
    // There is a first iteration.
    known = boundsOfRunning(loop, From::Memory);
  }
  if (!needed || (loop && (!lower || !known)))
    return false;
  return llvm::all_of(*needed, [&](const Constraint &constraint) {
    LinearForm form;
    for (const LinearForm::Term &term : constraint.form.terms) {
      const Dimension &dimension = term.dimension;
      bool isFirst = dimension.kind == Dimension::Kind::Axis &&
                     !llvm::is_contained(axes, dimension.axis);
      bool counts = loop && dimension.loop == loop;
      if (counts && dimension.kind == Dimension::Kind::Index)
        form = form + lower->scaled(term.coefficient);
      else if (!isFirst && !counts)
        form = form + LinearForm{ScalarExpr::constant(0), {term}};
    }
    Constraint there = lessThan(form, {constraint.bound, {}});
    auto isSame = [&](const Constraint &other) {
      return other.form == there.form && other.bound == there.bound;
    };
    return holdsAlways(there) || (known && llvm::any_of(*known, isSame));
  });
}

/// Whether a score, or a term of it, may be so large that other terms or a
/// logarithm are lost in rounding, while it is itself exact: it is loaded, or a
/// finite number above `largest`.
bool Search::mayPrevail(Value value, double largest) const {
  // Scores of this size have an error of a sixteenth, and so do exponentials.
  constexpr double kLargestPart = 1 << 20;
  Operation *op = value.getDefiningOp();
  if (!op || isa<triton::LoadOp>(op))
    return true;
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return isLarge(constant, largest);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    bool isSeen = matchPattern(select.getFalseValue(), m_Constant()) &&
                  seesFirst(select.getCondition(), select);
    return mayPrevail(select.getTrueValue(), largest) ||
           (!isSeen && mayPrevail(select.getFalseValue(), largest));
  }
  if (isRepeated(op))
    return mayPrevail(op->getOperand(0), largest);
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return mayPrevail(dot.getC(), kLargestPart);
  bool isScaled = isa<arith::MulFOp, arith::DivFOp>(op);
  return (isScaled || isa<arith::AddFOp, arith::SubFOp>(op)) &&
         llvm::any_of(op->getOperands(), [&](Value part) {
           return !(isScaled && isOneNumber(part, op)) &&
                  mayPrevail(part, kLargestPart);
         });
}

/// Whether a factor of a score is the same for the whole row.
bool Search::isOneNumber(Value factor, Operation *score) const {
  if (!isa<RankedTensorType>(factor.getType())) {
    auto loop = score->getParentOfType<LoopLikeOpInterface>();
    return !loop || loop.isDefinedOutsideOfLoop(factor);
  }
  std::optional<Repeated> repeated = matchRepeated(factor);
  return matchPattern(factor, m_Constant()) ||
         factor.getDefiningOp<triton::SplatOp>() ||
         (repeated && !llvm::is_contained(axes, repeated->axis));
}

/// Whether the value that an exponential takes relative to the maximum is
/// computed.
bool Search::isRounded(Value exponent) {
  constexpr double kLargestScore = 128;
  if (degrees.isInvariant(exponent))
    return !mayPrevail(exponent, kLargestScore);
  Operation *op = exponent.getDefiningOp();
  if (!op || isa<ResidualOp>(op))
    return true;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isFloat(operand.getType()) || isRounded(operand);
  });
}

/// Whether the initial value that is rescaled is one, relative to −∞. Unseen
/// rows still have a sum of one, and in others nothing of it is left.
static bool startsFromOne(Operation *change, ResidualOp sum) {
  auto distance = change->getOperand(1).getDefiningOp<arith::SubFOp>();
  APFloat start(0.0);
  if (!distance || !change->getOperand(0).getDefiningOp<arith::CmpFOp>() ||
      !matchPattern(distance.getLhs(), m_ConstantFloat(&start)) ||
      !(start.isInfinity() && start.isNegative()))
    return false;
  bool isFactor = false;
  for (Value value = change->getResult(0); value.hasOneUse();) {
    OpOperand &use = *value.getUses().begin();
    Operation *user = use.getOwner();
    if (isa<scf::ForOp>(user))
      return isFactor && becomes(value, sum);
    bool isScaled = false;
    if (isa<arith::MulFOp>(user)) {
      Value other = user->getOperand(1 - use.getOperandNumber());
      isScaled = isFactor ? matchPattern(other, m_OneFloat())
                          : matchPattern(other, m_Constant());
    }
    isFactor |= isa<math::ExpOp, math::Exp2Op>(user);
    if (!isScaled && !isa<math::ExpOp, math::Exp2Op>(user) &&
        !triton::isRepetition(user))
      return false;
    value = user->getResult(0);
  }
  return false;
}

/// Collects the operations that have to be computed again, relative to L.
bool Search::collect(Normalizer &found) {
  auto moves = [&](Operation *op) {
    return llvm::any_of(op->getResults(), [&](Value result) {
      return !degrees.isInvariant(result);
    });
  };
  for (Operation *op = maximum->getNextNode(); op != found.sum->getNextNode();
       op = op->getNextNode()) {
    WalkResult walk = op->walk([&](Operation *inner) {
      // Other initial values are rescaled on the assumption that L ≥ m.
      bool fits =
          !inner->hasAttr(kChangesFrameAttr) || startsFromOne(inner, found.sum);
      if (isa<math::ExpOp, math::Exp2Op>(inner))
        fits &= isRounded(inner->getOperand(0));
      return fits ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (mayWrite(op) || walk.wasInterrupted())
      return false;
    if (moves(op))
      found.moving.push_back(op);
  }
  for (Operation *op = found.sum->getNextNode(); op; op = op->getNextNode())
    if (auto residual = dyn_cast<ResidualOp>(op); residual && moves(op))
      found.after.push_back(residual);
  return true;
}

std::optional<Normalizer> Search::find() {
  if (!isa<Float32Type, Float64Type>(getElementTypeOrSelf(maximum.getType())) ||
      movesNormalized())
    return std::nullopt;
  for (Operation *op = maximum->getNextNode(); op; op = op->getNextNode()) {
    auto sum = dyn_cast<ResidualOp>(op);
    std::optional<double> delta = sum ? getDelta(sum) : std::nullopt;
    if (!delta || !isInEveryStore(sum))
      continue;
    Normalizer found{maximum, sum, *delta, {}, {}};
    if (collect(found))
      return found;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

static Value createScale(OpBuilder &b, const Normalizer &of, Value maximum,
                         Value sum) {
  return arith::AddFOp::create(b, sum.getLoc(), maximum,
                               createLog(b, sum, 1 / of.delta));
}

/// A residual of the user's kernel that is a multiple of L, and the multiple.
static std::optional<std::pair<ResidualOp, double>>
findMultiple(Normalizer of) {
  for (Operation *op = of.sum->getNextNode(); op; op = op->getNextNode()) {
    auto residual = dyn_cast<ResidualOp>(op);
    if (!residual || residual.getType() != of.sum.getType())
      continue;
    Combination found = Combination::of(residual.getValue());
    double a = found.factorOf(of.maximum.getValue());
    double b = found.factorOfLog(of.sum.getValue());
    if (found.size() == 2 && a != 0 &&
        areClose(b / a * of.delta, 1, residual.getType()))
      return std::pair(residual, a);
  }
  return std::nullopt;
}

/// Makes the user's kernel compute a multiple of L for the backward; returns
/// the multiple.
static std::optional<double> addToPrimal(triton::FuncOp primal,
                                         const Normalizer &found, unsigned id) {
  OpBuilder b(primal.getContext());
  auto mark = [&](Value value) {
    ResidualOp::create(b, value.getLoc(), value, id).setPinned(true);
  };
  // It may store one anyway.
  if (auto multiple = findMultiple(found))
    if (ResidualOp there = findResidual(primal, multiple->first.getId())) {
      b.setInsertionPoint(there);
      mark(there.getValue());
      return multiple->second;
    }
  Normalizer there = found;
  there.maximum = findResidual(primal, there.maximum.getId());
  there.sum = findResidual(primal, there.sum.getId());
  if (!there.maximum || !there.sum ||
      there.maximum->getBlock() != there.sum->getBlock())
    return std::nullopt;
  b.setInsertionPointAfter(
      there.maximum->isBeforeInBlock(there.sum) ? there.sum : there.maximum);
  mark(createScale(b, there, there.maximum.getResult(), there.sum.getResult()));
  return 1;
}

/// Replaces `sum` by one, but keeps its derivative.
static Value assumeOne(OpBuilder &b, Value sum) {
  Location loc = sum.getLoc();
  Value one = Tile(b, loc, sum).constant(1.0);
  auto known = CustomVjpOp::create(b, loc, TypeRange{sum.getType()}, one, sum,
                                   b.getStringAttr(kSumOfOne),
                                   /*call=*/nullptr);
  OpBuilder::InsertionGuard guard(b);
  Block *pullback =
      b.createBlock(&known.getPullback(), {}, sum.getType(), {loc});
  Value cotangent = pullback->getArgument(0);
  if (mutation::isMade("normalizers:sum without a derivative"))
    cotangent = Tile(b, loc, cotangent).constant(0.0);
  YieldOp::create(b, loc, cotangent);
  return known.getResult(0);
}

/// Subtracts `frame`, or broadcasts of it, wherever `value` is subtracted.
static void subtractFrame(Value value, Value frame,
                          llvm::function_ref<bool(OpOperand &)> isIncluded) {
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = use.getOwner();
    if (!isIncluded(use))
      continue;
    if (triton::isRepetition(user)) {
      OpBuilder b(user);
      IRMapping map;
      map.map(value, frame);
      subtractFrame(user->getResult(0), b.clone(*user, map)->getResult(0),
                    isIncluded);
    } else if (isa<arith::SubFOp>(user) && use.getOperandNumber() == 1 &&
               !mutation::isMade("normalizers:frames of rows without a sum")) {
      use.set(frame);
    }
  }
}

/// Uses L, which is a fraction of the residual `id`: that is `multiple` · L.
/// Returns the residual.
static ResidualOp rewrite(Normalizer &found, unsigned id, double multiple) {
  ResidualOp sum = found.sum;
  OpBuilder b(sum->getContext());
  b.setInsertionPointAfter(sum);
  Location loc = sum.getLoc();
  if (StringRef name = findVariableOf(sum.getValue()); !name.empty())
    loc = withVariable(loc, "log_" + name);
  Tile scale(b, loc, createScale(b, found, found.maximum.getResult(), sum));
  auto residual =
      ResidualOp::create(b, loc, multiple == 1 ? scale : multiple * scale, id);
  residual.setConstant(true);
  // For an empty sum, all exponentials relative to L are zero, and so are their
  // products with a zero upstream gradient.
  Tile L = scale.like(residual.getResult());
  if (multiple != 1 && !mutation::isMade("normalizers:multiple"))
    L = 1 / multiple * L;
  double inf = std::numeric_limits<double>::infinity();
  Value frame = where(compare(arith::CmpFPredicate::OEQ, L, L.constant(-inf)),
                      L.constant(inf), L);
  IRMapping map;
  map.map(found.maximum.getResult(), frame);
  // Values that the forward saves are relative to m, so these are no residuals
  // any more.
  for (Operation *op : found.moving)
    if (auto old = dyn_cast<ResidualOp>(op))
      map.map(old.getResult(), map.lookupOrDefault(old.getValue()));
    else
      b.clone(*op, map);
  Value one = assumeOne(b, map.lookup(sum.getResult()));
  map.map(sum.getResult(), one);
  Operation *last = one.getDefiningOp();
  auto isAfter = [&](OpOperand &use) {
    Operation *user = last->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return last->isBeforeInBlock(user);
  };
  // For a row with an empty sum, products with a power of L are zero.
  map.map(found.maximum.getResult(), Value(L));
  for (auto [from, to] : llvm::to_vector(map.getValueMap()))
    if (from.getParentBlock() == last->getBlock())
      from.replaceUsesWithIf(to, isAfter);
  subtractFrame(L, frame, isAfter);
  for (ResidualOp moved : found.after) {
    moved.getResult().replaceAllUsesWith(moved.getValue());
    moved.erase();
  }
  divideBy(one);
  return residual;
}

namespace {
struct FoldNormalizers : autodiff::impl::FoldNormalizersBase<FoldNormalizers> {
  void transform() override {
    triton::FuncOp primal = getPrimal(getOperation());
    triton::FuncOp kernel = getDifferentiated(getOperation());
    if (primal == kernel)
      return;
    unsigned nextId =
        std::max(getNextResidualId(primal), getNextResidualId(kernel));
    SmallVector<ResidualOp> maxima;
    kernel.walk([&](ResidualOp op) {
      if (op.getConstant())
        maxima.push_back(op);
    });
    for (ResidualOp &maximum : maxima)
      if (std::optional<Normalizer> found = Search(maximum, maxima).find())
        if (auto multiple = addToPrimal(primal, *found, nextId))
          maximum = rewrite(*found, nextId++, *multiple);
  }
};
} // namespace
