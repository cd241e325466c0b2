//===- CombiningOps.cpp - reduce and scan ---------------------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::triton;

template <typename Op> static SmallVector<RankedTensorType> inputTypes(Op op) {
  return llvm::map_to_vector(op.getSrcs().getTypes(), [](Type type) {
    return cast<RankedTensorType>(type);
  });
}

template <typename Op> static SmallVector<Type> elementTypes(Op op) {
  return llvm::map_to_vector(op.getSrcs().getTypes(), [](Type type) {
    return getElementTypeOrSelf(type);
  });
}

template <typename Op> static Operation *singleCombiner(Op op) {
  if (op.getSrcs().size() != 1)
    return nullptr;
  Block &block = op.getCombineOp().front();
  if (block.getOperations().size() != 2)
    return nullptr;
  Operation *combiner = &block.front();
  if (combiner->getNumResults() != 1 || combiner->getNumOperands() != 2 ||
      block.back().getOperand(0) != combiner->getResult(0))
    return nullptr;
  Value x = combiner->getOperand(0), y = combiner->getOperand(1);
  Value a = block.getArgument(0), b = block.getArgument(1);
  return (x == a && y == b) || (x == b && y == a) ? combiner : nullptr;
}

template <typename Op> static LogicalResult verifyCombining(Op op) {
  if (op.getSrcs().empty())
    return op.emitOpError("needs at least one source");
  auto first = cast<RankedTensorType>(op.getSrcs().front().getType());
  int64_t axis = static_cast<int32_t>(op.getAxis());
  if (axis < 0 || axis >= first.getRank())
    return op.emitOpError("axis ")
           << axis << " is out of range for " << Type(first);
  for (Type type : op.getSrcs().getTypes())
    if (cast<RankedTensorType>(type).getShape() != first.getShape())
      return op.emitOpError("sources have different shapes: ")
             << Type(first) << " and " << type;
  return success();
}

template <typename Op, typename Return>
static LogicalResult verifyCombiner(Op op) {
  SmallVector<Type> elements = elementTypes(op);
  SmallVector<Type> pairs(elements);
  pairs.append(elements);
  Block &block = op.getCombineOp().front();
  if (block.getArgumentTypes() != TypeRange(pairs))
    return op.emitOpError("the region must take two elements of each source");
  auto end = block.empty() ? Return() : dyn_cast<Return>(block.back());
  if (!end)
    return op.emitOpError("the region must end with ")
           << Return::getOperationName();
  if (end.getOperandTypes() != TypeRange(elements))
    return end.emitOpError("must return one element of each source");
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

void ReduceOp::build(OpBuilder &builder, OperationState &state, ValueRange srcs,
                     int axis) {
  state.addOperands(srcs);
  state.getOrAddProperties<Properties>().setAxis(
      builder.getI32IntegerAttr(axis));
  state.addRegion();
  for (Type type : srcs.getTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape.erase(shape.begin() + axis);
    state.addTypes(shape.empty() ? tensor.getElementType()
                                 : Type(tensor.clone(shape)));
  }
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         ReduceOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  int64_t axis = static_cast<int32_t>(adaptor.getAxis());
  for (Type type : adaptor.getSrcs().getTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || axis < 0 || axis >= tensor.getRank())
      return emitOptionalError(loc, "tt.reduce: axis ", axis,
                               " is out of range for ", type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape.erase(shape.begin() + axis);
    types.push_back(shape.empty() ? tensor.getElementType()
                                  : Type(tensor.clone(shape)));
  }
  return success();
}

LogicalResult ReduceOp::verify() { return verifyCombining(*this); }
LogicalResult ReduceOp::verifyRegions() {
  return verifyCombiner<ReduceOp, ReduceReturnOp>(*this);
}
SmallVector<RankedTensorType> ReduceOp::getInputTypes() {
  return inputTypes(*this);
}
SmallVector<Type> ReduceOp::getElementTypes() { return elementTypes(*this); }
Operation *ReduceOp::getSingleCombiner() { return singleCombiner(*this); }

//===----------------------------------------------------------------------===//
// ScanOp
//===----------------------------------------------------------------------===//

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange srcs,
                   int axis, bool reverse) {
  state.addOperands(srcs);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setAxis(builder.getI32IntegerAttr(axis));
  properties.setReverse(builder.getBoolAttr(reverse));
  state.addRegion();
  state.addTypes(srcs.getTypes());
}

LogicalResult ScanOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       ScanOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  llvm::append_range(types, adaptor.getSrcs().getTypes());
  return success();
}

LogicalResult ScanOp::verify() { return verifyCombining(*this); }
LogicalResult ScanOp::verifyRegions() {
  return verifyCombiner<ScanOp, ScanReturnOp>(*this);
}
SmallVector<RankedTensorType> ScanOp::getInputTypes() {
  return inputTypes(*this);
}
SmallVector<Type> ScanOp::getElementTypes() { return elementTypes(*this); }
Operation *ScanOp::getSingleCombiner() { return singleCombiner(*this); }
