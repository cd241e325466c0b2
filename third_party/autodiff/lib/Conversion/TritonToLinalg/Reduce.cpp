//===- Reduce.cpp - Reductions, scans and histograms ----------------------===//
//
// Along the last dimension, the running value is a scalar that a loop carries.
// Along another one, it is a tile that is updated in place, so that the inner
// loop runs over contiguous elements.
//
// The order of a sum depends on its shape only, not on the surrounding code: a
// backward kernel that computes a sum again has to get exactly the same number,
// or it may find another element to be the largest. So the sum of a line is
// written with vectors, instead of leaving it to LLVM to reorder a loop.
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

namespace {

/// One step of a reduction. Single operations on floats use another type: sums
/// at least f32, which is more exact than rounding after each of thousands of
/// additions; maxima integers of the same order, which vectorizes and treats
/// NaN as defined.
class Combiner {
public:
  Combiner(Lowering &lowering, tt::ReduceOp op) : lowering(lowering), op(op) {
    single = op.getSingleCombiner();
    Type type = asTile(op.getSrcs().front().getType()).getElementType();
    real = dyn_cast<FloatType>(type);
    if (!single || !real || getFloat8(real))
      kind = Kind::Region;
    else if (isa<arith::AddFOp, arith::MulFOp>(single))
      kind = Kind::Sum;
    else if (isa<arith::MaxNumFOp, arith::MaximumFOp>(single))
      kind = Kind::Max;
    else if (isa<arith::MinNumFOp, arith::MinimumFOp>(single))
      kind = Kind::Min;
    if (kind == Kind::Region)
      for (Value source : op.getSrcs())
        types.push_back(
            getScalarType(asTile(source.getType()).getElementType()));
    else if (kind == Kind::Sum)
      types.push_back(getComputeType(real));
    else
      types.push_back(IntegerType::get(op.getContext(), real.getWidth()));
  }

  /// The types of running values.
  ArrayRef<Type> getTypes() const { return types; }

  SmallVector<Value> read(OpBuilder &b, ArrayRef<Value> indices) {
    Element element(lowering, b);
    SmallVector<Value> values;
    for (Value source : op.getSrcs())
      values.push_back(element.get(source, indices));
    bool propagates =
        isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(single);
    if (kind == Kind::Sum)
      values[0] =
          convertFloat(b, op.getLoc(), values[0], real, getComputeType(real));
    else if (kind != Kind::Region)
      values[0] =
          encodeOrder(b, op.getLoc(), values[0],
                      (kind == Kind::Max) ==
                          (propagates && !autodiff::mutation::isMade(
                                             "cpu-reduce:NaN is left out")));
    return values;
  }

  SmallVector<Value> combine(OpBuilder &b, ValueRange lhs, ValueRange rhs) {
    Location loc = op.getLoc();
    switch (kind) {
    case Kind::Region:
      return lowering.combine(b, op.getCombineOp(), lhs, rhs);
    case Kind::Max:
      return {arith::MaxSIOp::create(b, loc, lhs[0], rhs[0]).getResult()};
    case Kind::Min:
      return {arith::MinSIOp::create(b, loc, lhs[0], rhs[0]).getResult()};
    case Kind::Sum:
      break;
    }
    if (isa<arith::AddFOp>(single))
      return {arith::AddFOp::create(b, loc, lhs[0], rhs[0]).getResult()};
    return {arith::MulFOp::create(b, loc, lhs[0], rhs[0]).getResult()};
  }

  /// The vector type for the running sums of lines of `size` elements, or null
  /// if one sum is enough.
  VectorType getLanes(int64_t size) const {
    if (kind != Kind::Sum)
      return {};
    // The same number on every machine.
    int64_t lanes = 512 / types[0].getIntOrFloatBitWidth();
    return size > lanes ? VectorType::get(lanes, types[0]) : VectorType();
  }

  SmallVector<Value> finish(OpBuilder &b, ValueRange values) {
    SmallVector<Value> results(values);
    if (kind == Kind::Sum)
      results[0] =
          convertFloat(b, op.getLoc(), values[0], getComputeType(real), real);
    else if (kind != Kind::Region)
      results[0] = decodeOrder(b, op.getLoc(), values[0], real);
    return results;
  }

private:
  enum class Kind { Region, Sum, Max, Min };

  Lowering &lowering;
  tt::ReduceOp op;
  Operation *single;
  FloatType real;
  Kind kind = Kind::Region;
  SmallVector<Type> types;
};

} // namespace

/// A scalar in its storage type, and back.
static Value toStorage(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  return value;
}
static Value fromStorage(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() != type)
    return arith::TruncIOp::create(b, loc, type, value);
  return value;
}

/// The source's indices of element `position` along the axis.
static SmallVector<Value> insertIndex(ArrayRef<Value> indices, unsigned axis,
                                      Value position) {
  SmallVector<Value> result(indices);
  result.insert(result.begin() + axis, position);
  return result;
}

