//===- Lowering.cpp - Functions and their operations ----------------------===//

#include "Lowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

void Lowering::fail(Operation *op, const Twine &reason) {
  if (!unsupported.insert(op).second)
    return;
  InFlightDiagnostic error = op->emitError()
                             << "the CPU backend cannot compile '"
                             << op->getName() << "'";
  if (!reason.isTriviallyEmpty())
    error << " " << reason.str();
  // Users of a tile of pointers need its base.
  for (Value result : op->getResults())
    if (isPointerTile(result.getType()))
      bases[result] = getOpaqueNull(builder, op->getLoc());
}

Value Lowering::getPoison(OpBuilder &b, Location loc, Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::ZeroOp::create(b, loc, type);
  if (TypedAttr zero = b.getZeroAttr(type))
    return arith::ConstantOp::create(b, loc, zero);
  // A placeholder for results that cannot be lowered, until the function fails.
  return UnrealizedConversionCastOp::create(b, loc, type, ValueRange())
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// The launch context
//===----------------------------------------------------------------------===//

Value Lowering::getContextField(OpBuilder &b, Location loc, unsigned index) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address =
      LLVM::GEPOp::create(b, loc, pointer, b.getI32Type(), context,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)},
                          LLVM::GEPNoWrapFlags::inbounds);
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), address, /*alignment=*/4,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

/// A null pointer that LLVM does not recognise as null: addresses that are
/// computed from it may be any address.
Value Lowering::getOpaqueNull(OpBuilder &b, Location loc) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), context,
                                      ArrayRef<LLVM::GEPArg>{3},
                                      LLVM::GEPNoWrapFlags::inbounds);
  return LLVM::LoadOp::create(b, loc, pointer, address);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Lowering::forEach(
    Location loc, ArrayRef<int64_t> shape,
    llvm::function_ref<void(OpBuilder &, ArrayRef<Value>)> body) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> indices;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  for (int64_t size : shape) {
    Value end = arith::ConstantIndexOp::create(builder, loc, size);
    auto loop = scf::ForOp::create(builder, loc, zero, end, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  body(builder, indices);
}

SmallVector<Value> Lowering::generate(
    Location loc, ArrayRef<RankedTensorType> types, ValueRange destinations,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, ArrayRef<Value>,
                                          ValueRange)>
        body) {
  SmallVector<Value> outputs(destinations);
  if (outputs.empty())
    for (RankedTensorType type : types)
      outputs.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                                type.getElementType()));
  int64_t rank = types.front().getRank();
  SmallVector<AffineMap> maps(types.size(), AffineMap::getMultiDimIdentityMap(
                                                rank, builder.getContext()));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, ValueRange(outputs).getTypes(), ValueRange{}, outputs, maps,
      iterators, [&](OpBuilder &b, Location loc, ValueRange elements) {
        SmallVector<Value> indices;
        for (int64_t i = 0; i < rank; ++i)
          indices.push_back(linalg::IndexOp::create(b, loc, i));
        linalg::YieldOp::create(b, loc, body(b, indices, elements));
      });
  return SmallVector<Value>(generic.getResults());
}

/// A scalar in its storage type.
static Value toStorage(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  return value;
}

Value Lowering::getTensor(Value tile, Value destination) {
  if (Value tensor = findTensor(tile))
    return tensor;
  RankedTensorType type = getStorageTensor(asTile(tile.getType()));
  // Tables stay constants.
  if (auto constant = tile.getDefiningOp<arith::ConstantOp>())
    if (auto table = dyn_cast<DenseElementsAttr>(constant.getValue());
        table && !table.isSplat() && type == tile.getType())
      return arith::ConstantOp::create(builder, tile.getLoc(), table);
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange elements) {
    Element element(*this, b);
    if (destination)
      element.bind(destination, indices, elements.front());
    return SmallVector<Value>{
        toStorage(b, tile.getLoc(), element.get(tile, indices))};
  };
  return generate(tile.getLoc(), type,
                  destination ? ValueRange(destination) : ValueRange(), body)
      .front();
}

