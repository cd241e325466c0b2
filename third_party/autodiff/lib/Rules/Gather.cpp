//===- Gather.cpp - Elements picked by index ------------------------------===//
//
// The adjoint of y_i = x_(index i) is x̄_j = Σ ȳ_i over the i whose index is j.
// Every j is compared with every index, in chunks of j that fit into a tile.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Differentiation.h"
#include "autodiff/Rules/RuleTable.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The most comparisons in one tile.
static constexpr int64_t kMostElements = 1 << 14;

namespace {
struct GatherReversal {
  triton::GatherOp op;
  Differentiation &in;
  OpBuilder &b = in.builder;
  Location loc = in.loc();
  unsigned axis = op.getAxis();

  /// `tile` with an axis of `size` at `at`, repeated along it.
  Value repeat(Value tile, unsigned at, int64_t size) {
    auto type = cast<RankedTensorType>(tile.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin() + at, size);
    return repeatAlong(b, loc, tile, at, type.clone(shape));
  }
  /// first, first + 1, … along dimension `at` of a tile of `shape`.
  Value count(Value first, ArrayRef<int64_t> shape, unsigned at) {
    Value range = triton::MakeRangeOp::create(b, loc, 0, shape[at]);
    range = arith::AddIOp::create(
        b, loc, range, triton::SplatOp::create(b, loc, range.getType(), first));
    return repeatOver(b, loc, range, {at}, shape);
  }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value indices();
  Value chunk(Value first, int64_t size, Value index, Value cotangent);
  Value run(Value cotangent);
};
} // namespace

/// The indices as i32, since no axis is longer.
Value GatherReversal::indices() {
  return castInteger(b, loc, in.primal(op.getIndices()), b.getI32Type());
}

/// x̄ at positions `first` to `first` + `size` - 1.
Value GatherReversal::chunk(Value first, int64_t size, Value index,
                            Value cotangent) {
  Value repeated = repeat(index, axis, size);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(repeated.getType()).getShape();
  Value picked = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       count(first, shape, axis), repeated);
  Tile contributions(b, loc, repeat(cotangent, axis, size));
  return sumOver(b, loc,
                 where(picked, contributions, contributions.constant(0.0)),
                 axis + 1);
}

Value GatherReversal::run(Value cotangent) {
  auto type =
      cast<RankedTensorType>(Differentiation::typeFor(op.getSrc().getType()));
  int64_t length = type.getDimSize(axis);
  int64_t size = length;
  while (size > 1 && size % 2 == 0 &&
         cast<RankedTensorType>(cotangent.getType()).getNumElements() * size >
             kMostElements)
    size /= 2;
  Value index = indices();
  if (size == length)
    return chunk(integer(0), size, index, cotangent);

  SmallVector<int64_t> split(type.getShape());
  split[axis] = size;
  split.insert(split.begin() + axis, length / size);
  Value zero = in.constant(type.clone(split), 0.0);
  auto loop = scf::ForOp::create(
      b, loc, integer(0), integer(length / size), integer(1), zero,
      [&](OpBuilder &, Location, Value number, ValueRange carried) {
        Value first = arith::MulIOp::create(b, loc, number, integer(size));
        Value row = chunk(first, size, index, cotangent);
        Value here = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq, count(integer(0), split, axis),
            triton::SplatOp::create(
                b, loc, RankedTensorType::get(split, b.getI32Type()), number));
        Value next = arith::SelectOp::create(
            b, loc, here, repeat(row, axis, length / size), carried[0]);
        scf::YieldOp::create(b, loc, next);
      });
  return triton::ReshapeOp::create(b, loc, type, loop.getResult(0));
}

static FailureOr<SmallVector<Value>> scatterBack(Operation *gather,
                                                 ArrayRef<Value> cotangents,
                                                 Differentiation &in) {
  auto op = cast<triton::GatherOp>(gather);
  auto from = cast<RankedTensorType>(op.getSrc().getType());
  auto to = cast<RankedTensorType>(op.getType());
  for (unsigned other = 0; other < from.getRank(); ++other)
    if (other != op.getAxis() && from.getDimSize(other) != to.getDimSize(other))
      return op.emitError("no derivative rule for a gather from a part of its "
                          "source; let the indices have the source's size "
                          "along every other axis");
  return SmallVector<Value>{GatherReversal{op, in}.run(cotangents[0]), Value()};
}

void mlir::autodiff::addGatherRules(RuleTable &table) {
  table.addLinear<triton::GatherOp>("x̄ⱼ += Σ ȳᵢ over the i whose index is j",
                                    {applyItself, scatterBack});
}
