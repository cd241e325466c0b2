//===- HoistAllocations.cpp - Buffers on the stack ------------------------===//

#include "autodiff/CPU/Passes.h"

#include "mlir/IR/Builders.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_HOISTALLOCATIONS
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct HoistAllocationsPass
    : public cpu::impl::HoistAllocationsBase<HoistAllocationsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointToStart(&function.getBody().front());
    SmallVector<memref::AllocOp> allocations;
    function.walk([&](memref::AllocOp op) { allocations.push_back(op); });
    for (memref::AllocOp op : allocations) {
      if (op->getNumOperands() != 0) {
        op.emitError("allocation of unknown size");
        return signalPassFailure();
      }
      auto slot = memref::AllocaOp::create(builder, op.getLoc(), op.getType(),
                                           builder.getI64IntegerAttr(64));
      op.replaceAllUsesWith(slot.getResult());
      op.erase();
    }
    function.walk([](memref::DeallocOp op) { op.erase(); });
  }
};
} // namespace
