//===- For.cpp - Counted loops --------------------------------------------===//
#include "LoopReversal.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class ForReversal : public LoopReversal {
public:
  ForReversal(scf::ForOp loop, Adjoint &adjoint)
      : LoopReversal(loop, loop.getBody(), loop.getRegionIterArgs(),
                     loop.getInitArgs(), loop.getYieldedValues(), adjoint),
        induction(loop.getInductionVar()),
        lower(adjoint.primal(loop.getLowerBound())),
        step(adjoint.primal(loop.getStep())) {}

private:
  void bindInduction(Value iteration) override {
    Value offset = arith::MulIOp::create(b, loc, iteration, step);
    adjoint.primals.map(induction,
                        arith::AddIOp::create(b, loc, lower, offset));
  }

  Value induction, lower, step;
};
} // namespace

static LogicalResult reverseFor(scf::ForOp op, Adjoint &adjoint) {
  // A loop is named after the first value that it carries, which must not be
  // the count.
  Value count = countIterations(
      adjoint.builder, withoutVariable(adjoint.loc()),
      adjoint.primal(op.getLowerBound()), adjoint.primal(op.getUpperBound()),
      adjoint.primal(op.getStep()), op.getUnsignedCmp());
  return ForReversal(op, adjoint).run(count);
}

/// The loop carries each value with its tangent.
static LogicalResult pushFor(scf::ForOp op, Tangents &tangents) {
  OpBuilder &b = tangents.builder;
  ValueRange carried = op.getRegionIterArgs();
  LogicalResult result = success();
  auto loop = scf::ForOp::create(
      b, tangents.loc(), tangents.primal(op.getLowerBound()),
      tangents.primal(op.getUpperBound()), tangents.primal(op.getStep()),
      tangents.pair(op.getInitArgs(), carried),
      [&](OpBuilder &, Location, Value induction, ValueRange pairs) {
        tangents.primals.map(op.getInductionVar(), induction);
        tangents.bind(carried, pairs, carried);
        result = tangents.push(*op.getBody());
        if (succeeded(result))
          scf::YieldOp::create(b, op.getLoc(),
                               tangents.pair(op.getYieldedValues(), carried));
      },
      op.getUnsignedCmp());
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  tangents.bind(op.getResults(), loop.getResults(), carried);
  return result;
}

void mlir::autodiff::addForRules(RuleTable &table) {
  table.add<scf::ForOp>("iterations reversed in reverse order; carried primal "
                        "values from the iteration's number, from where the "
                        "loop stored them, or a tape",
                        reverseFor, pushFor);
}