void Lowering::lowerReduce(tt::ReduceOp op) {
  Location loc = op.getLoc();
  unsigned axis = op.getAxis();
  RankedTensorType source = asTile(op.getSrcs().front().getType());
  int64_t size = source.getDimSize(axis);
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + axis);
  Combiner combiner(*this, op);

  // Element i of a line is added to the sum of lane i mod the number of lanes;
  // then the lanes are added one after the other.
  VectorType lanes =
      axis + 1 == source.getRank() ? combiner.getLanes(size) : VectorType();
  Value whole = lanes
                    ? getTensorAs(op.getSrcs().front(), lanes.getElementType())
                    : Value();
  auto reduceLanes = [&](OpBuilder &b, ArrayRef<Value> indices) {
    auto read = [&](OpBuilder &b, Value position) {
      return vector::TransferReadOp::create(
          b, loc, lanes, whole, insertIndex(indices, axis, position),
          getPoison(b, loc, lanes.getElementType()), ArrayRef<bool>{true});
    };
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value step = arith::ConstantIndexOp::create(b, loc, lanes.getNumElements());
    Value end = arith::ConstantIndexOp::create(b, loc, size);
    auto loop = scf::ForOp::create(
        b, loc, step, end, step, ValueRange{read(b, zero)},
        [&](OpBuilder &b, Location loc, Value position, ValueRange running) {
          Value next = read(b, position);
          scf::YieldOp::create(b, loc, combiner.combine(b, running, next));
        });
    Value sum = vector::ExtractOp::create(b, loc, loop.getResult(0), 0);
    for (int64_t i = 1; i < lanes.getNumElements(); ++i)
      sum = combiner
                .combine(b, sum,
                         Value(vector::ExtractOp::create(b, loc,
                                                         loop.getResult(0), i)))
                .front();
    return combiner.finish(b, sum);
  };
  // Reduces a whole line in a loop that carries scalars.
  auto reduceLine = [&](OpBuilder &b, ArrayRef<Value> indices) {
    if (lanes)
      return reduceLanes(b, indices);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value end = arith::ConstantIndexOp::create(b, loc, size);
    SmallVector<Value> first =
        combiner.read(b, insertIndex(indices, axis, zero));
    auto loop = scf::ForOp::create(
        b, loc, one, end, one, first,
        [&](OpBuilder &b, Location loc, Value position, ValueRange running) {
          SmallVector<Value> next =
              combiner.read(b, insertIndex(indices, axis, position));
          scf::YieldOp::create(b, loc, combiner.combine(b, running, next));
        });
    return combiner.finish(b, loop.getResults());
  };

  if (shape.empty()) {
    SmallVector<Value> results = reduceLine(builder, {});
    for (auto [to, from] : llvm::zip_equal(op.getResults(), results))
      setScalar(to, from);
    return;
  }

  SmallVector<RankedTensorType> resultTypes, runningTypes;
  for (auto [value, type] :
       llvm::zip_equal(op.getResults(), combiner.getTypes())) {
    resultTypes.push_back(getStorageTensor(asTile(value.getType())));
    runningTypes.push_back(RankedTensorType::get(shape, getStorageType(type)));
  }
  auto store = [&](OpBuilder &b, SmallVector<Value> values) {
    for (Value &value : values)
      value = toStorage(b, loc, value);
    return values;
  };

  SmallVector<Value> tensors;
  if (axis + 1 == source.getRank()) {
    tensors = generate(loc, resultTypes, {},
                       [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
                         return store(b, reduceLine(b, indices));
                       });
  } else {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value end = arith::ConstantIndexOp::create(builder, loc, size);
    SmallVector<Value> first = generate(
        loc, runningTypes, {},
        [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
          return store(b, combiner.read(b, insertIndex(indices, axis, zero)));
        });
    auto loop = scf::ForOp::create(builder, loc, one, end, one, first);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      auto step = [&](OpBuilder &b, ArrayRef<Value> indices,
                      ValueRange elements) {
        SmallVector<Value> running;
        for (auto [value, type] :
             llvm::zip_equal(elements, combiner.getTypes()))
          running.push_back(fromStorage(b, loc, value, type));
        SmallVector<Value> next = combiner.read(
            b, insertIndex(indices, axis, loop.getInductionVar()));
        return store(b, combiner.combine(b, running, next));
      };
      SmallVector<Value> sums =
          generate(loc, runningTypes, loop.getRegionIterArgs(), step);
      scf::YieldOp::create(builder, loc, sums);
    }
    tensors.assign(loop.result_begin(), loop.result_end());
    if (runningTypes != resultTypes) {
      SmallVector<Value> sums = tensors;
      tensors = generate(
          loc, resultTypes, {},
          [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
            SmallVector<Value> values;
            for (Value sum : sums)
              values.push_back(tensor::ExtractOp::create(b, loc, sum, indices));
            return combiner.finish(b, values);
          });
    }
  }
  for (auto [to, from] : llvm::zip_equal(op.getResults(), tensors))
    setTensor(to, from);
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// Scans each line in a loop that carries the tiles written so far and the
/// running values.
void Lowering::lowerScan(tt::ScanOp op) {
  Location loc = op.getLoc();
  unsigned axis = op.getAxis();
  RankedTensorType source = asTile(op.getSrcs().front().getType());
  int64_t size = source.getDimSize(axis);
  size_t count = op.getSrcs().size();
  Region &region = op.getCombineOp();

  auto read = [&](OpBuilder &b, ArrayRef<Value> indices) {
    Element element(*this, b);
    SmallVector<Value> values;
    for (Value operand : op.getSrcs())
      values.push_back(element.get(operand, indices));
    return values;
  };
  auto write = [&](OpBuilder &b, SmallVectorImpl<Value> &tensors,
                   ValueRange values, ArrayRef<Value> indices) {
    for (auto [tensor, value] : llvm::zip_equal(tensors, values))
      tensor = tensor::InsertOp::create(b, loc, toStorage(b, loc, value),
                                        tensor, indices);
  };
  auto scanLine = [&](OpBuilder &b, SmallVector<Value> tensors,
                      ArrayRef<Value> outer) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value end = arith::ConstantIndexOp::create(b, loc, size);
    Value last = arith::ConstantIndexOp::create(b, loc, size - 1);
    auto indicesOf = [&](OpBuilder &b, Value position) {
      if (op.getReverse() &&
          !autodiff::mutation::isMade("cpu-scan:in forward order"))
        position = arith::SubIOp::create(b, loc, last, position);
      return insertIndex(outer, axis, position);
    };
    SmallVector<Value> indices = indicesOf(b, zero);
    SmallVector<Value> running = read(b, indices);
    write(b, tensors, running, indices);
    SmallVector<Value> carried(tensors);
    carried.append(running);
    auto loop = scf::ForOp::create(
        b, loc, one, end, one, carried,
        [&](OpBuilder &b, Location loc, Value position, ValueRange carried) {
          SmallVector<Value> tensors(carried.take_front(count));
          SmallVector<Value> indices = indicesOf(b, position);
          SmallVector<Value> running =
              combine(b, region, carried.drop_front(count), read(b, indices));
          write(b, tensors, running, indices);
          tensors.append(running);
          scf::YieldOp::create(b, loc, tensors);
        });
    return SmallVector<Value>(loop.getResults().take_front(count));
  };

  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + axis);
  SmallVector<Value> outputs;
  for (Value result : op.getResults()) {
    RankedTensorType type = getStorageTensor(asTile(result.getType()));
    outputs.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                              type.getElementType()));
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  std::function<SmallVector<Value>(OpBuilder &, SmallVector<Value>,
                                   SmallVector<Value>)>
      nest = [&](OpBuilder &b, SmallVector<Value> tensors,
                 SmallVector<Value> outer) -> SmallVector<Value> {
    if (outer.size() == shape.size())
      return scanLine(b, tensors, outer);
    Value end = arith::ConstantIndexOp::create(b, loc, shape[outer.size()]);
    auto loop = scf::ForOp::create(
        b, loc, zero, end, one, tensors,
        [&](OpBuilder &b, Location loc, Value index, ValueRange carried) {
          SmallVector<Value> inner(outer);
          inner.push_back(index);
          scf::YieldOp::create(b, loc,
                               nest(b, SmallVector<Value>(carried), inner));
        });
    return SmallVector<Value>(loop.getResults());
  };
  outputs = nest(builder, outputs, {});
  for (auto [to, from] : llvm::zip_equal(op.getResults(), outputs))
    setTensor(to, from);
}

