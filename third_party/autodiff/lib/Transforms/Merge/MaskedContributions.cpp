//===- MaskedContributions.cpp - Contributions beside branches ------------===//
#include "MaskedContributions.h"

#include "Programs/Branches.h"
#include "Programs/Guards.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Collects, in order, what computes `value` in a block and may as well stand
/// before it; false if something may not.
static bool collect(Value value, Block *block, SetVector<Operation *> &needed) {
  return collectSlice(value, needed, [&](Value each) {
    Operation *op = each.getDefiningOp();
    if (!op || op->getBlock() != block)
      return Elsewhere::Known;
    auto load = dyn_cast<triton::LoadOp>(op);
    bool canMove = load ? !load.getIsVolatile() : isPure(op);
    return canMove && op->getNumRegions() == 0 ? Elsewhere::Computed
                                               : Elsewhere::Never;
  });
}

/// Moves a contribution behind the branch around it; false if it cannot.
static bool takeOut(AccumulateOp op, scf::IfOp branch) {
  Block *block = op->getBlock();
  SetVector<Operation *> needed;
  if (!collect(op.getPtr(), block, needed) ||
      (op.getMask() && !collect(op.getMask(), block, needed)))
    return false;
  SetVector<Operation *> all = needed;
  bool canMoveValue = collect(op.getValue(), block, all);
  if (canMoveValue)
    needed = std::move(all);
  bool isThen = op->getParentRegion() == &branch.getThenRegion();
  OpBuilder b(branch);
  Location loc = op.getLoc();
  Value condition = branch.getCondition();
  if (!isThen && !mutation::isMade("masked contributions:other side"))
    condition = negationOf(b, loc, condition);
  IRMapping map;
  for (Operation *each : needed) {
    Operation *copy = b.clone(*each, map);
    auto load = dyn_cast<triton::LoadOp>(copy);
    if (!load)
      continue;
    b.setInsertionPoint(load);
    load.getMaskMutable().assign(
        guardMask(b, loc, condition, load.getMask(), load.getPtr()));
    completeOther(load);
    b.setInsertionPointAfter(load);
  }
  Value pointer = map.lookupOrDefault(op.getPtr());
  Value mask = op.getMask();
  mask = guardMask(b, loc, condition, mask ? map.lookupOrDefault(mask) : mask,
                   pointer);
  Value value = map.lookupOrDefault(op.getValue());
  if (!canMoveValue) {
    Value zero = zeroOf(b, loc, value.getType());
    value = isThen ? addResult(branch, value, zero)
                   : addResult(branch, zero, value);
  }
  op.getValueMutable().assign(value);
  op->moveAfter(branch);
  op.getPtrMutable().assign(pointer);
  op.getMaskMutable().assign(mask);
  return true;
}

void mlir::autodiff::takeOutOfBranches(AccumulateOp op) {
  while (auto branch = dyn_cast<scf::IfOp>(op->getParentOp()))
    if (!takeOut(op, branch))
      return;
}
