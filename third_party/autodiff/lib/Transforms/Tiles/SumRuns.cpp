//===- SumRuns.cpp - One addition for neighbours that share an address ----===//
//
// Neighbours in a tile whose positions p have the same quotient p / d, pixels
// of a channel, add to the same element, one after the other. If there are few
// such runs in a tile, which only the program can tell, they are summed first:
//
//   for q in p₀ / d … (p₀ + T − 1) / d: add(address(q), Σ value where p / d =
//   q)
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Rules/FirstLane.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
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

/// Finds the only quotient p / d, of neighbouring positions by one number, on
/// which it depends in which lane `value` is; false if there is anything else.
static bool findQuotient(Value value, Operation *&quotient) {
  if (findLaneStep(value, 0) == 0)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op))
    return false;
  if (isa<arith::DivSIOp, arith::DivUIOp>(op) &&
      findLaneStep(op->getOperand(0), 0) == 1 &&
      findLaneStep(op->getOperand(1), 0) == 0) {
    if (!quotient)
      quotient = op;
    return quotient == op;
  }
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return findQuotient(operand, quotient);
  });
}

/// The sum of `values` in lanes of the run, and whether there are any.
static std::pair<Value, Value> sumOfRun(OpBuilder &b, Location loc,
                                        Value values, Value isRun) {
  Type type = values.getType(), element = getElementTypeOrSelf(type);
  values = arith::SelectOp::create(b, loc, isRun, values,
                                   constantOf(b, loc, type, 0.0));
  Type flag = b.getI32Type();
  Value flags =
      arith::ExtUIOp::create(b, loc, withElementType(type, flag), isRun);
  auto reduce =
      triton::ReduceOp::create(b, loc, ValueRange{values, flags}, /*axis=*/0);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&reduce.getCombineOp(), {},
                                {element, flag, element, flag},
                                SmallVector<Location>(4, loc));
    ValueRange args = body->getArguments();
    Value sum = arith::AddFOp::create(b, loc, args[0], args[2]);
    Value any = arith::OrIOp::create(b, loc, args[1], args[3]);
    triton::ReduceReturnOp::create(b, loc, ValueRange{sum, any});
  }
  Value isAny =
      arith::TruncIOp::create(b, loc, b.getI1Type(), reduce->getResult(1));
  return {reduce->getResult(0), isAny};
}

/// Adds what lanes with quotient `number` add, at once.
static void addRun(OpBuilder &b, triton::AtomicRMWOp op, Value quotient,
                   Value number) {
  Location loc = op.getLoc();
  Value isRun =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, quotient,
                            splatTo(b, loc, number, quotient.getType()));
  if (op.getMask() && !mutation::isMade("runs:masked lanes"))
    isRun = arith::AndIOp::create(b, loc, isRun, op.getMask());
  auto [sum, isAny] = sumOfRun(b, loc, op.getVal(), isRun);
  IRMapping known;
  known.map(quotient, number);
  Value pointer = getFirstLane(b, op.getPtr(), 0, known);
  triton::AtomicRMWOp::create(b, loc, sum.getType(), op.getAtomicRmwOp(),
                              pointer, sum, isAny, op.getSem(), op.getScope());
}

static void sumRuns(triton::AtomicRMWOp op, Operation *quotient) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getPtr().getType());
  Value number = quotient->getResult(0);
  Value first = getFirstLane(b, number, 0);
  Value position = getFirstLane(b, quotient->getOperand(0), 0);
  Value divisor = getFirstLane(b, quotient->getOperand(1), 0);
  // An address that the first quotient gives, others give, too.
  if (!first || !position || !divisor || !getFirstLane(b, op.getPtr(), 0))
    return;
  Value end = addInteger(Tile(b, loc, position), type.getDimSize(0) - 1);
  Operation *last = b.clone(*quotient);
  last->setOperands({end, divisor});
  last->getResult(0).setType(end.getType());
  dropHints(last);
  Value others = arith::SubIOp::create(b, loc, last->getResult(0), first);
  Value most = integerOf(b, loc, others.getType(),
                         type.getDimSize(0) / Target::kShortestRun);
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
    auto type = dyn_cast<RankedTensorType>(op.getPtr().getType());
    Operation *quotient = nullptr;
    if (op.getAtomicRmwOp() == triton::RMWOp::FADD && op->use_empty() && type &&
        type.getRank() == 1 && type.getDimSize(0) >= Target::kShortestRun &&
        findQuotient(op.getPtr(), quotient) && quotient)
      found.push_back({op, quotient});
  });
  for (auto [op, quotient] : found)
    sumRuns(op, quotient);
}
