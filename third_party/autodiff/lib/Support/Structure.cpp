//===- Structure.cpp - Control flow as loops and branches -----------------===//
#include "autodiff/Support/Structure.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CFGToSCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

namespace {
/// MLIR's lifting of control flow, with returns of Triton functions.
struct LiftReturns : ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location loc,
                                                     OpBuilder &builder,
                                                     Region &region) override {
    return triton::ReturnOp::create(builder, loc, ValueRange()).getOperation();
  }
};
} // namespace

LogicalResult mlir::autodiff::structureRegion(Region &region) {
  if (region.hasOneBlock())
    return success();
  LiftReturns interface;
  Operation *parent = region.getParentOp();
  DominanceInfo dominance(parent);
  if (failed(transformCFGToSCF(region, interface, dominance)))
    return failure();
  if (!region.hasOneBlock())
    return parent->emitError("this control flow cannot be turned into loops "
                             "and branches");
  return success();
}
