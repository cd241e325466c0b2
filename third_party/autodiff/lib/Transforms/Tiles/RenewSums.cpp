//===- RenewSums.cpp - Let matrix instructions overlap after a branch -----===//
//
// Triton leaves a loop's last products running until the next iteration. If
// something else may write the registers of their sum meanwhile, ptxas
// serializes all products of a kernel (C7515). The initial value of a sum is
// such a write if the loop may not run: it is written on the path around the
// loop, or before, as LLVM prefers. So each loop gets a branch, in which its
// products end. If another loop continues the sum, it starts from the sum plus
// a zero that only the host knows: an addition in which both paths meet.
//
//===----------------------------------------------------------------------===//
#include "ProductSums.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_RENEWSUMS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Puts a loop into a branch that is taken if it runs.
static void guard(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  bool isUnsigned = loop.getUnsignedCmp();
  Value runs = arith::CmpIOp::create(
      b, loc,
      isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
      loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), runs, true);
  loop.replaceAllUsesWith(branch.getResults());
  OpBuilder otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, loop.getInitArgs());
  loop->moveBefore(branch.thenBlock(), branch.thenBlock()->begin());
  OpBuilder then = branch.getThenBodyBuilder();
  scf::YieldOp::create(then, loc, loop.getResults());
}

/// sum + 0.
static Value renew(OpBuilder &b, Location loc, Value sum) {
  ExprAttr programs = gridOf(b.getContext(), 0);
  Value zero = createSize(b, loc, subOf(programs, programs));
  auto type = cast<RankedTensorType>(sum.getType());
  Value number = arith::SIToFPOp::create(b, loc, type.getElementType(), zero);
  Value tile = triton::SplatOp::create(b, loc, type, number);
  return arith::AddFOp::create(b, loc, sum, tile);
}

namespace {
struct RenewSums : autodiff::impl::RenewSumsBase<RenewSums> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!isBackward(kernel))
      return;
    llvm::SetVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp loop) {
      for (OpOperand &init : loop.getInitArgsMutable()) {
        unsigned index = init.getOperandNumber() - loop.getNumControlOperands();
        if (!findSummand(loop, index))
          continue;
        loops.insert(loop);
        OpBuilder b(loop);
        if (findProducts(init.get()))
          init.set(renew(b, loop.getLoc(), init.get()));
      }
    });
    llvm::for_each(loops, guard);
  }
};
} // namespace
