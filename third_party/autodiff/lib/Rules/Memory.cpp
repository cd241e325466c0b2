//===- Memory.cpp - Loads, stores and atomics -----------------------------===//
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleMutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/SelectingAtomics.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/UserName.h"

using namespace mlir;
using namespace mlir::autodiff;

static unsigned siteOf(Operation *op) {
  return op->getAttrOfType<IntegerAttr>(kSiteAttr).getInt();
}

/// v = mask ? *p : other.
static LogicalResult pullBack(triton::LoadOp op, Adjoint &adjoint) {
  Value cotangent = adjoint.get(op.getResult());
  if (!cotangent)
    return success();
  OpBuilder &b = adjoint.builder;
  Value mask = adjoint.primalOrNull(op.getMask());
  if (op.getOther() && adjoint.isActive(op.getOther())) {
    Tile t(b, adjoint.loc(), cotangent);
    adjoint.add(op.getOther(), where(mask, t.constant(0.0), t));
  }
  Value source = op.getPtr();
  mutation::inContribution(b, adjoint.loc(), source, cotangent);
  mutation::inMask(b, op, mask);
  Location loc = ofAdjoint(adjoint.loc(), findVariable(op.getLoc()));
  for (BlockArgument base : getBaseArguments(op.getPtr())) {
    unsigned argument = base.getArgNumber();
    if (adjoint.activity.isWanted(argument) ||
        adjoint.activity.carries(argument))
      AccumulateOp::create(b, loc, adjoint.primal(op.getPtr()), cotangent, mask,
                           argument, siteOf(op));
  }
  return success();
}

/// The pointers to tangents that belong to the pointers of `op`; null if there
/// are none.
static FailureOr<Value> findTangents(Operation *op, const Tangents &tangents) {
  Value pointer = op->getOperand(0);
  Value found = tangents.get(pointer);
  bool mayHaveSome =
      llvm::any_of(getBaseArguments(pointer), [&](BlockArgument base) {
        return tangents.activity.hasShadow(base.getArgNumber());
      });
  if (found || !mayHaveSome)
    return found;
  return op->emitError("no forward-mode rule for an access to one of several "
                       "tensors, of which some have no tangents; select values "
                       "instead of pointers");
}

static LogicalResult push(triton::LoadOp op, Tangents &tangents) {
  FailureOr<Value> pointer = findTangents(op, tangents);
  if (failed(pointer))
    return failure();
  OpBuilder &b = tangents.builder;
  Location loc = tangents.loc();
  Value mask = tangents.primalOrNull(op.getMask());
  Tile loaded(b, loc, tangents.constant(op.getType(), 0.0));
  if (*pointer) {
    Value other = mask ? zeroOf(b, loc, op.getType()) : Value();
    loaded = loaded.like(
        tangents.widen(triton::LoadOp::create(b, loc, *pointer, mask, other)));
  }
  if (Value other = op.getOther() ? tangents.get(op.getOther()) : Value())
    loaded = where(mask, loaded, loaded.like(other));
  tangents.add(op.getResult(), loaded);
  return success();
}

/// v̄ += cotangent at p. The cotangent is cleared, since the store overwrote
/// what was there before, unless `keep`. It is emitted for inactive values,
/// too: they also overwrite earlier content, or with `keep`, leave it.
static void takeUpstream(Operation *op, Value pointer, Value value, Value mask,
                         bool keep, Adjoint &adjoint) {
  Type type =
      adjoint.isActive(value) ? Adjoint::typeFor(value.getType()) : Type();
  mutation::inMask(adjoint.builder, op, mask);
  for (BlockArgument base : getBaseArguments(pointer)) {
    unsigned argument = base.getArgNumber();
    if (!adjoint.activity.hasShadow(argument) ||
        (!type && keep && !adjoint.activity.isWanted(argument)))
      continue;
    auto upstream = UpstreamOp::create(adjoint.builder, adjoint.loc(), type,
                                       adjoint.primal(pointer), mask, argument,
                                       siteOf(op), keep);
    if (type)
      adjoint.add(value, upstream.getResult());
  }
}

static LogicalResult pullBack(triton::StoreOp op, Adjoint &adjoint) {
  takeUpstream(op, op.getPtr(), op.getValue(),
               adjoint.primalOrNull(op.getMask()), /*keep=*/false, adjoint);
  return success();
}

