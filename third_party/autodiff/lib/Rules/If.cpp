//===- If.cpp - Branches --------------------------------------------------===//
//
// Both sides are reversed under the same condition. What a side contributes to
// the adjoints of values from outside becomes a result of the reversed branch,
// and so does the condition outside of which it is zero.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Reverses one side into `target`; the contributions to `captures`, null for
/// none.
static FailureOr<SmallVector<Value>>
reverseSide(Region &side, ArrayRef<Value> resultAdjoints,
            ArrayRef<Value> captures, Region &target, Adjoint &adjoint) {
  OpBuilder::InsertionGuard guard(adjoint.builder);
  adjoint.builder.createBlock(&target);
  if (side.empty())
    return SmallVector<Value>(captures.size());
  Block &block = side.front();
  return adjoint.scoped(captures, [&] {
    adjoint.recompute(block);
    for (auto [yielded, cotangent] :
         llvm::zip(block.getTerminator()->getOperands(), resultAdjoints))
      adjoint.add(yielded, cotangent);
    return adjoint.reverse(block);
  });
}

namespace {
/// What both sides contribute to the adjoint of a value from outside.
struct Contribution {
  Value capture;
  std::array<Value, 2> values;
  /// Where they are not zero; null in both if neither side knows.
  std::array<Value, 2> live;
};
} // namespace

/// Fills in what a side does not contribute, at its end, and where it is zero.
static void complete(Contribution &found, Region (&sides)[2],
                     Adjoint &adjoint) {
  OpBuilder &b = adjoint.builder;
  OpBuilder::InsertionGuard guard(b);
  Type condition;
  std::array<bool, 2> contributes;
  for (unsigned side : {0, 1}) {
    b.setInsertionPointToEnd(&sides[side].front());
    Value &value = found.values[side];
    contributes[side] = bool(value);
    if (value)
      found.live[side] = findLiveLanes(Tile(b, adjoint.loc(), value), &adjoint);
    else
      value = adjoint.constant(found.capture.getType(), 0.0);
    if (found.live[side])
      condition = found.live[side].getType();
  }
  for (unsigned side : {0, 1}) {
    b.setInsertionPointToEnd(&sides[side].front());
    if (condition && !found.live[side])
      found.live[side] =
          integerOf(b, adjoint.loc(), condition, contributes[side]);
  }
}

static LogicalResult reverseIf(scf::IfOp op, Adjoint &adjoint) {
  Location loc = adjoint.loc();
  OpBuilder &b = adjoint.builder;
  SmallVector<Value> resultAdjoints = llvm::map_to_vector(
      op.getResults(), [&](Value result) { return adjoint.get(result); });
  SmallVector<Value> captures = adjoint.getActiveCaptures(op->getRegions());

  Region sides[2];
  SmallVector<Value> contributions[2];
  for (auto [index, side] : llvm::enumerate(op->getRegions())) {
    FailureOr<SmallVector<Value>> reversed =
        reverseSide(side, resultAdjoints, captures, sides[index], adjoint);
    if (failed(reversed))
      return failure();
    contributions[index] = *reversed;
  }

  SmallVector<Contribution> found;
  SmallVector<Type> types;
  SmallVector<Value> yields[2];
  for (auto [capture, ofThen, ofElse] :
       llvm::zip_equal(captures, contributions[0], contributions[1])) {
    if (!ofThen && !ofElse)
      continue;
    Contribution &each = found.emplace_back();
    each.capture = capture;
    each.values = {ofThen, ofElse};
    complete(each, sides, adjoint);
    for (auto &results : {each.values, each.live}) {
      if (!results[0])
        continue;
      types.push_back(results[0].getType());
      for (unsigned side : {0, 1})
        yields[side].push_back(results[side]);
    }
  }

  auto reversed =
      scf::IfOp::create(b, loc, types, adjoint.primal(op.getCondition()),
                        /*withElseRegion=*/true);
  for (unsigned side : {0, 1}) {
    reversed->getRegion(side).takeBody(sides[side]);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&reversed->getRegion(side).front());
    scf::YieldOp::create(b, loc, yields[side]);
  }
  auto results = reversed.getResults().begin();
  for (const Contribution &each : found) {
    Value contribution = *results++;
    if (each.live[0])
      adjoint.setLive(contribution, *results++);
    adjoint.add(each.capture, contribution);
  }
  return success();
}

void mlir::autodiff::addIfRules(RuleTable &table) {
  table.add<scf::IfOp>("both sides reversed under the same condition",
                       reverseIf);
}
