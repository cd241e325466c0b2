//===- SharedBlocks.cpp - Blocks that several runs add to -----------------===//
#include "SharedBlocks.h"

#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Expr.h"
#include "autodiff/Support/Target.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::pointInto(OpBuilder &b, Location loc, Value base,
                                Value offset) {
  Type type = withElementType(offset.getType(), base.getType());
  return triton::AddPtrOp::create(b, loc, type, splatTo(b, loc, base, type),
                                  offset);
}

SharedBlocks::SharedBlocks(triton::FuncOp kernel, Value tally,
                           const SumBlocks &blocks)
    : blocks(blocks), b(OpBuilder::atBlockEnd(&kernel.getBody().front())),
      loc(kernel.getLoc()),
      together(
          std::max<int64_t>(1, Target::kElementsOfGroup / blocks.getLength())) {
  b.setInsertionPoint(triton::ReturnOp::create(b, loc));
  ExprAttr one = ExprAttr::get(b.getContext(), 1);
  setGrid(kernel,
          {ceilDivOf(blocks.count(), Target::kGroups * together), one, one});
  Value id = castInteger(b, loc, triton::GetProgramIdOp::create(b, loc, 0),
                         b.getI64Type());
  Value programs = castInteger(
      b, loc, triton::GetNumProgramsOp::create(b, loc, 0), b.getI64Type());
  auto groupAt = [&](Value step) -> Value {
    step = castInteger(b, loc, step, b.getI64Type());
    Type type = step.getType();
    Value distance =
        arith::MulIOp::create(b, loc, step, splatTo(b, loc, programs, type));
    return arith::AddIOp::create(b, loc, splatTo(b, loc, id, type), distance);
  };
  Value numbers = toBlocks(groupAt(range(Target::kGroups)));
  enterIfShared(loadTally(tally, numbers));
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(Target::kGroups),
                                 constant(1));
  b.setInsertionPointToStart(loop.getBody());
  numbers = toBlocks(groupAt(loop.getInductionVar()));
  Value tallies = loadTally(tally, numbers);
  enterIfShared(tallies);
  findElements(numbers, tallies);
}

Value SharedBlocks::constant(int64_t number) {
  return integerOf(b, loc, b.getI32Type(), number);
}

Value SharedBlocks::range(int64_t size) {
  return triton::MakeRangeOp::create(
      b, loc, RankedTensorType::get({size}, b.getI32Type()), 0, size);
}

/// The numbers of the blocks of a group, or of a tile of groups.
Value SharedBlocks::toBlocks(Value groups) {
  Value first = arith::MulIOp::create(
      b, loc, groups, integerOf(b, loc, groups.getType(), together));
  Value place = castInteger(b, loc, range(together), b.getI64Type());
  auto type = cast<RankedTensorType>(place.getType());
  if (auto tile = dyn_cast<RankedTensorType>(groups.getType())) {
    type =
        RankedTensorType::get({tile.getDimSize(0), together}, b.getI64Type());
    place = repeatAlong(b, loc, place, 0, type);
    first = repeatAlong(b, loc, first, 1, type);
  } else {
    first = splatTo(b, loc, first, type);
  }
  return arith::AddIOp::create(b, loc, first, place);
}

Value SharedBlocks::loadTally(Value tally, Value numbers) {
  Value total = SizeOp::create(b, loc, blocks.count());
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, numbers,
                            splatTo(b, loc, total, numbers.getType()));
  Type type = withElementType(numbers.getType(), b.getI32Type());
  return triton::LoadOp::create(b, loc, pointInto(b, loc, tally, numbers),
                                exists, integerOf(b, loc, type, 0));
}

/// Emits a branch for what follows, which is taken if several runs add to one
/// of these blocks.
void SharedBlocks::enterIfShared(Value tallies) {
  Value most = reduceAll<arith::MaxSIOp>(b, loc, tallies);
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, most,
                                    constant(1));
  auto branch = scf::IfOp::create(b, loc, any, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

/// Broadcasts values of blocks to the lanes of each block.
Value SharedBlocks::spread(Value ofBlocks) {
  auto type = RankedTensorType::get({together, blocks.getLength()},
                                    getElementTypeOrSelf(ofBlocks.getType()));
  return repeatAlong(b, loc, ofBlocks, 1, type);
}

void SharedBlocks::findElements(Value numbers, Value tallies) {
  SumBlocks::Elements elements = blocks.elementsOf(b, loc, numbers);
  offset = elements.offset;
  auto type =
      RankedTensorType::get({together, blocks.getLength()}, b.getI32Type());
  lane = repeatAlong(b, loc, range(blocks.getLength()), 0, type);
  auto number = [&](int64_t value) {
    return integerOf(b, loc, tallies.getType(), value);
  };
  Value isShared = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                         tallies, number(1));
  Value end =
      arith::SelectOp::create(b, loc, isShared, elements.end, number(0));
  mask = arith::AndIOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, lane,
                            spread(elements.begin)),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lane,
                            spread(end)));
}

Value SharedBlocks::point(Value memory) {
  Value first = spread(pointInto(b, loc, memory, offset));
  return triton::AddPtrOp::create(b, loc, first.getType(), first, lane);
}