/// The tangent of a written value, in the type of memory; zeros if it has none.
static Value getWrittenTangent(Value value, Tangents &tangents) {
  if (tangents.get(value))
    return castFloat(tangents.builder, tangents.loc(), tangents.get(value),
                     getElementTypeOrSelf(value.getType()));
  return zeroOf(tangents.builder, tangents.loc(), value.getType());
}

static LogicalResult push(triton::StoreOp op, Tangents &tangents) {
  FailureOr<Value> pointer = findTangents(op, tangents);
  if (failed(pointer) || !*pointer)
    return pointer;
  if (!tangents.get(op.getValue()) &&
      mutation::isMade("tangents:what was there, under constants"))
    return success();
  Value mask = tangents.primalOrNull(op.getMask());
  mutation::inMask(tangents.builder, op, mask);
  triton::StoreOp::create(tangents.builder, tangents.loc(), *pointer,
                          getWrittenTangent(op.getValue(), tangents), mask);
  return success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(triton::AtomicRMWOp op, Adjoint &adjoint) {
  Value pointer = withoutBitcast(op.getPtr());
  Value value = withoutBitcast(op.getVal());
  SmallVector<BlockArgument> bases = getBaseArguments(pointer);
  llvm::erase_if(bases, [&](BlockArgument base) {
    return !adjoint.activity.hasShadow(base.getArgNumber());
  });
  if (bases.empty())
    return success(); // Activity has rejected what would be active
  if (op.getAtomicRmwOp() == triton::RMWOp::FADD) {
    takeUpstream(op, pointer, value, adjoint.primalOrNull(op.getMask()),
                 /*keep=*/true, adjoint);
    return success();
  }
  if (!selectsFloats(op))
    return op.emitError()
           << "no derivative rule for " << spellForUser(op)
           << " on a differentiated tensor; floating-point add, and max, min "
              "and exchange have one";
  for (BlockArgument base : bases)
    if (failed(checkSelects(op, base)))
      return failure();
  // Only values in the outermost block can be saved.
  if (!isReproducible(value) &&
      !isa<triton::FuncOp>(value.getParentBlock()->getParentOp()))
    return op.emitError(
        "no derivative rule for this atomic operation: which value memory "
        "holds in the end is told by its bits, but this one, of a loop or "
        "branch, may be rounded otherwise when the backward computes it again; "
        "store such values to a tensor, and combine them in another kernel");
  Value isFinal =
      createIsFinal(adjoint.builder, adjoint.loc(), adjoint.primal(pointer),
                    adjoint.primal(value), adjoint.primalOrNull(op.getMask()));
  takeUpstream(op, pointer, value, isFinal, /*keep=*/false, adjoint);
  return success();
}

static LogicalResult push(triton::AtomicRMWOp op, Tangents &tangents) {
  FailureOr<Value> pointer = findTangents(op, tangents);
  if (failed(pointer) || !*pointer)
    return pointer;
  if (op->hasAttr(kLaterAttr))
    return success(); // a kernel that runs afterwards stores them
  bool takes = op->hasAttr(kTakesAttr);
  if (op.getAtomicRmwOp() != triton::RMWOp::FADD && !takes)
    return op.emitError()
           << "no forward-mode rule for " << spellForUser(op)
           << " on a differentiated tensor; floating-point add has one";
  if (!tangents.get(op.getVal()) && !takes)
    return success();
  IRMapping map;
  if (Value mask = op.getMask())
    map.map(mask, tangents.primal(mask));
  map.map(op.getPtr(), *pointer);
  map.map(op.getVal(), getWrittenTangent(op.getVal(), tangents));
  Operation *pushed = tangents.builder.clone(*op, map);
  if (takes)
    tangents.add(op.getResult(), tangents.widen(pushed->getResult(0)));
  return success();
}

void mlir::autodiff::addMemoryRules(RuleTable &table) {
  table.add<triton::LoadOp>(
      "gradient at p += v̄ under the mask, other̅ += v̄ elsewhere", pullBack,
      push);
  table.add<triton::StoreOp>(
      "v̄ += cotangent at p under the mask; then cleared there", pullBack, push);
  table.add<triton::AtomicRMWOp>(
      "fadd: v̄ += cotangent at p under the mask; max, min, exchange: the same "
      "where v is what p holds in the end; then cleared there",
      pullBack, push);
}
