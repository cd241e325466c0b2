//===- Memory.cpp - Loads, stores and atomic adds -------------------------===//
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;

static Value primalOrNull(Value value, Adjoint &adjoint) {
  return value ? adjoint.primal(value) : Value();
}

static unsigned siteOf(Operation *op) {
  return op->getAttrOfType<IntegerAttr>(kSiteAttr).getInt();
}

/// v = mask ? *p : other.
static LogicalResult load(triton::LoadOp op, Adjoint &adjoint) {
  Value cotangent = adjoint.get(op.getResult());
  if (!cotangent)
    return success();
  OpBuilder &b = adjoint.builder;
  Value mask = primalOrNull(op.getMask(), adjoint);
  if (op.getOther() && adjoint.isActive(op.getOther())) {
    Tile t(b, adjoint.loc(), cotangent);
    adjoint.add(op.getOther(), where(mask, t.constant(0.0), t));
  }
  for (BlockArgument base : getBaseArguments(op.getPtr()))
    if (adjoint.activity.isWanted(base.getArgNumber()))
      AccumulateOp::create(b, adjoint.loc(), adjoint.primal(op.getPtr()),
                           cotangent, mask, base.getArgNumber(), siteOf(op));
  return success();
}

/// v̄ += cotangent at p; what was there before does not matter any more, unless
/// `keep`. Emitted for inactive values too: they hide earlier content, or, with
/// `keep`, let its gradient through.
static void takeUpstream(Operation *op, Value pointer, Value value, Value mask,
                         bool keep, Adjoint &adjoint) {
  for (BlockArgument base : getBaseArguments(pointer)) {
    unsigned argument = base.getArgNumber();
    if (!adjoint.activity.hasCotangent(argument) &&
        !adjoint.activity.isWanted(argument))
      continue;
    Type type =
        adjoint.isActive(value) ? Adjoint::typeFor(value.getType()) : Type();
    if (!type && keep && !adjoint.activity.isWanted(argument))
      continue;
    auto upstream = UpstreamOp::create(
        adjoint.builder, adjoint.loc(), type, adjoint.primal(pointer),
        primalOrNull(mask, adjoint), argument, siteOf(op), keep);
    if (type)
      adjoint.add(value, upstream.getResult());
  }
}

static LogicalResult store(triton::StoreOp op, Adjoint &adjoint) {
  takeUpstream(op, op.getPtr(), op.getValue(), op.getMask(), /*keep=*/false,
               adjoint);
  return success();
}

static LogicalResult atomicAdd(triton::AtomicRMWOp op, Adjoint &adjoint) {
  bool differentiated =
      adjoint.isActive(op.getVal()) || adjoint.isActive(op.getResult()) ||
      llvm::any_of(getBaseArguments(op.getPtr()), [&](BlockArgument base) {
        return adjoint.activity.isWanted(base.getArgNumber()) ||
               adjoint.activity.hasCotangent(base.getArgNumber());
      });
  if (!differentiated)
    return success();
  if (op.getAtomicRmwOp() != triton::RMWOp::FADD ||
      adjoint.isActive(op.getResult()))
    return op.emitError("no derivative rule for this atomic operation on a "
                        "differentiated tensor; a floating-point add whose "
                        "result is not used has one");
  takeUpstream(op, op.getPtr(), op.getVal(), op.getMask(), /*keep=*/true,
               adjoint);
  return success();
}

void mlir::autodiff::addMemoryRules(RuleTable &table) {
  table.add<triton::LoadOp>(
      "gradient at p += v̄ under the mask, other̅ += v̄ elsewhere", load);
  table.add<triton::StoreOp>(
      "v̄ += cotangent at p under the mask; then cleared there", store);
  table.add<triton::AtomicRMWOp>("fadd: v̄ += cotangent at p under the mask",
                                 atomicAdd);
}
