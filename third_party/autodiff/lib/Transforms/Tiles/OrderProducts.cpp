//===- OrderProducts.cpp - Products in an order that saves memory ---------===//
//
// A tile that several products use is in shared memory up to the last of them.
// If another product of a large tile comes before that, both need memory at the
// same time. That product may come earlier or later, since only its result
// depends on its place.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/SharedMemory.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ORDERPRODUCTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A product, the operations that move with it, and their new place.
struct Move {
  SetVector<Operation *> moved; // in their order; the product is the last one
  Operation *to = nullptr;
};
} // namespace

static bool isBefore(Operation *a, Operation *b) {
  return a->isBeforeInBlock(b);
}

/// Moves a product, with the operations it needs, up to where its operands are
/// loaded or multiplied.
static Move findEarlier(triton::DotOp dot) {
  Move move;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return op == dot || (op->getBlock() == dot->getBlock() && isPure(op) &&
                         !isa<triton::DotOp>(op));
  };
  SetVector<Operation *> slice;
  (void)getBackwardSlice(dot.getOperation(), &slice, options);
  Operation *last = nullptr;
  for (Operation *op : slice)
    for (Value operand : op->getOperands())
      if (Operation *own = operand.getDefiningOp();
          own && own->getBlock() == dot->getBlock() && !slice.contains(own) &&
          (!last || isBefore(last, own)))
        last = own;
  if (!last)
    return {};
  for (Operation *op : slice)
    if (isBefore(last, op))
      move.moved.insert(op);
  move.to = last->getNextNode();
  while (move.to != dot && move.moved.contains(move.to))
    move.to = move.to->getNextNode();
  return move;
}

/// Moves a product, with operations that only it needs, down to its first use.
static Move findLater(triton::DotOp dot) {
  Move move;
  SmallVector<Operation *> needed{dot};
  for (Operation *op = dot->getPrevNode(); op; op = op->getPrevNode())
    if (isPure(op) && !op->use_empty() &&
        llvm::all_of(op->getUsers(), [&](Operation *user) {
          return llvm::is_contained(needed, user);
        }))
      needed.push_back(op);
  move.moved.insert(needed.rbegin(), needed.rend());
  for (Operation *user : dot->getUsers()) {
    Operation *own = dot->getBlock()->findAncestorOpInBlock(*user);
    if (own && (!move.to || isBefore(own, move.to)))
      move.to = own;
  }
  return move;
}

/// Moves them if that reduces shared memory in this range, and it was too much;
/// otherwise undoes the move.
static bool applyIfBetter(triton::FuncOp kernel, const Move &move,
                          double memory) {
  if (!move.to || move.moved.contains(move.to))
    return false;
  Operation *dot = move.moved.back();
  Operation *first = isBefore(move.to, dot) ? move.to : dot;
  Operation *last = first == dot ? move.to : dot->getNextNode();
  while ((first = first->getPrevNode()) && move.moved.contains(first))
    ;
  double taken = countSharedMemory(kernel, first, last);
  if (taken <= memory)
    return false;
  SmallVector<Operation *> nexts;
  for (Operation *op : move.moved) {
    nexts.push_back(op->getNextNode());
    op->moveBefore(move.to);
  }
  if (countSharedMemory(kernel, first, last) < taken)
    return true;
  for (auto [op, next] : llvm::reverse(llvm::zip_equal(move.moved, nexts)))
    op->moveBefore(next);
  return false;
}

namespace {
struct OrderProducts : autodiff::impl::OrderProductsBase<OrderProducts> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    double memory = Target::of(kernel).getSharedMemoryOfProducts();
    if (!isBackward(kernel) || countSharedMemory(kernel) <= memory)
      return;
    SmallVector<triton::DotOp> dots;
    kernel.walk([&](triton::DotOp dot) { dots.push_back(dot); });
    auto isMoved = [&](triton::DotOp dot) {
      return applyIfBetter(kernel, findEarlier(dot), memory) ||
             applyIfBetter(kernel, findLater(dot), memory);
    };
    // After one product has moved, another one may be able to.
    for (size_t times = 0; times < 2 * dots.size(); ++times)
      if (llvm::none_of(dots, isMoved))
        return;
  }
};
} // namespace
