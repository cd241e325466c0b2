//===- TileOps.cpp - types and verifiers of tile operations ---------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::triton;

//===----------------------------------------------------------------------===//
// Shape-changing operations
//===----------------------------------------------------------------------===//

LogicalResult UnsplatOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> loc,
                                          UnsplatOp::Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getSrc().getType());
  if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() != 1)
    return emitOptionalError(loc, "tt.unsplat: needs a tensor of one element");
  types.push_back(tensor.getElementType());
  return success();
}

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location> loc,
                                             ExpandDimsOp::Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getSrc().getType());
  int64_t axis = static_cast<int32_t>(adaptor.getAxis());
  if (!tensor || axis < 0 || axis > tensor.getRank())
    return emitOptionalError(loc, "tt.expand_dims: axis ", axis,
                             " is out of range");
  SmallVector<int64_t> shape(tensor.getShape());
  shape.insert(shape.begin() + axis, 1);
  types.push_back(tensor.clone(shape));
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getSrc().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getRank() != to.getRank())
    return emitOpError("cannot change the rank: ")
           << Type(from) << " to " << Type(to);
  for (auto [a, b] : llvm::zip_equal(from.getShape(), to.getShape()))
    if (a != b && a != 1)
      return emitOpError("only dimensions of size one can be repeated: ")
             << Type(from) << " to " << Type(to);
  return success();
}

void ReshapeOp::build(OpBuilder &builder, OperationState &state,
                      ArrayRef<int64_t> shape, Value src, bool allowReorder) {
  auto tensor = cast<RankedTensorType>(src.getType());
  build(builder, state, tensor.clone(shape), src, allowReorder,
        /*efficient_layout=*/false);
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getSrc().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("cannot change the number of elements: ")
           << Type(from) << " to " << Type(to);
  return success();
}

static bool isPermutation(ArrayRef<int32_t> order, int64_t rank) {
  SmallVector<bool> seen(rank, false);
  if (static_cast<int64_t>(order.size()) != rank)
    return false;
  for (int32_t i : order) {
    if (i < 0 || i >= rank || seen[i])
      return false;
    seen[i] = true;
  }
  return true;
}

LogicalResult TransOp::inferReturnTypes(MLIRContext *,
                                        std::optional<Location> loc,
                                        TransOp::Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getSrc().getType());
  ArrayRef<int32_t> order = adaptor.getOrder();
  if (!tensor || !isPermutation(order, tensor.getRank()))
    return emitOptionalError(loc, "tt.trans: order is not a permutation of the "
                                  "source's dimensions");
  SmallVector<int64_t> shape;
  for (int32_t i : order)
    shape.push_back(tensor.getDimSize(i));
  types.push_back(tensor.clone(shape));
  return success();
}

LogicalResult TransOp::verify() {
  auto tensor = cast<RankedTensorType>(getSrc().getType());
  if (!isPermutation(getOrder(), tensor.getRank()))
    return emitOpError("order is not a permutation of the dimensions of ")
           << Type(tensor);
  return success();
}

LogicalResult CatOp::verify() {
  auto lhs = cast<RankedTensorType>(getLhs().getType());
  auto to = cast<RankedTensorType>(getType());
  if (to.getNumElements() % 2 != 0 ||
      to.getNumElements() / 2 != lhs.getNumElements())
    return emitOpError("the result must have as many elements as both sources "
                       "together: ")
           << Type(lhs) << " twice to " << Type(to);
  return success();
}

LogicalResult JoinOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       JoinOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getLhs().getType());
  if (!tensor)
    return failure();
  SmallVector<int64_t> shape(tensor.getShape());
  shape.push_back(2);
  types.push_back(tensor.clone(shape));
  return success();
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *,
                                        std::optional<Location> loc,
                                        SplitOp::Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getSrc().getType());
  if (!tensor || !tensor.getRank() || tensor.getShape().back() != 2)
    return emitOptionalError(loc,
                             "tt.split: the last dimension must have size two");
  types.assign(2, tensor.clone(tensor.getShape().drop_back()));
  return success();
}

//===----------------------------------------------------------------------===//
// MakeRangeOp, GatherOp, HistogramOp
//===----------------------------------------------------------------------===//

