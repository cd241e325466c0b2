//===- MaskedContributions.cpp - Contributions beside branches ------------===//
#include "MaskedContributions.h"

#include "Guards.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Collects, in order, what computes `value` in a block and may as well stand
/// before it; false if something may not.
static bool collect(Value value, Block *block, SetVector<Operation *> &needed) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block || needed.contains(op))
    return true;
  auto load = dyn_cast<triton::LoadOp>(op);
  bool canMove = load ? !load.getIsVolatile() : isPure(op);
  if (!canMove || op->getNumRegions() != 0 ||
      llvm::any_of(op->getOperands(), [&](Value operand) {
        return !collect(operand, block, needed);
      }))
    return false;
  needed.insert(op);
  return true;
}

/// Adds a result to a branch: `value` on the side where that is computed, and
/// zero on the other one. Replaces the branch.
static Value addResult(scf::IfOp &branch, Value value) {
  Region *side = value.getParentRegion();
  OpBuilder b(branch);
  Location loc = value.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(value.getType());
  auto extended =
      scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(), true);
  bool isThen = side == &branch.getThenRegion();
  for (auto [from, to] :
       llvm::zip_equal(branch.getRegions(), extended.getRegions())) {
    if (!from->empty())
      to->takeBody(*from);
    Block &block = to->front();
    bool computes = (to == &extended.getThenRegion()) == isThen;
    auto yield =
        dyn_cast_or_null<scf::YieldOp>(block.empty() ? nullptr : &block.back());
    if (!yield) {
      OpBuilder end = OpBuilder::atBlockEnd(&block);
      yield = scf::YieldOp::create(end, loc);
    }
    OpBuilder inside(yield);
    yield->insertOperands(yield->getNumOperands(),
                          computes ? value
                                   : zeroOf(inside, loc, value.getType()));
  }
  branch->replaceAllUsesWith(
      extended.getResults().take_front(branch.getNumResults()));
  branch.erase();
  branch = extended;
  return extended.getResults().back();
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
    condition = arith::XOrIOp::create(
        b, loc, condition, integerOf(b, loc, condition.getType(), 1));
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
  op.getValueMutable().assign(canMoveValue ? map.lookupOrDefault(op.getValue())
                                           : addResult(branch, op.getValue()));
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
