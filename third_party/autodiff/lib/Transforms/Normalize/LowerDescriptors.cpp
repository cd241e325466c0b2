//===- LowerDescriptors.cpp - Tensor descriptors as pointers --------------===//
//
// Triton's descriptors only access memory by blocks. Gradients also need
// atomics, and other element types than the descriptor has. So a block becomes
// a tile of pointers, with a mask for lanes outside of the tensor.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Descriptors.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOWERDESCRIPTORS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using triton::TensorDescType;

namespace {
/// The components of a descriptor, in the order in which loops carry them.
struct Descriptor {
  Value base;
  ValueRange shape;   // i32
  ValueRange strides; // i64
  Value isNaN;        // i1: reads out of bounds give NaN, else zero

  explicit Descriptor(ValueRange parts)
      : base(parts.front()), shape(parts.slice(1, (parts.size() - 2) / 2)),
        strides(parts.slice(1 + shape.size(), shape.size())),
        isNaN(parts.back()) {}
};

/// Pointers to the elements of a block of a tensor, and the mask of those in
/// bounds.
struct BlockAddress {
  Value pointers, mask;
};

/// Emits the accesses of one operation.
class BlockBuilder {
public:
  BlockBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// The block of `shape` that starts at i32 `indices`.
  BlockAddress at(const Descriptor &desc, ValueRange indices,
                  ArrayRef<int64_t> shape) {
    SmallVector<Value> axes;
    for (auto [index, size] : llvm::zip_equal(indices, shape))
      axes.push_back(positions(index, size));
    return address(desc, axes);
  }

  /// The block with rows `rows`, from `column` on.
  BlockAddress rows(const Descriptor &desc, Value rows, Value column,
                    int64_t size) {
    return address(desc, {widen(rows), positions(column, size)});
  }

  /// The value of lanes out of bounds.
  Value padding(const Descriptor &desc, RankedTensorType type) {
    Type element = type.getElementType();
    auto floating = dyn_cast<FloatType>(element);
    Value zero = zeroOf(b, loc, element);
    if (floating) {
      Value nan = arith::ConstantOp::create(
          b, loc,
          b.getFloatAttr(floating,
                         APFloat::getNaN(floating.getFloatSemantics())));
      zero = arith::SelectOp::create(b, loc, desc.isNaN, nan, zero);
    }
    return triton::SplatOp::create(b, loc, type, zero);
  }

  /// `tile` under another shape of as many elements.
  Value reshape(Value tile, ArrayRef<int64_t> shape) {
    if (cast<RankedTensorType>(tile.getType()).getShape() == shape)
      return tile;
    return triton::ReshapeOp::create(b, loc, shape, tile);
  }

private:
  Value widen(Value value) {
    Type type = triton::replaceElementType(value.getType(), b.getI64Type());
    return arith::ExtSIOp::create(b, loc, type, value);
  }

  Value splat(Value value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, value.getType());
    return triton::SplatOp::create(b, loc, type, value);
  }

  /// index, index + 1, …
  Value positions(Value index, int64_t size) {
    Value range = triton::MakeRangeOp::create(b, loc, 0, size);
    return arith::AddIOp::create(b, loc, splat(widen(index), {size}),
                                 widen(range));
  }

