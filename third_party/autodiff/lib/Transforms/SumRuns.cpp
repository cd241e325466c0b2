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
#include "FirstLane.h"
#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SUMRUNS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// A run that is shorter is not worth a sum over the tile.
constexpr int64_t kShortestRun = 64;

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

/// Adds what lanes with quotient `number` add, at once.
static void addRun(OpBuilder &b, triton::AtomicRMWOp op, Value quotient,
                   Value number) {
  Location loc = op.getLoc();
  Value isRun =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, quotient,
                            splatTo(b, loc, number, quotient.getType()));
  if (op.getMask() && !mutation::isMade("runs:masked lanes"))
    isRun = arith::AndIOp::create(b, loc, isRun, op.getMask());
  Type type = op.getVal().getType();
  Value values = arith::SelectOp::create(b, loc, isRun, op.getVal(),
                                         constantOf(b, loc, type, 0.0));
  Value lanes = arith::UIToFPOp::create(
      b, loc, withElementType(type, b.getF32Type()), isRun);
  Value count = sumOver(b, loc, lanes, 0);
  Value isAny = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, count,
                                      constantOf(b, loc, b.getF32Type(), 0.0));
  IRMapping known;
  known.map(quotient, number);
  Value pointer = getFirstLane(b, op.getPtr(), 0, known);
  Value sum = sumOver(b, loc, values, 0);
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
  Value most =
      integerOf(b, loc, others.getType(), type.getDimSize(0) / kShortestRun);
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
        type.getRank() == 1 && type.getDimSize(0) >= kShortestRun &&
        findQuotient(op.getPtr(), quotient) && quotient)
      found.push_back({op, quotient});
  });
  for (auto [op, quotient] : found)
    sumRuns(op, quotient);
}
