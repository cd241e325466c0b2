//===- Reduce.cpp - Reductions and scans ----------------------------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;

Combiner mlir::autodiff::classifyCombiner(Region &region) {
  Block &body = region.front();
  if (body.getNumArguments() != 2 || body.getOperations().size() != 2)
    return Combiner::Other;
  Operation &op = body.front();
  Value a = body.getArgument(0), b = body.getArgument(1);
  bool combinesBoth = op.getNumOperands() == 2 && op.getNumResults() == 1 &&
                      ((op.getOperand(0) == a && op.getOperand(1) == b) ||
                       (op.getOperand(0) == b && op.getOperand(1) == a));
  if (!combinesBoth || body.getTerminator()->getOperand(0) != op.getResult(0))
    return Combiner::Other;
  if (isa<arith::AddFOp>(op))
    return Combiner::Sum;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return Combiner::Max;
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(op))
    return Combiner::Min;
  return Combiner::Other;
}

/// x̄ gets ȳ where x attains y, shared evenly on ties, as PyTorch's amax does.
static Value pullBackExtremum(triton::ReduceOp op, Value cotangent,
                              Adjoint &adjoint) {
  OpBuilder &b = adjoint.builder;
  Location loc = adjoint.loc();
  Value source = op.getSrcs()[0];
  auto type = cast<RankedTensorType>(Adjoint::typeFor(source.getType()));
  unsigned axis = op.getAxis();
  auto repeat = [&](Value v) {
    return Tile(b, loc, repeatAlong(b, loc, v, axis, type));
  };
  Tile x(b, loc, adjoint.widen(adjoint.primal(source)));
  Tile y = repeat(adjoint.widen(adjoint.primal(op.getResult()[0])));
  Value attains = compare(arith::CmpFPredicate::OEQ, x, y);
  Tile zero = x.constant(0.0);
  Tile count(b, loc,
             sumOver(b, loc, where(attains, x.constant(1.0), zero), axis));
  Tile share = count.like(cotangent) / count;
  return where(attains, repeat(share), zero);
}

static LogicalResult reduce(triton::ReduceOp op, Adjoint &adjoint) {
  if (op.getSrcs().size() != 1)
    return op.emitError("no derivative rule for a reduction of several values "
                        "at once whose result is differentiated");
  Value source = op.getSrcs()[0];
  Value cotangent = adjoint.get(op.getResult()[0]);
  if (!cotangent)
    return success();
  switch (classifyCombiner(op.getCombineOp())) {
  case Combiner::Sum:
    adjoint.add(source, repeatAlong(adjoint.builder, adjoint.loc(), cotangent,
                                    op.getAxis(),
                                    cast<RankedTensorType>(
                                        Adjoint::typeFor(source.getType()))));
    return success();
  case Combiner::Max:
  case Combiner::Min:
    adjoint.add(source, pullBackExtremum(op, cotangent, adjoint));
    return success();
  case Combiner::Other:
    return op.emitError("no derivative rule for a reduction with this "
                        "combine function; sum, max and min have one");
  }
  llvm_unreachable("unknown combiner");
}

/// The running sum of `tile` along an axis.
static Value scanSum(OpBuilder &b, Location loc, Value tile, unsigned axis,
                     bool reverse) {
  auto scan = triton::ScanOp::create(b, loc, ValueRange{tile}, axis, reverse);
  Type element = getElementTypeOrSelf(tile.getType());
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&scan.getCombineOp(), {}, {element, element}, {loc, loc});
  Value sum =
      arith::AddFOp::create(b, loc, body->getArgument(0), body->getArgument(1));
  triton::ScanReturnOp::create(b, loc, ValueRange{sum});
  return scan.getResult()[0];
}

/// The adjoint of a running sum is the running sum from the other end.
static LogicalResult scan(triton::ScanOp op, Adjoint &adjoint) {
  if (op.getSrcs().size() != 1 ||
      classifyCombiner(op.getCombineOp()) != Combiner::Sum)
    return op.emitError("no derivative rule for a scan with this combine "
                        "function; a running sum has one");
  if (Value cotangent = adjoint.get(op.getResult()[0]))
    adjoint.add(op.getSrcs()[0],
                scanSum(adjoint.builder, adjoint.loc(), cotangent, op.getAxis(),
                        !op.getReverse()));
  return success();
}

void mlir::autodiff::addReduceRules(RuleTable &table) {
  table.add<triton::ReduceOp>(
      "sum: x̄ += repeat ȳ; max, min: ȳ to the elements that attain y, shared "
      "on ties",
      reduce);
  table.add<triton::ScanOp>("sum: x̄ += running sum of ȳ from the other end",
                            scan);
}