  /// A tile of one axis as one of `shape` that varies along `axis` only.
  Value along(Value tile, unsigned axis, ArrayRef<int64_t> shape) {
    for (unsigned other = 0; other < shape.size(); ++other)
      if (other != axis)
        tile = triton::ExpandDimsOp::create(b, loc, tile, other);
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.getShape() == shape)
      return tile;
    return triton::BroadcastOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), tile);
  }

  BlockAddress address(const Descriptor &desc, ArrayRef<Value> axes) {
    SmallVector<int64_t> shape = llvm::map_to_vector(axes, [](Value positions) {
      return cast<RankedTensorType>(positions.getType()).getDimSize(0);
    });
    BlockAddress block{splat(desc.base, shape), {}};
    Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    for (auto [axis, positions] : llvm::enumerate(axes)) {
      ArrayRef<int64_t> size = ArrayRef(shape).slice(axis, 1);
      Value offset = arith::MulIOp::create(b, loc, positions,
                                           splat(desc.strides[axis], size));
      block.pointers =
          triton::AddPtrOp::create(b, loc, block.pointers.getType(),
                                   block.pointers, along(offset, axis, shape));
      Value notBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                              positions, splat(zero, size));
      Value notBehind =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, positions,
                                splat(widen(desc.shape[axis]), size));
      Value inside = along(arith::AndIOp::create(b, loc, notBefore, notBehind),
                           axis, shape);
      block.mask = bothHold(b, loc, block.mask, inside);
    }
    return block;
  }

  OpBuilder &b;
  Location loc;
};

/// The single value of each operand that is no descriptor.
SmallVector<Value> flatten(ArrayRef<ValueRange> ranges) {
  return llvm::map_to_vector(ranges,
                             [](ValueRange range) { return range.front(); });
}

template <typename Op> struct Lowering : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Operands = typename OpConversionPattern<Op>::OneToNOpAdaptor;
  LogicalResult
  matchAndRewrite(Op op, Operands operands,
                  ConversionPatternRewriter &rewriter) const override {
    BlockBuilder block(rewriter, op.getLoc());
    return lower(op, operands, block, rewriter);
  }
  LogicalResult lower(Op op, Operands operands, BlockBuilder &block,
                      ConversionPatternRewriter &rewriter) const;
};
} // namespace

template <>
LogicalResult Lowering<triton::MakeTensorDescOp>::lower(
    triton::MakeTensorDescOp op, Operands operands, BlockBuilder &,
    ConversionPatternRewriter &rewriter) const {
  SmallVector<Value> parts = {operands.getBase().front()};
  llvm::append_range(parts, flatten(operands.getShape()));
  llvm::append_range(parts, flatten(operands.getStrides()));
  bool isNaN = op.getPadding() == triton::PaddingOption::PAD_NAN;
  parts.push_back(arith::ConstantOp::create(rewriter, op.getLoc(),
                                            rewriter.getBoolAttr(isNaN)));
  rewriter.replaceOpWithMultiple(op, SmallVector<SmallVector<Value>>{parts});
  return success();
}

/// The place where an argument has been split.
template <>
LogicalResult Lowering<UnrealizedConversionCastOp>::lower(
    UnrealizedConversionCastOp op, Operands, BlockBuilder &,
    ConversionPatternRewriter &rewriter) const {
  if (op.getNumResults() != 1 || !isa<TensorDescType>(op.getType(0)))
    return failure();
  rewriter.replaceOpWithMultiple(
      op, SmallVector<SmallVector<Value>>{SmallVector<Value>(op.getInputs())});
  return success();
}

template <>
LogicalResult
Lowering<arith::SelectOp>::lower(arith::SelectOp op, Operands operands,
                                 BlockBuilder &,
                                 ConversionPatternRewriter &rewriter) const {
  SmallVector<Value> parts;
  for (auto [ifTrue, ifFalse] :
       llvm::zip_equal(operands.getTrueValue(), operands.getFalseValue()))
    parts.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                            operands.getCondition().front(),
                                            ifTrue, ifFalse));
  rewriter.replaceOpWithMultiple(op, SmallVector<SmallVector<Value>>{parts});
  return success();
}

template <>
LogicalResult
Lowering<ub::PoisonOp>::lower(ub::PoisonOp op, Operands, BlockBuilder &,
                              ConversionPatternRewriter &rewriter) const {
  SmallVector<Type> types;
  if (failed(getTypeConverter()->convertType(op.getType(), types)))
    return failure();
  SmallVector<Value> parts =
      llvm::map_to_vector(types, [&](Type type) -> Value {
        return ub::PoisonOp::create(rewriter, op.getLoc(), type);
      });
  rewriter.replaceOpWithMultiple(op, SmallVector<SmallVector<Value>>{parts});
  return success();
}

