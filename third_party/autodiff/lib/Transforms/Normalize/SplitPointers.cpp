//===- SplitPointers.cpp - Pointers as argument and offset ----------------===//
//
// The address in a gradient is computed as in the user's kernel, but from
// another base. If loops or branches produce a pointer, they are made to
// produce integers instead: these can be computed again or recorded like any
// others.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPLITPOINTERS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Which pointers
//===----------------------------------------------------------------------===//

namespace {
/// Groups of pointer values that control flow copies to each other. Arguments
/// of the kernel are in none of these webs.
class PointerWebs {
public:
  explicit PointerWebs(triton::FuncOp kernel);

  /// All pointers in webs that are to be split.
  SetVector<Value> getSplit() const;

private:
  void join(Value a, Value b);
  void joinCarried(scf::ForOp loop);
  void joinCarried(scf::WhileOp loop);
  void visit(Operation *op);

  triton::FuncOp kernel;
  SmallVector<Value> pointers;
  llvm::EquivalenceClasses<const void *> webs;
  /// A member of each web that control flow forms, or that cannot be split.
  SmallVector<Value> formedByControl, opaque;
};
} // namespace

static bool isKernelArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<triton::FuncOp>(argument.getOwner()->getParentOp());
}

PointerWebs::PointerWebs(triton::FuncOp kernel) : kernel(kernel) {
  auto note = [&](Value value) {
    if (!isPointer(value.getType()) || isKernelArgument(value))
      return;
    pointers.push_back(value);
    webs.insert(value.getAsOpaquePointer());
  };
  kernel.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), note);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), note);
  });
  kernel.walk([&](Operation *op) { visit(op); });
}

void PointerWebs::join(Value a, Value b) {
  if (!isKernelArgument(a) && !isKernelArgument(b))
    webs.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
}

/// Whether a loop adds the same to this value in every iteration, or leaves it.
static bool isAffine(scf::ForOp loop, Value carried, Value yielded) {
  if (yielded == carried)
    return true;
  auto update = yielded.getDefiningOp<triton::AddPtrOp>();
  return update && update.getPtr() == carried &&
         loop.isDefinedOutsideOfLoop(update.getOffset());
}

/// A pointer that `loop` advances by the same amount in every iteration is init
/// + iterations · amount afterwards: its uses do not need the loop.
static void leaveBehind(scf::ForOp loop) {
  OpBuilder b(loop);
  b.setInsertionPointAfter(loop);
  Location loc = loop.getLoc();
  for (auto [init, carried, yielded, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults())) {
    if (!isPointer(carried.getType()) || result.use_empty() ||
        !isAffine(loop, carried, yielded))
      continue;
    Value end = init;
    if (auto update = yielded.getDefiningOp<triton::AddPtrOp>()) {
      auto wide = [&](Value integer, bool isUnsigned) -> Value {
        Type type =
            triton::replaceElementType(integer.getType(), b.getI64Type());
        if (type == integer.getType())
          return integer;
        return isUnsigned
                   ? Value(arith::ExtUIOp::create(b, loc, type, integer))
                   : Value(arith::ExtSIOp::create(b, loc, type, integer));
      };
      bool isUnsigned = loop.getUnsignedCmp();
      Value distance = wide(update.getOffset(), /*isUnsigned=*/false);
      Value count = wide(countIterations(b, loc, loop.getLowerBound(),
                                         loop.getUpperBound(), loop.getStep(),
                                         isUnsigned),
                         isUnsigned);
      if (isa<RankedTensorType>(distance.getType()))
        count = triton::SplatOp::create(b, loc, distance.getType(), count);
      end = triton::AddPtrOp::create(
          b, loc, init.getType(), init,
          arith::MulIOp::create(b, loc, distance, count));
    }
    result.replaceAllUsesWith(end);
  }
}

