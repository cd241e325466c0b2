//===- ResizeTiles.cpp - Longer and shorter tiles -------------------------===//
#include "ResizeTiles.h"

#include "TileResizes.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Emits the kernel in which values have the resizes that are needed
/// (TileResizes.h).
class ResizedKernel {
public:
  ResizedKernel(triton::FuncOp source, const TileResizes &resizes)
      : source(source), resizes(resizes), loop(resizes.getLoop()),
        factor(resizes.getFactor()) {}

  triton::FuncOp build();

private:
  Type typeIn(Type type, Resize resize) const;
  Value lookup(Value value, Resize resize) const;
  SmallVector<unsigned> keptResults(Operation *op) const;
  void emit(Block &block, OpBuilder &b);
  void emit(Operation *op, Resize resize, OpBuilder &b);
  Operation *clone(Operation *op, ValueRange operands, Resize resize,
                   OpBuilder &b) const;
  void emitPrograms(ProgramsOp op, OpBuilder &b);
  void emitStore(Operation *op, OpBuilder &b);
  void emitLoop(scf::ForOp op, OpBuilder &b);
  void emitBranch(scf::IfOp op, OpBuilder &b);
  void emitShortened(OpBuilder &b);
  void emitYield(Block &block, ArrayRef<unsigned> kept, Operation *parent,
                 OpBuilder &b);

  triton::FuncOp source;
  const TileResizes &resizes;
  scf::ForOp loop;
  unsigned factor;
  llvm::DenseMap<std::pair<Value, Resize>, Value> values;
  Value offset; // of the part within the tile
};
} // namespace

Type ResizedKernel::typeIn(Type type, Resize resize) const {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || resize < 0)
    return type;
  SmallVector<int64_t> shape(tile.getShape());
  shape[resize] = resizes.getLength();
  return tile.clone(shape);
}

Value ResizedKernel::lookup(Value value, Resize resize) const {
  return values.lookup({value, TileResizes::simplify(value, resize)});
}

void ResizedKernel::emit(Operation *op, Resize resize, OpBuilder &b) {
  Location loc = op->getLoc();
  auto type = [&](unsigned number) {
    return typeIn(op->getResult(number).getType(), resize);
  };
  auto put = [&](unsigned number, Value value) {
    values[{op->getResult(number), resize}] = value;
  };
  DenseElementsAttr elements;
  if (resize >= 0 && matchPattern(op, m_Constant(&elements)))
    return put(0, arith::ConstantOp::create(
                      b, loc, elements.resizeSplat(cast<ShapedType>(type(0)))));
  if (auto range = dyn_cast<triton::MakeRangeOp>(op); range && resize >= 0) {
    auto tile = cast<RankedTensorType>(type(0));
    Value positions = triton::MakeRangeOp::create(
        b, loc, tile, range.getStart(),
        range.getStart() + static_cast<uint32_t>(tile.getDimSize(0)));
    if (offset) {
      Value first = triton::SplatOp::create(b, loc, tile, offset);
      positions = arith::AddIOp::create(b, loc, positions, first);
    }
    return put(0, positions);
  }
  SmallVector<Resize> needed = *TileResizes::ofOperands(op, resize);
  SmallVector<Value> operands;
  for (auto [operand, each] : llvm::zip_equal(op->getOperands(), needed))
    operands.push_back(lookup(operand, each));
  Operation *copy = clone(op, operands, resize, b);
  for (auto [number, result] : llvm::enumerate(copy->getResults()))
    put(number, result);
}

Operation *ResizedKernel::clone(Operation *op, ValueRange operands,
                                Resize resize, OpBuilder &b) const {
  return cloneOnto(b, op, operands,
                   [&](Type type) { return typeIn(type, resize); });
}

void ResizedKernel::emitPrograms(ProgramsOp op, OpBuilder &b) {
  auto copy = cast<ProgramsOp>(b.clone(*op));
  for (auto [old, place] : llvm::zip_equal(op.getPlaces(), copy.getPlaces()))
    values[{old, kSame}] = place;
  if (!resizes.isWidening() || resizes.getDigit().getDefiningOp() != op)
    return;
  unsigned number = cast<OpResult>(resizes.getDigit()).getResultNumber();
  SmallVector<Attribute> extents(op.getExtents().getValue());
  extents[number] = divOf(cast<ExprAttr>(extents[number]), factor);
  copy.setExtentsAttr(b.getArrayAttr(extents));
  Value count =
      arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(factor));
  values[{resizes.getDigit(), kSame}] =
      arith::MulIOp::create(b, op.getLoc(), copy.getPlaces()[number], count);
}

void ResizedKernel::emitStore(Operation *op, OpBuilder &b) {
  Resize resize = resizes.ofStore(op);
  auto operands = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return lookup(value, resize); });
  Operation *copy = clone(op, operands, resize, b);
  if (resize >= 0)
    copy->removeAttr(kDividedAttr);
}

SmallVector<unsigned> ResizedKernel::keptResults(Operation *op) const {
  SmallVector<unsigned> kept;
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (resizes.ofCarried(op, number))
      kept.push_back(number);
  return kept;
}

void ResizedKernel::emitYield(Block &block, ArrayRef<unsigned> kept,
                              Operation *parent, OpBuilder &b) {
  Operation *yield = block.getTerminator();
  SmallVector<Value> results;
  for (unsigned number : kept) {
    Resize resize =
        parent == loop ? kSummand : *resizes.ofCarried(parent, number);
    results.push_back(lookup(yield->getOperand(number), resize));
  }
  scf::YieldOp::create(b, yield->getLoc(), results);
}