static ArrayRef<int64_t> blockShape(TensorDescType type) {
  return type.getBlockType().getShape();
}

/// A load for the result of `op`, with its hints.
template <typename Op>
static Value load(Op op, BlockBuilder &builder, const Descriptor &desc,
                  BlockAddress block, ConversionPatternRewriter &rewriter) {
  auto type =
      cast<RankedTensorType>(triton::getPointeeType(block.pointers.getType()));
  return triton::LoadOp::create(rewriter, op.getLoc(), block.pointers,
                                block.mask, builder.padding(desc, type));
}

template <>
LogicalResult Lowering<triton::DescriptorLoadOp>::lower(
    triton::DescriptorLoadOp op, Operands operands, BlockBuilder &builder,
    ConversionPatternRewriter &rewriter) const {
  Descriptor desc(operands.getDesc());
  BlockAddress block = builder.at(desc, flatten(operands.getIndices()),
                                  blockShape(op.getDesc().getType()));
  Value tile = load(op, builder, desc, block, rewriter);
  auto access = tile.getDefiningOp<triton::LoadOp>();
  access.setCache(op.getCache());
  access.setEvict(op.getEvict());
  if (op.getCachePolicyAttr())
    access.setCachePolicyAttr(op.getCachePolicyAttr());
  auto type = cast<RankedTensorType>(op.getType());
  rewriter.replaceOp(op, builder.reshape(tile, type.getShape()));
  return success();
}

template <>
LogicalResult Lowering<triton::DescriptorGatherOp>::lower(
    triton::DescriptorGatherOp op, Operands operands, BlockBuilder &builder,
    ConversionPatternRewriter &rewriter) const {
  Descriptor desc(operands.getDesc());
  BlockAddress block = builder.rows(desc, operands.getXOffsets().front(),
                                    operands.getYOffset().front(),
                                    blockShape(op.getDesc().getType())[1]);
  rewriter.replaceOp(op, load(op, builder, desc, block, rewriter));
  return success();
}

template <>
LogicalResult Lowering<triton::DescriptorStoreOp>::lower(
    triton::DescriptorStoreOp op, Operands operands, BlockBuilder &builder,
    ConversionPatternRewriter &rewriter) const {
  ArrayRef<int64_t> shape = blockShape(op.getDesc().getType());
  BlockAddress block = builder.at(Descriptor(operands.getDesc()),
                                  flatten(operands.getIndices()), shape);
  rewriter.replaceOpWithNewOp<triton::StoreOp>(
      op, block.pointers, builder.reshape(operands.getSrc().front(), shape),
      block.mask);
  return success();
}

template <>
LogicalResult Lowering<triton::DescriptorScatterOp>::lower(
    triton::DescriptorScatterOp op, Operands operands, BlockBuilder &builder,
    ConversionPatternRewriter &rewriter) const {
  BlockAddress block = builder.rows(
      Descriptor(operands.getDesc()), operands.getXOffsets().front(),
      operands.getYOffset().front(), blockShape(op.getDesc().getType())[1]);
  rewriter.replaceOpWithNewOp<triton::StoreOp>(
      op, block.pointers, operands.getSrc().front(), block.mask);
  return success();
}

