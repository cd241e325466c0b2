//===- Dot.cpp - Matrix products ------------------------------------------===//
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Builders/LanesAcross.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/CotangentRange.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Rules/RuleMutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Support/Target.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// 8-bit floats are too coarse for a tangent or cotangent: multiply in f16
/// instead.
static Type getFactorElement(triton::DotOp op) {
  Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
  return element.getIntOrFloatBitWidth() == 8
             ? Float16Type::get(op.getContext())
             : element;
}

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

/// The value that an operand is a reshaped or converted form of.
static Value stripShape(Value value) {
  while (value.getDefiningOp() && rearranges(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether all elements of a tile are zero or one: a product with it sums
/// elements of the other operand.
static bool selectsElements(Value value) {
  auto isZeroOrOne = [](Value side) {
    return matchPattern(side, m_AnyZeroFloat()) ||
           matchPattern(side, m_OneFloat());
  };
  value = stripShape(value);
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return isZeroOrOne(select.getTrueValue()) &&
           isZeroOrOne(select.getFalseValue());
  auto number = value.getDefiningOp<arith::UIToFPOp>();
  return number && getElementTypeOrSelf(number.getIn()).isInteger(1);
}

/// Whether elements of a tile have an exponential that is differentiated as a
/// factor.
static bool hasExponential(Value value, Differentiation &in) {
  value = stripShape(value);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
    return in.isActive(value);
  if (isa_and_nonnull<arith::MulFOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value factor) {
      return hasExponential(factor, in);
    });
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return hasExponential(select.getTrueValue(), in) ||
           hasExponential(select.getFalseValue(), in);
  return false;
}

/// The precision of float32 products of cotangents. TF32 keeps eleven bits,
/// which is what the user accepts for the forward's result. Some gradients need
/// more:
///
///  - A product with zeros and ones sums the other operand. Its adjoint is a
/// sum,
///    too, of terms that may cancel, and sums are expected in float32.
///  - For a decay in two factors, (q·e^(g-r))·(k·e^(r-g))ᵀ, the gradient of the
///    exponent g is the difference of those of q and k, which nearly cancels.
static triton::InputPrecision findPrecision(triton::DotOp op,
                                            Differentiation &in) {
  using triton::InputPrecision;
  InputPrecision own = op.getInputPrecision();
  Value a = op.getA(), b = op.getB();
  bool cancels = selectsElements(a) || selectsElements(b) ||
                 (hasExponential(a, in) && hasExponential(b, in));
  if (own != InputPrecision::TF32 || !cancels ||
      mutation::isMade("dot:the forward's precision"))
    return own;
  // Three TF32 products: of the rounded operands, and of each rounding error
  // with the other operand.
  return Target::of(op->getParentOfType<triton::FuncOp>()).isNvidia()
             ? InputPrecision::TF32x3
             : InputPrecision::IEEE;
}

/// lhs·rhs + sum, in the precision of `op`. Half precision converted to float32
/// is exact in TF32.
static Value multiply(triton::DotOp op, Value lhs, Value rhs, Value sum,
                      Differentiation &in) {
  Type element = getElementTypeOrSelf(lhs);
  bool isWidened =
      element.isF32() && getElementTypeOrSelf(op.getA()) != element;
  return triton::DotOp::create(
      in.builder, in.loc(), sum.getType(), lhs, rhs, sum,
      isWidened ? triton::InputPrecision::TF32 : findPrecision(op, in),
      op.getMaxNumImpreciseAcc());
}

namespace {
/// D = A·B + C: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄. Sums are in the adjoint's
/// type, operands in a type whose range suits cotangents.
struct DotReversal {
  triton::DotOp op;
  Adjoint &adjoint;
  OpBuilder &b = adjoint.builder;
  Type element = findElement();

  Value transposed(Value tile) {
    unsigned rank = cast<RankedTensorType>(tile.getType()).getRank();
    SmallVector<int32_t> order(rank);
    for (unsigned axis = 0; axis < rank; ++axis)
      order[axis] = axis;
    std::swap(order[rank - 1], order[rank - 2]);
    return triton::TransOp::create(b, adjoint.loc(), tile,
                                   ArrayRef<int32_t>(order));
  }

  /// The forward's type, unless half precision has too small a range.
  Type findElement() {
    Type element = getFactorElement(op);
    bool isTooSmall =
        element.isF16() && mayLeaveHalf(op.getResult(), adjoint.activity);
    return isTooSmall ? b.getF32Type() : element;
  }

  Value operand(Value value) {
    return castFloat(b, adjoint.loc(), value, element);
  }

  /// The forward's value of an operand, as a factor of the other operand's
  /// adjoint.
  struct Factor {
    Value tile;
    Value live; ///< of the product, which counts there only; null: everywhere
  };

  /// Sets the factor to zero in lanes that are not live, since the product sums
  /// over them. If all lanes along an axis are live or none is, the product's
  /// result is masked instead: that needs no second copy of an operand in
  /// shared memory.
  Factor factor(OpOperand &use, Value cotangent) {
    Value tile = operand(adjoint.primal(use.get()));
    if (adjoint.isFiniteElsewhere(use.get()) ||
        mutation::isMade("dot:rows without a cotangent"))
      return {tile};
    auto type = cast<RankedTensorType>(tile.getType());
    Tile factor(b, adjoint.loc(), tile);
    auto [live, isExact] = emitLanes(adjoint, adjoint.lanes.through(use), type);
    // The axis that the forward's product sums over, and the one that the
    // adjoint's product sums over, which this operand lacks.
    unsigned axis = type.getRank() - 1 - use.getOperandNumber();
    unsigned summed = type.getRank() - 2 + use.getOperandNumber();
    if (live && isExact && isUniformAlong(live, summed))
      if (Value first = getFirstLane(b, live, summed)) {
        Type product = op.getOperand(1 - use.getOperandNumber()).getType();
        return {tile, repeatAlong(b, adjoint.loc(), first, axis,
                                  cast<RankedTensorType>(product).clone(
                                      b.getI1Type()))};
      }
    if (!isExact) {
      Value rows = findNonZeroAcross(b, adjoint.loc(), cotangent, axis);
      rows =
          repeatAlong(b, adjoint.loc(), rows, axis, type.clone(b.getI1Type()));
      live = bothHold(b, adjoint.loc(), live, rows);
    }
    if (!live)
      return {tile};
    // The selection is done before rounding, as for other values.
    auto rounded = tile.getDefiningOp<arith::TruncFOp>();
    Tile exact = rounded ? factor.like(rounded.getIn()) : factor;
    Value kept = where(live, exact, exact.constant(0.0));
    return {rounded ? castFloat(b, adjoint.loc(), kept, type.getElementType())
                    : kept};
  }

  void accumulateProduct(Value into, Value lhs, Value rhs, Value live) {
    mutation::inContribution(b, adjoint.loc(), into, lhs);
    Value zero = adjoint.constant(into.getType(), 0.0);
    Value sum = live ? Value() : adjoint.get(into);
    Value product = multiply(op, lhs, rhs, sum ? sum : zero, adjoint);
    if (!live)
      return adjoint.set(into, product);
    adjoint.add(into,
                arith::SelectOp::create(b, adjoint.loc(), live, product, zero));
  }

  void run(Value cotangent) {
    adjoint.add(op.getC(), cotangent);
    if (!adjoint.isActive(op.getA()) && !adjoint.isActive(op.getB()))
      return;
    Value d = operand(cotangent);
    if (adjoint.isActive(op.getA())) {
      auto [tile, live] = factor(op.getBMutable(), cotangent);
      accumulateProduct(op.getA(), d, transposed(tile), live);
    }
    if (adjoint.isActive(op.getB())) {
      auto [tile, live] = factor(op.getAMutable(), cotangent);
      accumulateProduct(op.getB(), transposed(tile), d, live);
    }
  }
};
} // namespace

static LogicalResult pullBack(triton::DotOp op, Adjoint &adjoint) {
  if (Value cotangent = adjoint.get(op.getResult()))
    DotReversal{op, adjoint}.run(cotangent);
  return success();
}

/// Ḋ = Ȧ·B + A·Ḃ + Ċ, all in one accumulator.
static LogicalResult push(triton::DotOp op, Tangents &tangents) {
  auto factor = [&](Value value) {
    return castFloat(tangents.builder, tangents.loc(), value,
                     getFactorElement(op));
  };
  Value sum = tangents.getOrZero(op.getC());
  if (Value tangent = tangents.get(op.getA()))
    sum = multiply(op, factor(tangent), factor(tangents.primal(op.getB())), sum,
                   tangents);
  if (Value tangent = tangents.get(op.getB()))
    sum = multiply(op, factor(tangents.primal(op.getA())), factor(tangent), sum,
                   tangents);
  tangents.add(op.getResult(), sum);
  return success();
}

void mlir::autodiff::addDotRules(RuleTable &table) {
  table.add<triton::DotOp>("Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄", pullBack, push);
}
