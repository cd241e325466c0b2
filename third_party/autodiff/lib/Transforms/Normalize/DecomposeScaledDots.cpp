//===- DecomposeScaledDots.cpp - Microscaled products as plain ones -------===//
//
// The conversion is exact: an element of 8 bits or fewer times a power of two
// is a 16-bit float. Scales are along K, one for a group of elements, and may
// be floats themselves. In the scales of B, its columns come first and K last,
// as in those of A.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DECOMPOSESCALEDDOTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using triton::ScaleDotElemType;

namespace {
/// Emits the operands of one product.
class Dequantization {
public:
  explicit Dequantization(triton::DotScaledOp op)
      : b(op), loc(op.getLoc()),
        rank(cast<RankedTensorType>(op.getType()).getRank()) {}

  /// The operand's elements as float32; elements that share a byte are unpacked
  /// along `packedAxis`.
  Value elements(Value tile, ScaleDotElemType type, unsigned packedAxis);
  /// The scales of an operand, broadcast to its shape of `depth` columns.
  Value scales(Value tile, int64_t depth);
  /// The last two axes transposed.
  Value transposed(Value tile);

private:
  Value integer(Value like, int64_t number) {
    auto type = cast<RankedTensorType>(like.getType());
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            type, b.getIntegerAttr(type.getElementType(), number)));
  }
  template <typename OpT> Value apply(Value tile, int64_t number) {
    return OpT::create(b, loc, tile, integer(tile, number));
  }
  Value isEqual(Value tile, int64_t number) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, tile,
                                 integer(tile, number));
  }
  Value select(Value condition, Value a, Value c) {
    return arith::SelectOp::create(b, loc, condition, a, c);
  }
  Value widened(Value bytes) {
    return arith::ExtUIOp::create(
        b, loc, withElementType(bytes.getType(), b.getI32Type()), bytes);
  }
  Value asFloat(Value bits, Type element) {
    return triton::BitcastOp::create(
        b, loc, withElementType(bits.getType(), element), bits);
  }
  Value reshaped(Value tile, ArrayRef<int64_t> shape) {
    return triton::ReshapeOp::create(
        b, loc, cast<RankedTensorType>(tile.getType()).clone(shape), tile);
  }
  Value decodeFp4(Value nibbles);
  Value decodePower(Value exponents);
  Value unpack(Value bytes, unsigned axis);

  OpBuilder b;
  Location loc;
  unsigned rank;
};
} // namespace

/// A sign, two bits of exponent and one of mantissa: 0, ½, 1, 1½, 2, 3, 4, 6.
Value Dequantization::decodeFp4(Value nibbles) {
  constexpr int64_t half = 0x3F000000;
  Value magnitude = apply<arith::AndIOp>(nibbles, 7);
  Value normal =
      apply<arith::AddIOp>(apply<arith::ShLIOp>(magnitude, 22), half);
  Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        magnitude, integer(magnitude, 2));
  Value small = apply<arith::MulIOp>(magnitude, half);
  Value sign = apply<arith::ShLIOp>(apply<arith::ShRUIOp>(nibbles, 3), 31);
  return asFloat(
      arith::OrIOp::create(b, loc, select(isSmall, small, normal), sign),
      b.getF32Type());
}

/// 2^(n - 127); 255 is NaN.
Value Dequantization::decodePower(Value exponents) {
  Value wide = widened(exponents);
  Value bits = apply<arith::ShLIOp>(wide, 23);
  bits = select(isEqual(wide, 0), integer(wide, 0x400000), bits);
  bits = select(isEqual(wide, 255), integer(wide, 0x7FC00000), bits);
  return asFloat(bits, b.getF32Type());
}

/// The low half of a byte comes first.
Value Dequantization::unpack(Value bytes, unsigned axis) {
  Value wide = widened(bytes);
  Value low = decodeFp4(apply<arith::AndIOp>(wide, 15));
  Value high = decodeFp4(apply<arith::ShRUIOp>(wide, 4));
  Value pairs = triton::JoinOp::create(b, loc, low, high);
  SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(rank));
  order.insert(order.begin() + axis + 1, rank);
  if (axis + 1 < rank)
    pairs = triton::TransOp::create(b, loc, pairs, ArrayRef(order));
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(bytes.getType()).getShape());
  shape[axis] *= 2;
  return reshaped(pairs, shape);
}

Value Dequantization::elements(Value tile, ScaleDotElemType type,
                               unsigned packedAxis) {
  if (type == ScaleDotElemType::E2M1)
    return unpack(tile, packedAxis);
  if (getElementTypeOrSelf(tile.getType()).isInteger())
    tile = asFloat(tile, type == ScaleDotElemType::E4M3
                             ? Type(Float8E4M3FNType::get(b.getContext()))
                             : Type(Float8E5M2Type::get(b.getContext())));
  return castFloat(b, loc, tile, b.getF32Type());
}

Value Dequantization::scales(Value tile, int64_t depth) {
  tile = getElementTypeOrSelf(tile.getType()).isInteger()
             ? decodePower(tile)
             : castFloat(b, loc, tile, b.getF32Type());
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(depth / shape.back());
  Value repeated = repeatAlong(b, loc, tile, rank, type.clone(shape));
  shape.pop_back();
  shape.back() = depth;
  return reshaped(repeated, shape);
}

Value Dequantization::transposed(Value tile) {
  SmallVector<int32_t> order = llvm::to_vector(llvm::seq<int32_t>(rank));
  std::swap(order[rank - 2], order[rank - 1]);
  return triton::TransOp::create(b, loc, tile, ArrayRef(order));
}

static LogicalResult decompose(triton::DotScaledOp op) {
  for (ScaleDotElemType type : {op.getAElemType(), op.getBElemType()})
    if (type == ScaleDotElemType::E2M3 || type == ScaleDotElemType::E3M2)
      return op.emitError("microscaled products of 6-bit floats are not "
                          "supported; use e4m3, e5m2 or e2m1");
  OpBuilder b(op);
  Location loc = op.getLoc();
  unsigned rank = cast<RankedTensorType>(op.getType()).getRank();
  Dequantization values(op);
  Value lhs = values.elements(op.getA(), op.getAElemType(),
                              op.getLhsKPack() ? rank - 1 : rank - 2);
  Value rhs = values.elements(op.getB(), op.getBElemType(),
                              op.getRhsKPack() ? rank - 2 : rank - 1);
  int64_t depth = cast<RankedTensorType>(lhs.getType()).getShape().back();
  if (Value scale = op.getAScale())
    lhs = arith::MulFOp::create(b, loc, lhs, values.scales(scale, depth));
  if (Value scale = op.getBScale())
    rhs = arith::MulFOp::create(b, loc, rhs,
                                values.transposed(values.scales(scale, depth)));
  bool isHalf = op.getAElemType() == ScaleDotElemType::FP16 ||
                op.getBElemType() == ScaleDotElemType::FP16;
  Type element = isHalf ? Type(b.getF16Type()) : Type(b.getBF16Type());
  Value product = triton::DotOp::create(
      b, loc, op.getType(), castFloat(b, loc, lhs, element),
      castFloat(b, loc, rhs, element), op.getC(), triton::InputPrecision::IEEE,
      /*maxNumImpreciseAcc=*/0);
  op.getResult().replaceAllUsesWith(product);
  op.erase();
  return success();
}

namespace {
struct DecomposeScaledDots
    : autodiff::impl::DecomposeScaledDotsBase<DecomposeScaledDots> {
  void runOnOperation() override {
    WalkResult walk = getOperation().walk(
        [](triton::DotScaledOp op) { return WalkResult(decompose(op)); });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
