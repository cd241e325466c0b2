//===- If.cpp - Branches --------------------------------------------------===//
//
// Both sides are reversed in a branch with the same condition. Contributions of
// a side to adjoints of values from outside become results of the reversed
// branch. In forward mode, each side also yields the tangents of its values.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Reverses one side into `target`; returns the contributions to `captures`,
/// null for none.
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

  SmallVector<Value> found;
  SmallVector<Type> types;
  SmallVector<Value> yields[2];
  for (auto [index, capture] : llvm::enumerate(captures)) {
    if (!contributions[0][index] && !contributions[1][index])
      continue;
    found.push_back(capture);
    types.push_back(Adjoint::typeFor(capture.getType()));
    for (unsigned side : {0, 1}) {
      Value contribution = contributions[side][index];
      if (!contribution) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(&sides[side].front());
        contribution = adjoint.constant(capture.getType(), 0.0);
      }
      yields[side].push_back(contribution);
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
  for (auto [capture, contribution] :
       llvm::zip_equal(found, reversed.getResults()))
    adjoint.add(capture, contribution);
  return success();
}

static LogicalResult pushIf(scf::IfOp op, Tangents &tangents) {
  OpBuilder &b = tangents.builder;
  bool hasElse = !op.getElseRegion().empty();
  auto branch =
      scf::IfOp::create(b, tangents.loc(), tangents.pairTypes(op.getResults()),
                        tangents.primal(op.getCondition()), hasElse);
  for (auto [side, region] :
       llvm::zip_equal(branch->getRegions(), op->getRegions())) {
    if (region.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    Block &block = region.front();
    side.front().clear();
    b.setInsertionPointToStart(&side.front());
    if (failed(tangents.push(block)))
      return failure();
    scf::YieldOp::create(
        b, op.getLoc(),
        tangents.pair(block.getTerminator()->getOperands(), op.getResults()));
  }
  tangents.bind(op.getResults(), branch.getResults(), op.getResults());
  return success();
}

void mlir::autodiff::addIfRules(RuleTable &table) {
  table.add<scf::IfOp>("both sides reversed under the same condition",
                       reverseIf, pushIf);
}