//===----------------------------------------------------------------------===//
// Histograms
//===----------------------------------------------------------------------===//

void Lowering::lowerHistogram(tt::HistogramOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = asTile(op.getResult().getType());
  Type elementType = type.getElementType();
  auto clear = [&](OpBuilder &b, ArrayRef<Value>, ValueRange) {
    return SmallVector<Value>{getPoison(b, loc, elementType)};
  };
  Value bins = generate(loc, type, {}, clear).front();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value end = arith::ConstantIndexOp::create(
      builder, loc, asTile(op.getSrc().getType()).getDimSize(0));
  auto loop = scf::ForOp::create(
      builder, loc, zero, end, one, bins,
      [&](OpBuilder &b, Location loc, Value position, ValueRange carried) {
        Element element(*this, b);
        Value bin = element.get(op.getSrc(), position);
        bin = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), bin);
        Value count = element.getIndex(loc, type.getDimSize(0));
        // Values without a bin are not counted.
        Value counts = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             bin, count);
        if (op.getMask() && !autodiff::mutation::isMade(
                                "cpu-histogram:lanes that a mask leaves out"))
          counts = arith::AndIOp::create(b, loc, counts,
                                         element.get(op.getMask(), position));
        bin = arith::SelectOp::create(b, loc, counts, bin,
                                      element.getIndex(loc, 0));
        Value amount = arith::ExtUIOp::create(b, loc, elementType, counts);
        Value old = tensor::ExtractOp::create(b, loc, carried[0], bin);
        Value sum = arith::AddIOp::create(b, loc, old, amount);
        scf::YieldOp::create(
            b, loc,
            tensor::InsertOp::create(b, loc, sum, carried[0], bin).getResult());
      });
  setTensor(op.getResult(), loop.getResult(0));
}
