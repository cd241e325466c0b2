//===- Dot.cpp - Matrix products ------------------------------------------===//
//
// Operands are converted to the accumulator's type when they are built, so that
// products are exact. A block of the result stays in vector registers while the
// innermost loop runs over k. Each step multiplies one element of each of the
// block's rows of `a` by a vector of a row of `b`.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Numerics.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

Value Lowering::getTensorAs(Value tile, Type elementType, Value destination) {
  RankedTensorType type = asTile(tile.getType());
  Type from = type.getElementType();
  if (from == elementType)
    return getTensor(tile, destination);
  Location loc = tile.getLoc();
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
    Value value = Element(*this, b).get(tile, indices);
    if (auto real = dyn_cast<FloatType>(from))
      value = convertFloat(b, loc, value, real, cast<FloatType>(elementType));
    else
      value = arith::ExtSIOp::create(b, loc, elementType, value);
    return SmallVector<Value>{value};
  };
  return generate(loc, RankedTensorType::get(type.getShape(), elementType), {},
                  body)
      .front();
}

/// The largest divisor of `size` up to `limit`.
static int64_t getBlock(int64_t size, int64_t limit) {
  int64_t block = std::min(size, limit);
  while (size % block != 0)
    --block;
  return block;
}

namespace {
/// The loops of one product, built from the outside in.
class Product {
public:
  Product(OpBuilder &b, Location loc, Value lhs, Value rhs,
          const LoweringOptions &options)
      : b(b), loc(loc), lhs(lhs), rhs(rhs) {
    ArrayRef<int64_t> left = asTile(lhs.getType()).getShape();
    ArrayRef<int64_t> right = asTile(rhs.getType()).getShape();
    int64_t rank = left.size();
    sizes.assign(left.begin(), left.end());
    sizes[rank - 1] = right[rank - 1];
    depth = left[rank - 1];
    element = asTile(lhs.getType()).getElementType();
    int64_t lanes = options.vectorBits / element.getIntOrFloatBitWidth();
    columns = getBlock(sizes[rank - 1], 2 * lanes);
    rows = getBlock(sizes[rank - 2], options.vectorRegisters / 4);
    vector = VectorType::get(columns, element);
    steps.assign(rank, 1);
    steps[rank - 1] = columns;
    steps[rank - 2] = rows;
  }

  Value build(Value accumulator, SmallVector<Value> indices = {}) {
    if (indices.size() == sizes.size())
      return buildBlock(accumulator, indices);
    auto loop =
        scf::ForOp::create(b, loc, constant(0), constant(sizes[indices.size()]),
                           constant(steps[indices.size()]), accumulator);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
    Value inner = build(loop.getRegionIterArg(0), indices);
    scf::YieldOp::create(b, loc, inner);
    return loop.getResult(0);
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  SmallVector<Value> rowIndices(ArrayRef<Value> indices, int64_t row) {
    SmallVector<Value> result(indices);
    Value &index = result[result.size() - 2];
    index = arith::AddIOp::create(b, loc, index, constant(row));
    return result;
  }

  Value read(Value tensor, ArrayRef<Value> indices) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    return vector::TransferReadOp::create(b, loc, vector, tensor, indices, zero,
                                          ArrayRef<bool>{true});
  }

  Value add(Value x, Value y) {
    if (isa<FloatType>(element))
      return arith::AddFOp::create(b, loc, x, y);
    return arith::AddIOp::create(b, loc, x, y);
  }

  Value multiplyAdd(Value x, Value y, Value sum) {
    if (isa<FloatType>(element))
      return vector::FMAOp::create(b, loc, x, y, sum);
    return arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, x, y),
                                 sum);
  }

  Value buildBlock(Value accumulator, ArrayRef<Value> indices) {
    // Starts from zero, so that rounding errors of a long sum over several
    // tiles grow with the number of tiles, not of elements.
    Value zero =
        arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
    SmallVector<Value> sums(rows, zero);
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(depth),
                                   constant(1), sums);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value k = loop.getInductionVar();
      SmallVector<Value> right(indices);
      right[right.size() - 2] = k;
      Value piece = read(rhs, right);
      SmallVector<Value> next;
      for (int64_t row = 0; row < rows; ++row) {
        SmallVector<Value> left = rowIndices(indices, row);
        left.back() = k;
        Value scalar = tensor::ExtractOp::create(b, loc, lhs, left);
        Value splat = vector::BroadcastOp::create(b, loc, vector, scalar);
        next.push_back(multiplyAdd(splat, piece, loop.getRegionIterArg(row)));
      }
      scf::YieldOp::create(b, loc, next);
    }
    for (int64_t row = 0; row < rows; ++row) {
      SmallVector<Value> place = rowIndices(indices, row);
      Value sum = add(read(accumulator, place), loop.getResult(row));
      accumulator = vector::TransferWriteOp::create(b, loc, sum, accumulator,
                                                    place, ArrayRef<bool>{true})
                        .getResult();
    }
    return accumulator;
  }

  OpBuilder &b;
  Location loc;
  Value lhs, rhs;
  Type element;
  VectorType vector;
  /// Extents of the result, and the step of each of its loops.
  SmallVector<int64_t> sizes, steps;
  int64_t depth, rows, columns;
};
} // namespace

void Lowering::lowerDot(tt::DotOp op) {
  Location loc = op.getLoc();
  Value result = op.getD();
  Type resultElement = asTile(result.getType()).getElementType();
  auto real = dyn_cast<FloatType>(resultElement);
  Type element = real ? Type(getComputeType(real)) : resultElement;
  auto isWider = [&](Value operand) {
    Type type = asTile(operand.getType()).getElementType();
    return type.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth();
  };
  if (isWider(op.getA()) || isWider(op.getB()))
    return fail(op, "with operands wider than its result");

  Value lhs = getTensorAs(op.getA(), element);
  Value rhs = getTensorAs(op.getB(), element);
  Value destination =
      element == resultElement ? findDestination(result) : Value();
  Value accumulator = getTensorAs(op.getC(), element, destination);
  // For a square tile, bufferization mistakes the first row that is written for
  // the whole tile, and does not copy an accumulator that is needed again. It
  // certainly is not needed if a loop carries it for this alone, or if it is
  // made here.
  bool isOurs = isa<BlockArgument>(op.getC())
                    ? op.getC().hasOneUse()
                    : !destination && !placement.isStored(op.getC());
  if (options.copyCarried ||
      (!isOurs &&
       !autodiff::mutation::isMade("cpu-dot:a sum that is needed again")))
    accumulator = copyTensor(accumulator);
  Value product = Product(builder, loc, lhs, rhs, options).build(accumulator);
  if (element == resultElement)
    return setTensor(result, product);
  auto narrow = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
    Value value = tensor::ExtractOp::create(b, loc, product, indices);
    return SmallVector<Value>{
        convertFloat(b, loc, value, cast<FloatType>(element), real)};
  };
  setTensor(result, generate(loc, getStorageTensor(asTile(result.getType())),
                             {}, narrow)
                        .front());
}
