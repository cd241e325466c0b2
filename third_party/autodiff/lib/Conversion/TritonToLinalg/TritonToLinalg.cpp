//===- TritonToLinalg.cpp - The pass --------------------------------------===//

#include "autodiff/Conversion/TritonToLinalg/Passes.h"

#include "Lowering.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_TRITONTOLINALG
#include "autodiff/Conversion/TritonToLinalg/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

namespace {
struct TritonToLinalgPass
    : public cpu::impl::TritonToLinalgBase<TritonToLinalgPass> {
  using TritonToLinalgBase::TritonToLinalgBase;

  void runOnOperation() override {
    LoweringOptions choices;
    choices.vectorBits = vectorBits;
    choices.vectorRegisters = vectorRegisters;
    choices.copyCarried = copyCarried;
    // MLIR's lifting of control flow, later, trips over these.
    IRRewriter rewriter(&getContext());
    (void)eraseUnreachableBlocks(rewriter, getOperation()->getRegions());
    SmallVector<tt::FuncOp> functions(getOperation().getOps<tt::FuncOp>());
    for (tt::FuncOp function : functions) {
      if (function.isExternal()) {
        function.emitError("the CPU backend needs the function's body");
        return signalPassFailure();
      }
      if (failed(Lowering(function, choices).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