void ResizedKernel::emitLoop(scf::ForOp op, OpBuilder &b) {
  SmallVector<unsigned> kept = keptResults(op);
  if (kept.empty() && !mayWrite(op))
    return;
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  for (unsigned number : kept)
    inits.push_back(
        lookup(op.getInitArgs()[number], *resizes.ofCarried(op, number)));
  auto get = [&](Value bound) { return lookup(bound, kSame); };
  Value lower = get(op.getLowerBound()), upper = get(op.getUpperBound());
  Type type = lower.getType();
  auto constant = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, value));
  };
  if (op == loop) {
    lower = arith::MulIOp::create(b, loc, lower, constant(b, factor));
    upper = arith::MulIOp::create(b, loc, upper, constant(b, factor));
  }
  auto copy =
      scf::ForOp::create(b, loc, lower, upper, get(op.getStep()), inits);
  copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (op == loop)
    copy->removeAttr(kDividedAttr);
  for (auto [place, number] : llvm::enumerate(kept)) {
    Resize resize = *resizes.ofCarried(op, number);
    values[{op.getRegionIterArg(number), op == loop ? kSummand : resize}] =
        copy.getRegionIterArg(place);
    values[{op.getResult(number), resize}] = copy.getResult(place);
  }
  // A loop without results is made with its terminator.
  if (kept.empty())
    copy.getBody()->getTerminator()->erase();
  OpBuilder inside = OpBuilder::atBlockEnd(copy.getBody());
  Value index = copy.getInductionVar();
  if (op == loop) {
    Value part =
        arith::RemSIOp::create(inside, loc, index, constant(inside, factor));
    offset = castInteger(
        inside, loc,
        arith::MulIOp::create(inside, loc, part,
                              constant(inside, resizes.getLength())),
        b.getI32Type());
    index =
        arith::DivSIOp::create(inside, loc, index, constant(inside, factor));
    values[{resizes.getDigit(), kSame}] = index;
    emitShortened(inside);
  }
  values[{op.getInductionVar(), kSame}] = index;
  emit(*op.getBody(), inside);
  emitYield(*op.getBody(), kept, op, inside);
}

/// Emits the shorter parts of values that the old kernel computes before the
/// loop.
void ResizedKernel::emitShortened(OpBuilder &b) {
  source.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == loop)
      return WalkResult::interrupt();
    for (Resize resize : resizes.ofResults(op))
      if (resize >= 0)
        emit(op, resize, b);
    return WalkResult::advance();
  });
}

void ResizedKernel::emitBranch(scf::IfOp op, OpBuilder &b) {
  SmallVector<unsigned> kept = keptResults(op);
  if (kept.empty())
    return;
  SmallVector<Type> types;
  for (unsigned number : kept)
    types.push_back(
        typeIn(op.getResult(number).getType(), *resizes.ofCarried(op, number)));
  auto copy =
      scf::IfOp::create(b, op.getLoc(), types, lookup(op.getCondition(), kSame),
                        /*withElseRegion=*/true);
  for (auto [place, number] : llvm::enumerate(kept))
    values[{op.getResult(number), *resizes.ofCarried(op, number)}] =
        copy.getResult(place);
  OpBuilder then = copy.getThenBodyBuilder();
  emit(*op.thenBlock(), then);
  emitYield(*op.thenBlock(), kept, op, then);
  OpBuilder otherwise = copy.getElseBodyBuilder();
  emit(*op.elseBlock(), otherwise);
  emitYield(*op.elseBlock(), kept, op, otherwise);
}

void ResizedKernel::emit(Block &block, OpBuilder &b) {
  for (Operation &op : block) {
    if (auto inner = dyn_cast<scf::ForOp>(op)) {
      emitLoop(inner, b);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      emitBranch(branch, b);
    } else if (TileResizes::isStore(&op)) {
      emitStore(&op, b);
    } else if (auto programs = dyn_cast<ProgramsOp>(op)) {
      emitPrograms(programs, b);
    } else if (isa<triton::ReturnOp>(op)) {
      b.clone(op);
    } else {
      for (Resize resize : resizes.ofResults(&op))
        if (resize < 0 || resizes.isWidening() || loop->isAncestor(&op))
          emit(&op, resize, b);
    }
  }
}

triton::FuncOp ResizedKernel::build() {
  auto target = cast<triton::FuncOp>(source->cloneWithoutRegions());
  OpBuilder builder(source);
  builder.setInsertionPointAfter(source);
  builder.insert(target);
  Block *body = builder.createBlock(&target.getBody());
  for (BlockArgument argument : source.getArguments())
    values[{argument, kSame}] =
        body->addArgument(argument.getType(), argument.getLoc());
  builder.setInsertionPointToEnd(body);
  emit(source.getBody().front(), builder);
  return target;
}

triton::FuncOp
mlir::autodiff::widenTiles(triton::FuncOp kernel, OpResult place,
                           unsigned factor,
                           SmallVectorImpl<ExprAttr> &conditions) {
  TileResizes resizes(kernel, place, factor);
  if (failed(resizes.collect()))
    return {};
  triton::FuncOp wider = ResizedKernel(kernel, resizes).build();
  llvm::append_range(conditions, resizes.getConditions());
  auto programs = cast<ProgramsOp>(place.getOwner());
  auto extent = cast<ExprAttr>(programs.getExtents()[place.getResultNumber()]);
  // The remainder is zero.
  conditions.push_back(maxOf(0, subOf(1, remOf(extent, factor))));
  return wider;
}

triton::FuncOp mlir::autodiff::narrowTiles(triton::FuncOp kernel,
                                           scf::ForOp loop, unsigned factor) {
  if (!matchPattern(loop.getStep(), m_One()))
    return {};
  TileResizes resizes(kernel, loop.getInductionVar(), factor);
  if (failed(resizes.collect()))
    return {};
  return ResizedKernel(kernel, resizes).build();
}