void PointerWebs::joinCarried(scf::ForOp loop) {
  for (auto [init, carried, yielded, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults())) {
    if (!isPointer(carried.getType()))
      continue;
    join(carried, init);
    join(carried, yielded);
    join(carried, result);
    if (!isAffine(loop, carried, yielded))
      formedByControl.push_back(carried);
  }
}

void PointerWebs::joinCarried(scf::WhileOp loop) {
  for (auto [init, before, yielded] : llvm::zip_equal(
           loop.getInits(), loop.getBeforeArguments(), loop.getYieldedValues()))
    if (isPointer(before.getType())) {
      join(before, init);
      join(before, yielded);
      formedByControl.push_back(before);
    }
  for (auto [passed, after, result] :
       llvm::zip_equal(loop.getConditionOp().getArgs(),
                       loop.getAfterArguments(), loop.getResults()))
    if (isPointer(after.getType())) {
      join(after, passed);
      join(after, result);
      formedByControl.push_back(after);
    }
}

static unsigned getPointeeBits(Value pointer) {
  Type pointee = getPointee(pointer.getType());
  return isa<triton::PointerType>(pointee) ? 64
                                           : pointee.getIntOrFloatBitWidth();
}

void PointerWebs::visit(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return joinCarried(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return joinCarried(loop);
  for (OpResult result : op->getResults()) {
    if (!isPointer(result.getType()))
      continue;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      join(result, branch.thenYield().getOperand(result.getResultNumber()));
      join(result, branch.elseYield().getOperand(result.getResultNumber()));
      formedByControl.push_back(result);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      join(result, select.getTrueValue());
      join(result, select.getFalseValue());
    } else if (OpOperand *source = getPointerSource(op)) {
      join(result, source->get());
    } else if (isa<triton::BitcastOp>(op) &&
               isPointer(op->getOperand(0).getType()) &&
               getPointeeBits(op->getOperand(0)) == getPointeeBits(result)) {
      join(result, op->getOperand(0));
    } else if (!isa<ub::PoisonOp>(op)) {
      opaque.push_back(result);
    }
  }
}

SetVector<Value> PointerWebs::getSplit() const {
  llvm::SmallDenseSet<const void *> leaders;
  auto leader = [&](Value pointer) {
    return webs.getLeaderValue(pointer.getAsOpaquePointer());
  };
  for (Value pointer : formedByControl)
    leaders.insert(leader(pointer));
  for (Value pointer : opaque)
    leaders.erase(leader(pointer));
  SetVector<Value> split;
  for (Value pointer : pointers)
    if (leaders.contains(leader(pointer)))
      split.insert(pointer);
  return split;
}

//===----------------------------------------------------------------------===//
// Splitting them
//===----------------------------------------------------------------------===//

/// Pointers that are to be split get an address space of their own while the
/// pass runs, since the conversion goes by types.
static constexpr int kSplitSpace = 1 << 16;

static Type withSpace(Type pointer, int space) {
  return triton::replaceElementType(
      pointer, triton::PointerType::get(getPointee(pointer), space));
}

static bool isSplit(Type type) {
  auto pointer = dyn_cast<triton::PointerType>(getElementTypeOrSelf(type));
  return pointer && pointer.getAddressSpace() == kSplitSpace;
}

namespace {
template <typename Op> struct Splitting : OpConversionPattern<Op> {
  using Operands = typename OpConversionPattern<Op>::OneToNOpAdaptor;
  Splitting(const TypeConverter &converter, MLIRContext *context,
            ArrayRef<BlockArgument> arguments)
      : OpConversionPattern<Op>(converter, context), arguments(arguments) {}

  LogicalResult
  matchAndRewrite(Op op, Operands operands,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> parts = split(op, operands, rewriter);
    if (failed(parts))
      return failure();
    rewriter.replaceOpWithMultiple(op, SmallVector<SmallVector<Value>>{*parts});
    return success();
  }

  /// The values of the result: argument and offset of a split pointer.
  FailureOr<SmallVector<Value>>
  split(Op op, Operands operands, ConversionPatternRewriter &rewriter) const;

  ArrayRef<BlockArgument> arguments;
};
} // namespace

static Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  TypedAttr attribute = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    attribute = DenseElementsAttr::get(tensor, Attribute(attribute));
  return arith::ConstantOp::create(b, loc, attribute);
}

template <>
FailureOr<SmallVector<Value>>
Splitting<triton::AddPtrOp>::split(triton::AddPtrOp op, Operands operands,
                                   ConversionPatternRewriter &rewriter) const {
  Value argument = operands.getPtr()[0], offset = operands.getPtr()[1];
  Value added = operands.getOffset().front();
  if (added.getType() != offset.getType())
    added =
        arith::ExtSIOp::create(rewriter, op.getLoc(), offset.getType(), added);
  return SmallVector<Value>{
      argument, arith::AddIOp::create(rewriter, op.getLoc(), offset, added)};
}

template <>
FailureOr<SmallVector<Value>>
Splitting<triton::BitcastOp>::split(triton::BitcastOp, Operands operands,
                                    ConversionPatternRewriter &) const {
  return SmallVector<Value>(operands.getSrc());
}

template <>
FailureOr<SmallVector<Value>>
Splitting<arith::SelectOp>::split(arith::SelectOp op, Operands operands,
                                  ConversionPatternRewriter &rewriter) const {
  SmallVector<Value> parts;
  for (auto [ifTrue, ifFalse] :
       llvm::zip_equal(operands.getTrueValue(), operands.getFalseValue()))
    parts.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                            operands.getCondition().front(),
                                            ifTrue, ifFalse));
  return parts;
}

template <>
FailureOr<SmallVector<Value>>
Splitting<ub::PoisonOp>::split(ub::PoisonOp op, Operands,
                               ConversionPatternRewriter &rewriter) const {
  SmallVector<Type> types;
  if (failed(getTypeConverter()->convertType(op.getType(), types)))
    return failure();
  return llvm::map_to_vector(types, [&](Type type) {
    return constant(rewriter, op.getLoc(), type, 0);
  });
}

/// A pointer that enters a web is an argument of the kernel. A pointer that
/// leaves it is a select between the arguments.
template <>
FailureOr<SmallVector<Value>> Splitting<UnrealizedConversionCastOp>::split(
    UnrealizedConversionCastOp op, Operands operands,
    ConversionPatternRewriter &b) const {
  Location loc = op.getLoc();
  Type type = op.getType(0);
  if (isSplit(type))
    return SmallVector<Value>{
        constant(b, loc, b.getI32Type(),
                 cast<BlockArgument>(op.getOperand(0)).getArgNumber()),
        constant(b, loc, b.getI64Type(), 0)};
  Value which = operands.getInputs()[0][0], offset = operands.getInputs()[0][1];
  Value pointer;
  for (int64_t index :
       op->getAttrOfType<DenseI64ArrayAttr>("arguments").asArrayRef()) {
    Value base = arguments[index];
    Type element = getElementTypeOrSelf(type);
    if (base.getType() != element)
      base = triton::BitcastOp::create(b, loc, element, base);
    if (isa<RankedTensorType>(type))
      base = triton::SplatOp::create(b, loc, type, base);
    if (pointer) {
      Value isThis =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, which,
                                constant(b, loc, which.getType(), index));
      base = arith::SelectOp::create(b, loc, isThis, base, pointer);
    }
    pointer = base;
  }
  return SmallVector<Value>{
      triton::AddPtrOp::create(b, loc, type, pointer, offset)};
}

namespace {
/// splat, broadcast, …: applied to both integers.
struct SplitShape : ConversionPattern {
  SplitShape(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!triton::isMove(op))
      return failure();
    SmallVector<Type> types;
    if (failed(
            getTypeConverter()->convertType(op->getResult(0).getType(), types)))
      return failure();
    SmallVector<Value> parts;
    for (auto [type, part] : llvm::zip_equal(types, operands[0])) {
      OperationState state(op->getLoc(), op->getName(), part, type,
                           op->getAttrs());
      parts.push_back(rewriter.create(state)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, SmallVector<SmallVector<Value>>{parts});
    return success();
  }
};

struct SplitPointers : autodiff::impl::SplitPointersBase<SplitPointers> {
  void runOnOperation() override;
};
} // namespace