/// The atomic operation that does what a reduction does to a block; none for
/// reductions that only descriptors have.
static std::optional<triton::RMWOp> getAtomic(triton::DescriptorReduceKind kind,
                                              Type element) {
  using Kind = triton::DescriptorReduceKind;
  using triton::RMWOp;
  bool isFloat = isa<FloatType>(element);
  if (isFloat)
    return kind == Kind::ADD ? std::optional(RMWOp::FADD) : std::nullopt;
  bool isUnsigned = element.isUnsignedInteger();
  switch (kind) {
  case Kind::ADD:
    return RMWOp::ADD;
  case Kind::MIN:
    return isUnsigned ? RMWOp::UMIN : RMWOp::MIN;
  case Kind::MAX:
    return isUnsigned ? RMWOp::UMAX : RMWOp::MAX;
  case Kind::AND:
    return RMWOp::AND;
  case Kind::OR:
    return RMWOp::OR;
  case Kind::XOR:
    return RMWOp::XOR;
  default:
    return std::nullopt;
  }
}

template <>
LogicalResult Lowering<triton::DescriptorReduceOp>::lower(
    triton::DescriptorReduceOp op, Operands operands, BlockBuilder &builder,
    ConversionPatternRewriter &rewriter) const {
  TensorDescType type = op.getDesc().getType();
  std::optional<triton::RMWOp> kind =
      getAtomic(op.getKind(), type.getBlockType().getElementType());
  if (!kind)
    return op.emitError("this reduction through a tensor descriptor has no "
                        "counterpart for pointers; use tl.atomic_add, "
                        "tl.atomic_max or tl.atomic_min on pointers");
  BlockAddress block =
      builder.at(Descriptor(operands.getDesc()), flatten(operands.getIndices()),
                 blockShape(type));
  Value tile = builder.reshape(operands.getSrc().front(), blockShape(type));
  triton::AtomicRMWOp::create(
      rewriter, op.getLoc(), tile.getType(), *kind, block.pointers, tile,
      block.mask, triton::MemSemantic::RELAXED, triton::MemSyncScope::GPU);
  rewriter.eraseOp(op);
  return success();
}

namespace {
struct LowerDescriptors
    : autodiff::impl::LowerDescriptorsBase<LowerDescriptors> {
  void runOnOperation() override;
  LogicalResult inlineCalls();
  LogicalResult takeApart(triton::FuncOp kernel, unsigned index);
  Value partOf(triton::FuncOp kernel, unsigned index, OpBuilder &b);

  /// Components of descriptors that are equal to others.
  llvm::DenseMap<int64_t, Value> same;
};
} // namespace

static bool isDescriptor(Type type) { return isa<TensorDescType>(type); }

