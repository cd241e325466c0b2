//===- While.cpp - Loops that end when they find out ----------------------===//
//
// autodiff-normalize has moved all work into the body and made the number of
// iterations a result. So this is a loop with a known count.
//
//===----------------------------------------------------------------------===//
#include "LoopReversal.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

static LogicalResult reverseWhile(scf::WhileOp op, Adjoint &adjoint) {
  std::optional<unsigned> counter = findCounter(op);
  if (!counter || !llvm::hasSingleElement(*op.getBeforeBody()))
    return op.emitError("expected a loop that carries its condition and the "
                        "number of iterations; run autodiff-normalize first");
  // From the body's point of view, the loop carries the values that are passed
  // to the body. Those that come from outside of the loop do not change.
  SmallVector<Value> inits, nexts;
  for (Value passed : op.getConditionOp().getArgs()) {
    auto argument = dyn_cast<BlockArgument>(passed);
    bool isCarried = argument && argument.getOwner() == op.getBeforeBody();
    unsigned index = isCarried ? argument.getArgNumber() : 0;
    inits.push_back(isCarried ? op.getInits()[index] : passed);
    nexts.push_back(isCarried ? op.getYieldedValues()[index] : passed);
  }
  Value count = adjoint.primal(op.getResult(*counter));
  return LoopReversal(op, op.getAfterBody(), op.getAfterArguments(), inits,
                      nexts, adjoint)
      .run(count);
}

/// The loop carries each value with its tangent, and passes both to its body.
static LogicalResult pushWhile(scf::WhileOp op, Tangents &tangents) {
  OpBuilder &b = tangents.builder;
  ValueRange before = op.getBeforeArguments(), after = op.getAfterArguments();
  auto loop = scf::WhileOp::create(b, tangents.loc(), tangents.pairTypes(after),
                                   tangents.pair(op.getInits(), before),
                                   /*beforeBuilder=*/nullptr,
                                   /*afterBuilder=*/nullptr);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBeforeBody());
  tangents.bind(before, loop.getBeforeArguments(), before);
  if (failed(tangents.push(*op.getBeforeBody())))
    return failure();
  scf::ConditionOp end = op.getConditionOp();
  scf::ConditionOp::create(b, end.getLoc(), tangents.primal(end.getCondition()),
                           tangents.pair(end.getArgs(), after));
  b.setInsertionPointToStart(loop.getAfterBody());
  tangents.bind(after, loop.getAfterArguments(), after);
  if (failed(tangents.push(*op.getAfterBody())))
    return failure();
  scf::YieldOp::create(b, op.getLoc(),
                       tangents.pair(op.getYieldedValues(), before));
  tangents.bind(op.getResults(), loop.getResults(), after);
  return success();
}

void mlir::autodiff::addWhileRules(RuleTable &table) {
  table.add<scf::WhileOp>("as many iterations as the loop had, reversed in "
                          "reverse order, as in a for loop",
                          reverseWhile, pushWhile);
}
