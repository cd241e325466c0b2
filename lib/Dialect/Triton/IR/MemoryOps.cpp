//===- MemoryOps.cpp - loads, stores, descriptors -------------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::triton;

//===----------------------------------------------------------------------===//
// LoadOp
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value ptr,
                   Value mask, Value other) {
  build(builder, state, ptr, mask, other, CacheModifier::NONE,
        EvictionPolicy::NORMAL, /*isVolatile=*/false);
}

void LoadOp::build(OpBuilder &builder, OperationState &state, Value ptr,
                   Value mask, Value other, CacheModifier cache,
                   EvictionPolicy evict, bool isVolatile) {
  build(builder, state, getPointeeType(ptr.getType()), ptr, mask, other,
        /*boundaryCheck=*/ArrayRef<int32_t>(), /*padding=*/PaddingOptionAttr(),
        cache, evict, isVolatile, /*cachePolicy=*/Attribute());
}

void LoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable(),
                       GlobalMemory::get());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable(),
                         GlobalMemory::get());
}

/// Whether `mask` is the constant true (or false) everywhere.
static bool isConstantMask(Value mask, bool value) {
  APInt bits;
  return mask && matchPattern(mask, m_ConstantInt(&bits)) &&
         bits.getBoolValue() == value;
}

namespace {
/// load p, true, o -> load p; load p, false, o -> o
struct SimplifyLoadMask : public OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LoadOp op,
                                PatternRewriter &rewriter) const override {
    if (isConstantMask(op.getMask(), true)) {
      rewriter.modifyOpInPlace(op, [&] {
        op.getMaskMutable().clear();
        op.getOtherMutable().clear();
      });
      return success();
    }
    if (op.getIsVolatile() || !isConstantMask(op.getMask(), false) ||
        !op.getOther())
      return failure();
    rewriter.replaceOp(op, op.getOther());
    return success();
  }
};

/// store p, v, true -> store p, v; store p, v, false -> nothing
struct SimplifyStoreMask : public OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(StoreOp op,
                                PatternRewriter &rewriter) const override {
    if (isConstantMask(op.getMask(), false)) {
      rewriter.eraseOp(op);
      return success();
    }
    if (!isConstantMask(op.getMask(), true))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    return success();
  }
};
} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<SimplifyLoadMask>(context);
}

//===----------------------------------------------------------------------===//
// StoreOp
//===----------------------------------------------------------------------===//

void StoreOp::build(OpBuilder &builder, OperationState &state, Value ptr,
                    Value value, Value mask) {
  build(builder, state, ptr, value, mask, CacheModifier::NONE,
        EvictionPolicy::NORMAL);
}

void StoreOp::build(OpBuilder &builder, OperationState &state, Value ptr,
                    Value value, Value mask, CacheModifier cache,
                    EvictionPolicy evict) {
  build(builder, state, ptr, value, mask,
        /*boundaryCheck=*/ArrayRef<int32_t>(), cache, evict,
        /*cachePolicy=*/Attribute());
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<SimplifyStoreMask>(context);
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

OpFoldResult AdvanceOp::fold(FoldAdaptor adaptor) {
  if (llvm::all_of(adaptor.getOffsets(), [](Attribute offset) {
        return offset && matchPattern(offset, m_Zero());
      }))
    return getPtr();
  return {};
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

LogicalResult MakeTensorDescOp::verify() {
  TensorDescType type = getType();
  int64_t rank = type.getBlockType().getRank();
  if (static_cast<int64_t>(getShape().size()) != rank)
    return emitOpError("describes a tensor of rank ")
           << getShape().size() << " by blocks of rank " << rank;
  Type pointee = cast<PointerType>(getBase().getType()).getPointeeType();
  Type element = type.getSignlessBlockType().getElementType();
  if (pointee != element)
    return emitOpError("the base points to ")
           << pointee << ", the blocks hold " << element;
  return success();
}

/// Blocks hold the same elements in the same number; leading dimensions of
/// size one may be missing in the register tile.
static LogicalResult verifyBlock(Operation *op, TensorDescType desc,
                                 RankedTensorType tile) {
  RankedTensorType block = desc.getSignlessBlockType();
  if (block.getElementType() != tile.getElementType())
    return op->emitOpError("the descriptor's elements are ")
           << block.getElementType() << ", the tensor's "
           << tile.getElementType();
  if (block.getNumElements() != tile.getNumElements())
    return op->emitOpError("the descriptor's blocks have ")
           << block.getNumElements() << " elements, the tensor has "
           << tile.getNumElements();
  return success();
}

static LogicalResult verifyIndices(Operation *op, TensorDescType desc,
                                   OperandRange indices) {
  int64_t rank = desc.getBlockType().getRank();
  if (static_cast<int64_t>(indices.size()) != rank)
    return op->emitOpError("needs ")
           << rank << " indices, got " << indices.size();
  return success();
}

LogicalResult DescriptorLoadOp::verify() {
  if (failed(verifyIndices(*this, getDesc().getType(), getIndices())))
    return failure();
  return verifyBlock(*this, getDesc().getType(),
                     cast<RankedTensorType>(getType()));
}

LogicalResult DescriptorStoreOp::verify() {
  if (failed(verifyIndices(*this, getDesc().getType(), getIndices())))
    return failure();
  return verifyBlock(*this, getDesc().getType(),
                     cast<RankedTensorType>(getSrc().getType()));
}

LogicalResult DescriptorReduceOp::verify() {
  if (failed(verifyIndices(*this, getDesc().getType(), getIndices())))
    return failure();
  return verifyBlock(*this, getDesc().getType(),
                     cast<RankedTensorType>(getSrc().getType()));
}

/// Gathers and scatters move whole rows: blocks are 1xN, tiles RxN.
static LogicalResult verifyRows(Operation *op, TensorDescType desc,
                                RankedTensorType rows, RankedTensorType tile) {
  RankedTensorType block = desc.getSignlessBlockType();
  if (block.getRank() != 2 || block.getDimSize(0) != 1)
    return op->emitOpError("the descriptor's blocks must be single rows, got ")
           << block;
  if (rows.getRank() != 1 || tile.getRank() != 2 ||
      tile.getDimSize(0) != rows.getDimSize(0) ||
      tile.getDimSize(1) != block.getDimSize(1))
    return op->emitOpError("the tensor must have one row of ")
           << block.getDimSize(1) << " elements for each of the offsets "
           << rows << ", got " << tile;
  if (tile.getElementType() != block.getElementType())
    return op->emitOpError("the descriptor's elements are ")
           << block.getElementType() << ", the tensor's "
           << tile.getElementType();
  return success();
}

LogicalResult DescriptorGatherOp::verify() {
  return verifyRows(*this, getDesc().getType(),
                    cast<RankedTensorType>(getXOffsets().getType()),
                    cast<RankedTensorType>(getType()));
}

LogicalResult DescriptorScatterOp::verify() {
  return verifyRows(*this, getDesc().getType(),
                    cast<RankedTensorType>(getXOffsets().getType()),
                    cast<RankedTensorType>(getSrc().getType()));
}
