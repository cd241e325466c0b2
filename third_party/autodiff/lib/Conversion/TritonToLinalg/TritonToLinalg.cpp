//===- TritonToLinalg.cpp - The pass --------------------------------------===//

#include "autodiff/Conversion/TritonToLinalg/Passes.h"

#include "Lowering.h"

#include "autodiff/Assembly/Lift.h"
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

/// Replaces inline assembly by arithmetic and single instructions.
static LogicalResult liftAll(ModuleOp module) {
  SmallVector<tt::ElementwiseInlineAsmOp> assembly;
  module.walk([&](tt::ElementwiseInlineAsmOp op) { assembly.push_back(op); });
  auto isCopied = [](tt::ElementwiseInlineAsmOp op) {
    return !getMarker(op).empty() &&
           op->getOperandTypes() == op->getResultTypes();
  };
  auto refuse = [](tt::ElementwiseInlineAsmOp op, llvm::Error reason) {
    return op->emitError("the CPU backend cannot compile '")
           << op->getName() << "' \"" << op.getAsmString().trim()
           << "\": " << llvm::toString(std::move(reason));
  };
  ptx::Copies copies(module);
  for (tt::ElementwiseInlineAsmOp op : assembly)
    if (!isCopied(op))
      if (llvm::Error reason = checkRegisters(op, copies))
        return refuse(op, std::move(reason));
  for (tt::ElementwiseInlineAsmOp op : assembly) {
    if (isCopied(op)) {
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    } else if (llvm::Error reason = liftAssembly(op)) {
      return refuse(op, std::move(reason));
    }
  }
  return success();
}

namespace {
struct TritonToLinalgPass
    : public cpu::impl::TritonToLinalgBase<TritonToLinalgPass> {
  using TritonToLinalgBase::TritonToLinalgBase;

  void runOnOperation() override {
    LoweringOptions choices;
    choices.vectorBits = vectorBits;
    choices.vectorRegisters = vectorRegisters;
    choices.copyCarried = copyCarried;
    // MLIR's lifting of control flow fails on unreachable blocks.
    IRRewriter rewriter(&getContext());
    (void)eraseUnreachableBlocks(rewriter, getOperation()->getRegions());
    if (failed(liftAll(getOperation())))
      return signalPassFailure();
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