/// Descriptors do not cross calls.
LogicalResult LowerDescriptors::inlineCalls() {
  bool needed =
      getOperation()
          .walk([](triton::CallOp call) {
            return llvm::any_of(call->getOperandTypes(), isDescriptor) ||
                           llvm::any_of(call->getResultTypes(), isDescriptor)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  if (!needed)
    return success();
  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addPass(createInlinerPass());
  pipeline.addPass(createSymbolDCEPass());
  return runPipeline(pipeline, getOperation());
}

/// An integer argument, or its known value, or a component that equals it.
Value LowerDescriptors::partOf(triton::FuncOp kernel, unsigned index,
                               OpBuilder &b) {
  BlockArgument argument = kernel.getArgument(index);
  auto take = [&](StringRef name) {
    return cast_or_null<IntegerAttr>(kernel.removeArgAttr(index, name));
  };
  IntegerAttr known = take(kKnownAttr), first = take(kSameAttr);
  if (known)
    return integerOf(b, argument.getLoc(), argument.getType(), known.getInt());
  return first ? same.try_emplace(first.getInt(), argument).first->second
               : Value(argument);
}

/// Replaces a descriptor argument by its base and its padding. The host
/// guarantees contiguous rows and 16-byte alignment.
LogicalResult LowerDescriptors::takeApart(triton::FuncOp kernel,
                                          unsigned index) {
  BlockArgument argument = kernel.getArgument(index);
  auto type = cast<TensorDescType>(argument.getType());
  RankedTensorType block = type.getSignlessBlockType();
  unsigned rank = block.getRank();
  if (!isFollowedByParts(type, kernel.getArgumentTypes().drop_front(index + 1)))
    return emitError(argument.getLoc(),
                     "expected a tensor descriptor's sizes (i32) and strides "
                     "(i64) to follow it among the kernel's arguments");
  Attribute padding = kernel.getArgAttr(index, kKnownAttr);
  Builder builder(&getContext());
  NamedAttribute aligned(builder.getStringAttr("tt.divisibility"),
                         builder.getI32IntegerAttr(16));
  Type base = triton::PointerType::get(block.getElementType(), 1);
  if (failed(kernel.insertArgument(index, base,
                                   builder.getDictionaryAttr(aligned),
                                   argument.getLoc())) ||
      failed(kernel.insertArgument(index + 1, builder.getI1Type(), {},
                                   argument.getLoc())))
    return failure();
  // Strides are aligned like the base, in elements.
  int64_t elements = 128 / block.getElementTypeBitWidth();
  for (unsigned axis = 0; axis + 1 < rank; ++axis)
    kernel.setArgAttr(index + 3 + rank + axis, "tt.divisibility",
                      builder.getI32IntegerAttr(elements));
  if (padding)
    kernel.setArgAttr(index + 1, kKnownAttr, padding);
  auto b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  SmallVector<Value> parts = {kernel.getArgument(index)};
  for (unsigned part = 0; part + 1 < 2 * rank; ++part)
    parts.push_back(partOf(kernel, index + 3 + part, b));
  parts.push_back(
      arith::ConstantOp::create(b, argument.getLoc(), b.getI64IntegerAttr(1)));
  parts.push_back(partOf(kernel, index + 1, b));
  auto whole = UnrealizedConversionCastOp::create(b, argument.getLoc(), type,
                                                  ValueRange(parts));
  argument.replaceAllUsesWith(whole.getResult(0));
  return kernel.eraseArgument(index + 2);
}

void LowerDescriptors::runOnOperation() {
  bool found = false;
  getOperation().walk([&](Operation *op) {
    found |= llvm::any_of(op->getResultTypes(), isDescriptor);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        found |= llvm::any_of(block.getArgumentTypes(), isDescriptor);
  });
  if (!found)
    return;
  triton::makePointersGlobal(getOperation());
  if (failed(inlineCalls()))
    return signalPassFailure();
  for (auto kernel : getOperation().getOps<triton::FuncOp>()) {
    same.clear();
    for (unsigned index = 0;
         !kernel.isDeclaration() && index < kernel.getNumArguments(); ++index)
      if (isDescriptor(kernel.getArgument(index).getType()) &&
          failed(takeApart(kernel, index)))
        return signalPassFailure();
  }

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](TensorDescType type, SmallVectorImpl<Type> &parts) -> LogicalResult {
        MLIRContext *context = type.getContext();
        RankedTensorType block = type.getSignlessBlockType();
        parts.push_back(triton::PointerType::get(block.getElementType(), 1));
        parts.append(block.getRank(), IntegerType::get(context, 32));
        parts.append(block.getRank(), IntegerType::get(context, 64));
        parts.push_back(IntegerType::get(context, 1));
        return success();
      });
  ConversionTarget target(getContext());
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  RewritePatternSet patterns(&getContext());
  patterns.add<
      Lowering<triton::MakeTensorDescOp>, Lowering<triton::DescriptorLoadOp>,
      Lowering<triton::DescriptorStoreOp>, Lowering<triton::DescriptorReduceOp>,
      Lowering<triton::DescriptorGatherOp>,
      Lowering<triton::DescriptorScatterOp>,
      Lowering<UnrealizedConversionCastOp>, Lowering<arith::SelectOp>,
      Lowering<ub::PoisonOp>>(converter, &getContext());
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  if (failed(
          applyPartialConversion(getOperation(), target, std::move(patterns))))
    signalPassFailure();
}
