//===- SumRuns.cpp - One addition for neighbours that share an address ----===//
//
// Lanes of a tile with the same quotient p / d of their position p (the pixels
// of a channel) add to the same element. They are neighbours. If a tile has
// only few quotients, which the program finds out when it runs, the lanes of
// each are summed first. From the position p₀ of the first lane to p₁ of the
// last:
//
//   for q in p₀ / d … p₁ / d: add(address(q), Σ value where p / d = q)
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/SharedQuotient.h"
#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SUMRUNS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SumRuns : autodiff::impl::SumRunsBase<SumRuns> {
  void runOnOperation() override;
};
} // namespace

/// The sum of `values` along the last axis, and whether any of `flags` is true.
static std::pair<Value, Value> sumLastAxis(OpBuilder &b, Location loc,
                                           Value values, Value flags) {
  auto type = cast<RankedTensorType>(values.getType());
  Type element = type.getElementType(), flag = getElementTypeOrSelf(flags);
  int axis = type.getRank() - 1;
  auto reduce =
      triton::ReduceOp::create(b, loc, ValueRange{values, flags}, axis);
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&reduce.getCombineOp(), {}, {element, flag, element, flag},
                    SmallVector<Location>(4, loc));
  ValueRange args = body->getArguments();
  Value sum = arith::AddFOp::create(b, loc, args[0], args[2]);
  Value any = arith::OrIOp::create(b, loc, args[1], args[3]);
  triton::ReduceReturnOp::create(b, loc, ValueRange{sum, any});
  return {reduce->getResult(0), reduce->getResult(1)};
}

/// The sum of `values` in the lanes of one quotient, and whether there are any.
static std::pair<Value, Value> sumOfRun(OpBuilder &b, Location loc,
                                        Value values, Value isRun) {
  Type type = values.getType();
  Value sum = arith::SelectOp::create(b, loc, isRun, values,
                                      constantOf(b, loc, type, 0.0));
  Value any = arith::ExtUIOp::create(
      b, loc, withElementType(type, b.getI32Type()), isRun);
  while (isa<RankedTensorType>(sum.getType()))
    std::tie(sum, any) = sumLastAxis(b, loc, sum, any);
  return {sum, arith::TruncIOp::create(b, loc, b.getI1Type(), any)};
}

/// The value in the very first lane; null if that needs more than arithmetic.
/// `known` has the values of some tiles in the first lanes of the first axis.
static Value getFirst(OpBuilder &b, Value tile, const IRMapping &known = {}) {
  while (tile && isa<RankedTensorType>(tile.getType()))
    tile = getFirstLane(b, tile, 0, known);
  return tile;
}

/// Adds the contributions of lanes with quotient `number` at once.
static void addRun(OpBuilder &b, triton::AtomicRMWOp op, Value quotient,
                   Value number) {
  Location loc = op.getLoc();
  Value isRun =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, quotient,
                            splatTo(b, loc, number, quotient.getType()));
  if (op.getMask() && !mutation::isMade("runs:masked lanes"))
    isRun = arith::AndIOp::create(b, loc, isRun, op.getMask());
  auto [sum, isAny] = sumOfRun(b, loc, op.getVal(), isRun);
  auto shape = cast<RankedTensorType>(quotient.getType()).getShape();
  IRMapping known;
  known.map(quotient, shape.size() == 1
                          ? number
                          : splatTo(b, loc, number,
                                    RankedTensorType::get(shape.drop_front(),
                                                          number.getType())));
  Value pointer = getFirst(b, op.getPtr(), known);
  triton::AtomicRMWOp::create(b, loc, sum.getType(), op.getAtomicRmwOp(),
                              pointer, sum, isAny, op.getSem(), op.getScope());
}

static void sumRuns(triton::AtomicRMWOp op, Operation *quotient) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value number = quotient->getResult(0);
  Value first = getFirst(b, number);
  Value position = getFirst(b, quotient->getOperand(0));
  Value divisor = getFirst(b, quotient->getOperand(1));
  // The address must be computable from any quotient.
  if (!first || !position || !divisor || !getFirst(b, op.getPtr()))
    return;
  Value end = addInteger(Tile(b, loc, position), getPositionSpan(quotient));
  Operation *last = b.clone(*quotient);
  last->setOperands({end, divisor});
  last->getResult(0).setType(end.getType());
  dropHints(last);
  Value others = arith::SubIOp::create(b, loc, last->getResult(0), first);
  Value most =
      integerOf(b, loc, others.getType(),
                elementsOf(op.getPtr().getType()) / Target::kShortestRun);
  Value areFew =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, others, most);
  auto branch = scf::IfOp::create(b, loc, areFew, /*withElse=*/true);
  op->moveBefore(branch.elseYield());
  b.setInsertionPoint(branch.thenYield());
  Value one = integerOf(b, loc, others.getType(), 1);
  Value beyond = arith::AddIOp::create(b, loc, last->getResult(0), one);
  auto loop = scf::ForOp::create(b, loc, first, beyond, one);
  b.setInsertionPointToStart(loop.getBody());
  addRun(b, op, number, loop.getInductionVar());
}

void SumRuns::runOnOperation() {
  SmallVector<std::pair<triton::AtomicRMWOp, Operation *>> found;
  getOperation().walk([&](triton::AtomicRMWOp op) {
    Value pointer = op.getPtr();
    if (op.getAtomicRmwOp() != triton::RMWOp::FADD || !op->use_empty() ||
        elementsOf(pointer.getType()) < Target::kShortestRun)
      return;
    if (Operation *quotient = findSharedQuotient(pointer))
      found.push_back({op, quotient});
  });
  for (auto [op, quotient] : found)
    sumRuns(op, quotient);
}
