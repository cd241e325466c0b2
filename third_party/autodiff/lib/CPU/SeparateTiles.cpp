//===- SeparateTiles.cpp - A buffer for each tile -------------------------===//

#include "autodiff/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_SEPARATETILES
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SeparateTilesPass
    : public cpu::impl::SeparateTilesBase<SeparateTilesPass> {
  void runOnOperation() override {
    getOperation().walk([](tensor::EmptyOp empty) {
      for (OpOperand &use : llvm::make_early_inc_range(empty->getUses())) {
        OpBuilder b(use.getOwner());
        use.set(bufferization::AllocTensorOp::create(
            b, empty.getLoc(), empty.getType(), ValueRange()));
      }
      empty.erase();
    });
  }
};
} // namespace