void MakeRangeOp::build(OpBuilder &builder, OperationState &state,
                        int32_t start, int32_t end) {
  build(builder, state,
        RankedTensorType::get({int64_t(end) - start}, builder.getI32Type()),
        static_cast<uint32_t>(start), static_cast<uint32_t>(end));
}

LogicalResult MakeRangeOp::verify() {
  int64_t start = getStartAttr().getInt(), end = getEndAttr().getInt();
  auto type = cast<RankedTensorType>(getType());
  if (start >= end)
    return emitOpError("start (")
           << start << ") must be less than end (" << end << ")";
  if (type.getRank() != 1 || type.getDimSize(0) != end - start)
    return emitOpError("has ")
           << end - start << " values, the result type is " << Type(type);
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         GatherOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto src = dyn_cast<RankedTensorType>(adaptor.getSrc().getType());
  auto indices = dyn_cast<RankedTensorType>(adaptor.getIndices().getType());
  if (!src || !indices)
    return failure();
  types.push_back(indices.clone(src.getElementType()));
  return success();
}

LogicalResult GatherOp::verify() {
  auto src = cast<RankedTensorType>(getSrc().getType());
  auto indices = cast<RankedTensorType>(getIndices().getType());
  int64_t axis = static_cast<int32_t>(getAxis());
  if (src.getRank() != indices.getRank())
    return emitOpError("source and indices differ in rank: ")
           << Type(src) << " and " << Type(indices);
  if (axis < 0 || axis >= src.getRank())
    return emitOpError("axis ") << axis << " is out of range for " << Type(src);
  for (int64_t i = 0; i < src.getRank(); ++i)
    if (i != axis && indices.getDimSize(i) > src.getDimSize(i))
      return emitOpError("dimension ")
             << i
             << " of the indices exceeds that of the source: " << Type(indices)
             << " and " << Type(src);
  return success();
}

LogicalResult HistogramOp::verify() {
  if (cast<RankedTensorType>(getType()).getRank() != 1)
    return emitOpError("the result must have one dimension");
  return success();
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

namespace {
/// How many values share an element of each operand, along its rows and
/// columns.
struct Packing {
  int m = 1, ka = 1, kb = 1, n = 1;
};
} // namespace

/// Checks the shapes of a · b -> d.
static LogicalResult verifyProduct(Operation *op, RankedTensorType a,
                                   RankedTensorType b, RankedTensorType d,
                                   Packing packing) {
  int64_t rank = a.getRank();
  if (rank < 2 || rank > 3 || b.getRank() != rank || d.getRank() != rank)
    return op->emitOpError("needs operands of rank 2, or all of rank 3");
  auto rows = [&](RankedTensorType type) { return type.getDimSize(rank - 2); };
  auto columns = [&](RankedTensorType type) {
    return type.getDimSize(rank - 1);
  };
  bool fits = columns(a) * packing.ka == rows(b) * packing.kb &&
              rows(a) * packing.m == rows(d) &&
              columns(b) * packing.n == columns(d);
  if (rank == 3)
    fits &= a.getDimSize(0) == b.getDimSize(0) &&
            a.getDimSize(0) == d.getDimSize(0);
  if (!fits)
    return op->emitOpError("shapes do not fit: ")
           << Type(a) << " * " << Type(b) << " -> " << Type(d);
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType());
  auto b = cast<RankedTensorType>(getB().getType());
  if (failed(verifyProduct(*this, a, b, cast<RankedTensorType>(getType()), {})))
    return failure();
  if (getElementBitWidth(a) != getElementBitWidth(b) ||
      isa<FloatType>(a.getElementType()) != isa<FloatType>(b.getElementType()))
    return emitOpError("element types do not fit: ")
           << a.getElementType() << " and " << b.getElementType();
  return success();
}

LogicalResult DotScaledOp::verify() {
  // Two e2m1 values share a byte, along K or (unless k_pack) the other side.
  auto packing = [](ScaleDotElemType type, bool packed) {
    return type == ScaleDotElemType::E2M1 && packed ? 2 : 1;
  };
  return verifyProduct(*this, cast<RankedTensorType>(getA().getType()),
                       cast<RankedTensorType>(getB().getType()),
                       cast<RankedTensorType>(getType()),
                       {packing(getAElemType(), !getLhsKPack()),
                        packing(getAElemType(), getLhsKPack()),
                        packing(getBElemType(), getRhsKPack()),
                        packing(getBElemType(), !getRhsKPack())});
}