/// Operations for which a split pointer stays two integers.
static bool staysSplit(Operation *op) {
  return triton::isMove(op) ||
         isa<triton::AddPtrOp, triton::BitcastOp, arith::SelectOp, scf::ForOp,
             scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp>(op);
}

/// The pointer that `use`, of an operation for which it stays split, becomes.
static Value getTarget(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(&use);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getBeforeArguments()[index];
  if (isa<scf::ConditionOp>(op))
    return op->getParentOp()->getResult(index - 1);
  if (isa<scf::YieldOp>(op)) {
    if (auto loop = dyn_cast<scf::WhileOp>(op->getParentOp()))
      return loop.getBeforeArguments()[index];
    return op->getParentOp()->getResult(index);
  }
  return op->getResult(0);
}

/// Inserts casts where pointers enter and leave the webs.
static void markSplit(triton::FuncOp kernel, const SetVector<Value> &split) {
  OpBuilder b(kernel.getContext());
  SmallVector<UnrealizedConversionCastOp> leaving;
  for (Value pointer : split)
    for (OpOperand &use : llvm::make_early_inc_range(pointer.getUses())) {
      if (staysSplit(use.getOwner()))
        continue;
      b.setInsertionPoint(use.getOwner());
      auto cast = UnrealizedConversionCastOp::create(
          b, use.getOwner()->getLoc(), pointer.getType(), pointer);
      SmallVector<int64_t> arguments;
      for (BlockArgument argument : getBaseArguments(pointer))
        arguments.push_back(argument.getArgNumber());
      cast->setAttr("arguments", b.getDenseI64ArrayAttr(arguments));
      use.set(cast.getResult(0));
    }
  for (Value pointer : split)
    pointer.setType(withSpace(pointer.getType(), kSplitSpace));
  for (BlockArgument argument : kernel.getArguments()) {
    if (!isPointer(argument.getType()))
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(argument.getUses())) {
      Value target = staysSplit(use.getOwner()) ? getTarget(use) : Value();
      if (!target || !isSplit(target.getType()))
        continue;
      b.setInsertionPoint(use.getOwner());
      use.set(UnrealizedConversionCastOp::create(
                  b, use.getOwner()->getLoc(),
                  withSpace(argument.getType(), kSplitSpace), argument)
                  .getResult(0));
    }
  }
}

void SplitPointers::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  kernel.walk(leaveBehind);
  SetVector<Value> split = PointerWebs(kernel).getSplit();
  if (split.empty())
    return;
  markSplit(kernel, split);

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](Type type,
         SmallVectorImpl<Type> &parts) -> std::optional<LogicalResult> {
        if (!isSplit(type))
          return std::nullopt;
        for (unsigned bits : {32, 64})
          parts.push_back(triton::replaceElementType(
              type, IntegerType::get(type.getContext(), bits)));
        return success();
      });
  ConversionTarget target(getContext());
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  RewritePatternSet patterns(&getContext());
  patterns.add<Splitting<triton::AddPtrOp>, Splitting<triton::BitcastOp>,
               Splitting<arith::SelectOp>, Splitting<ub::PoisonOp>,
               Splitting<UnrealizedConversionCastOp>>(
      converter, &getContext(), ArrayRef<BlockArgument>(kernel.getArguments()));
  patterns.add<SplitShape>(converter, &getContext());
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  if (failed(applyPartialConversion(kernel, target, std::move(patterns))))
    return signalPassFailure();
  OpPassManager cleanup(triton::FuncOp::getOperationName());
  cleanup.addPass(createCanonicalizerPass());
  if (failed(runPipeline(cleanup, kernel)))
    signalPassFailure();
}