Value Lowering::getOffsetTensor(Value tile, Value destination) {
  if (Value tensor = findTensor(tile))
    return tensor;
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange elements) {
    Element element(*this, b);
    if (destination)
      element.bind(destination, indices, elements.front());
    return SmallVector<Value>{element.getOffset(tile, indices)};
  };
  return generate(tile.getLoc(), getStorageTensor(asTile(tile.getType())),
                  destination ? ValueRange(destination) : ValueRange(), body)
      .front();
}

const std::pair<Value, Value> *Lowering::findMoved(Value tile) const {
  auto it = moved.find(tile);
  return it == moved.end() ? nullptr : &it->second;
}

/// Whether a loop's carried tile is read after `op`, in this iteration.
bool Lowering::readsLater(BlockArgument carried, Operation *op) {
  for (Operation *root : placement.getRoots(carried)) {
    Operation *reader = op->getBlock()->findAncestorOpInBlock(*root);
    if (!reader || (reader != op && !reader->isBeforeInBlock(op)))
      return true;
  }
  return false;
}

/// Whether computing `tile`, down to tiles that are stored, reads `other`.
bool Lowering::dependsOn(Value tile, Value other) {
  if (tile == other)
    return true;
  Operation *op = tile.getDefiningOp();
  if (findTensor(tile) || !op)
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return asTile(operand.getType()) && dependsOn(operand, other);
  });
}

/// If a loop yields the tile, the carried tensor that it can be written to,
/// because nothing reads that any more.
Value Lowering::findDestination(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (options.copyCarried || !op)
    return {};
  for (OpOperand &use : tile.getUses()) {
    auto yield = dyn_cast<scf::YieldOp>(use.getOwner());
    if (!yield || yield->getBlock() != tile.getParentBlock())
      continue;
    auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
    if (!loop)
      continue;
    BlockArgument replaced = loop.getRegionIterArg(use.getOperandNumber());
    Value carried = findTensor(replaced);
    if (carried && !readsLater(replaced, op))
      return carried;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value Lowering::getUniform(Value tile) {
  Element element(*this, builder);
  SmallVector<Value> indices(
      asTile(tile.getType()).getRank(),
      arith::ConstantIndexOp::create(builder, tile.getLoc(), 0));
  return element.get(tile, indices);
}

/// Uniform offsets are added to the base of a tile of pointers.
void Lowering::lowerPointerTile(Operation *op) {
  Value tile = op->getResult(0);
  Location loc = op->getLoc();
  if (auto splat = dyn_cast<tt::SplatOp>(op)) {
    bases[tile] = getScalar(splat.getSrc());
  } else if (auto add = dyn_cast<tt::AddPtrOp>(op)) {
    Value base = getBase(add.getPtr());
    if (base && placement.isUniform(add.getOffset())) {
      Value step = getUniform(add.getOffset());
      if (!step.getType().isInteger(64))
        step = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), step);
      Value size = arith::ConstantOp::create(
          builder, loc,
          builder.getI64IntegerAttr(getPointeeSize(tile.getType())));
      step = arith::MulIOp::create(builder, loc, step, size);
      base =
          LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(),
                              base, ArrayRef<LLVM::GEPArg>{step});
    }
    bases[tile] = base;
  } else if (tt::isMove(op) || isa<tt::BitcastOp>(op)) {
    bases[tile] = getBase(op->getOperand(0));
  } else if (isa<tt::IntToPtrOp, arith::SelectOp>(op)) {
    bases[tile] = getOpaqueNull(builder, loc);
  } else {
    fail(op, "on pointers");
  }
}

/// An operation on tiles whose elements can be computed one by one.
void Lowering::lowerTile(Operation *op) {
  for (Value result : op->getResults()) {
    if (isPointerTile(result.getType()))
      lowerPointerTile(op);
    else if (placement.isStored(result))
      tensors[result] = getTensor(result, findDestination(result));
  }
}

void Lowering::lower(Operation *op) {
  builder.setInsertionPointToEnd(builder.getInsertionBlock());
  llvm::TypeSwitch<Operation *>(op)
      .Case<tt::GetProgramIdOp>([&](auto id) {
        setScalar(id,
                  getContextField(builder, op->getLoc(), id.getAxisAsInt()));
      })
      .Case<tt::GetNumProgramsOp>([&](auto size) {
        setScalar(size, getContextField(builder, op->getLoc(),
                                        3 + size.getAxisAsInt()));
      })
      .Case([&](tt::LoadOp load) { lowerLoad(load); })
      .Case([&](tt::StoreOp store) { lowerStore(store); })
      .Case([&](tt::AtomicRMWOp atomic) { lowerAtomicRMW(atomic); })
      .Case([&](tt::AtomicCASOp atomic) { lowerAtomicCAS(atomic); })
      .Case([&](tt::ReduceOp reduce) { lowerReduce(reduce); })
      .Case([&](tt::ScanOp scan) { lowerScan(scan); })
      .Case([&](tt::MapElementwiseOp map) { lowerMap(map); })
      .Case([&](tt::HistogramOp histogram) { lowerHistogram(histogram); })
      .Case([&](tt::DotOp dot) { lowerDot(dot); })
      .Case([&](tt::AssertOp assertion) { lowerAssert(assertion); })
      .Case([&](tt::PrintOp print) { lowerPrint(print); })
      .Case([&](tt::CallOp call) { lowerCall(call); })
      .Case([&](tt::ReturnOp ret) { lowerReturn(ret); })
      .Case([&](scf::ForOp loop) { lowerFor(loop); })
      .Case([&](scf::IfOp branch) { lowerIf(branch); })
      .Case([&](scf::WhileOp loop) { lowerWhile(loop); })
      .Case<cf::BranchOp, cf::CondBranchOp>(
          [&](Operation *) { lowerBranch(op); })
      .Case([&](tt::UnsplatOp unsplat) {
        setScalar(unsplat, getUniform(unsplat.getSrc()));
      })
      // One thread runs a program, so there is nothing to wait for.
      .Case<gpu::BarrierOp, tt::GridDependencyWaitOp,
            tt::GridDependencyLaunchDependentsOp, LLVM::AssumeOp,
            triton::gpu::BarrierOp>([](Operation *) {})
      .Default([&](Operation *) {
        bool hasTiles = llvm::any_of(op->getResultTypes(),
                                     [](Type t) { return asTile(t); });
        if (hasTiles &&
            (Placement::isElementwise(op) || Placement::isRearranging(op) ||
             isa<arith::ConstantOp, ub::PoisonOp, tt::GatherOp>(op)))
          return lowerTile(op);
        if (hasTiles || op->getNumResults() != 1 || op->getNumRegions() != 0)
          return fail(op);
        SmallVector<Value> operands;
        for (Value operand : op->getOperands()) {
          operands.push_back(getScalar(operand));
          if (!operands.back())
            return fail(op);
        }
        setScalar(op->getResult(0), lowerScalar(builder, op, operands));
      });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult Lowering::run() {
  MLIRContext *ctx = source.getContext();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(source);
  SmallVector<Type> inputs, results;
  for (Type type : source.getArgumentTypes())
    convertType(type, inputs);
  inputs.push_back(LLVM::LLVMPointerType::get(ctx));
  for (Type type : source.getResultTypes())
    convertType(type, results);
  auto target = func::FuncOp::create(builder, source.getLoc(), source.getName(),
                                     FunctionType::get(ctx, inputs, results));
  target.setVisibility(source.isPrivate() ? SymbolTable::Visibility::Private
                                          : SymbolTable::Visibility::Public);

  // Blocks first: branches may go forward.
  for (Block &block : source.getBody()) {
    Block *copy = new Block();
    target.getBody().push_back(copy);
    blocks[&block] = copy;
    SmallVector<Type> types;
    for (BlockArgument arg : block.getArguments())
      convertType(arg.getType(), types);
    SmallVector<Location> locs(types.size(), source.getLoc());
    copy->addArguments(types, locs);
    bindArguments(copy->getArguments(), block.getArguments());
  }
  Block &entry = target.getBody().front();
  context = entry.addArgument(inputs.back(), source.getLoc());
  builder.setInsertionPointToEnd(&entry);
  source.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "autodiff")
      fail(op, "which is not part of a kernel");
  });
  // If these are unsupported, their users cannot be lowered, either.
  if (unsupported.empty())
    for (Block &block : source.getBody()) {
      builder.setInsertionPointToEnd(blocks[&block]);
      lowerBlock(block);
    }
  if (!unsupported.empty()) {
    target.erase();
    return failure();
  }
  source.erase();
  return success();
}
