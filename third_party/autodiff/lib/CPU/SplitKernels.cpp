//===- SplitKernels.cpp - Long kernels in several functions ---------------===//
//
// Every tile is a nest of loops, and a kernel a sequence of nests. Much of what
// LLVM asks about a loop goes back over all that stands before it, so that its
// time grows with the square of the number of loops in a function. (At 768
// loops, that was five of six seconds of LLVM's optimizer.) Groups of nests
// become functions of their own. Kernels of usual length stay in one piece.
//
//===----------------------------------------------------------------------===//

#include "autodiff/CPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_SPLITKERNELS
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

/// Loops and branches in `op`.
static unsigned countRegions(Operation &op) {
  unsigned count = 0;
  op.walk([&](Operation *inner) { count += inner->getNumRegions() != 0; });
  return count;
}

namespace {

/// Takes one kernel apart.
class Splitter {
public:
  Splitter(func::FuncOp kernel, unsigned longest, unsigned part)
      : kernel(kernel), longest(longest), part(part) {}

  /// Leaves at most about `longest` loops in the block.
  void split(Block &block) {
    for (Operation &op : block)
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          split(inner);
    unsigned total = 0;
    for (Operation &op : block)
      total += countRegions(op);
    if (total <= longest)
      return;
    SmallVector<Operation *> group;
    unsigned count = 0;
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
      if (isShared(&op))
        continue;
      group.push_back(&op);
      count += countRegions(op);
      if (count < part)
        continue;
      outline(group);
      group.clear();
      count = 0;
    }
    if (count)
      outline(group);
  }

private:
  /// What every function has for itself: constants, and views of buffers. The
  /// buffers are all the kernel's.
  bool isShared(Operation *op) {
    if (isa<memref::AllocaOp>(op) || matchPattern(op, m_Constant()) ||
        isa<memref::GetGlobalOp>(op))
      return true;
    return isa<ViewLikeOpInterface>(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *from = operand.getDefiningOp();
             return from && isShared(from);
           });
  }

  /// Adds what `value` needs from outside of the group to `captured`, and what
  /// the function makes again to `copied`, in the order of their dependences.
  void capture(Value value, SetVector<Value> &captured,
               SetVector<Operation *> &copied) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<memref::AllocaOp>(op) || !isShared(op)) {
      captured.insert(value);
      return;
    }
    if (copied.contains(op))
      return;
    for (Value operand : op->getOperands())
      capture(operand, captured, copied);
    copied.insert(op);
  }

  void outline(ArrayRef<Operation *> group) {
    DenseSet<Operation *> inside(group.begin(), group.end());
    Block *block = group.front()->getBlock();
    auto isInside = [&](Operation *op) {
      Operation *ancestor = block->findAncestorOpInBlock(*op);
      return ancestor && inside.contains(ancestor);
    };
    SetVector<Value> captured;
    SetVector<Operation *> copied;
    SmallVector<Value> results;
    for (Operation *op : group) {
      op->walk([&](Operation *user) {
        for (Value operand : user->getOperands()) {
          Operation *owner = operand.getParentBlock()->getParentOp();
          Operation *from = operand.getDefiningOp();
          if (!isInside(from ? from : owner))
            capture(operand, captured, copied);
        }
      });
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !isInside(user); }))
          results.push_back(result);
    }
    // Buffers come in by their places alone.
    auto isView = [](Value value) {
      return isa<MemRefType>(value.getType()) &&
             !value.getDefiningOp<memref::AllocaOp>();
    };
    if (llvm::any_of(captured, isView) || llvm::any_of(results, isView))
      return;

    OpBuilder b(kernel);
    Location loc = group.front()->getLoc();
    auto function = func::FuncOp::create(
        b, loc, (kernel.getName() + ".part" + Twine(number++)).str(),
        b.getFunctionType(TypeRange(captured.getArrayRef()),
                          TypeRange(ValueRange(results))));
    function.setPrivate();
    function->setAttr("llvm.bareptr", b.getUnitAttr());
    Block *body = function.addEntryBlock();
    IRMapping mapping;
    for (auto [index, value] : llvm::enumerate(captured)) {
      mapping.map(value, body->getArgument(index));
      if (!isa<MemRefType>(value.getType()))
        continue;
      function.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                          b.getUnitAttr());
      function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                          b.getI64IntegerAttr(64));
    }
    b.setInsertionPoint(group.back());
    auto call = func::CallOp::create(b, loc, function, captured.getArrayRef());
    b.setInsertionPointToStart(body);
    for (Operation *op : copied)
      b.clone(*op, mapping);
    for (Operation *op : group)
      op->moveBefore(body, body->end());
    body->walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    });
    b.setInsertionPointToEnd(body);
    func::ReturnOp::create(b, loc, results);
    for (auto [from, to] : llvm::zip_equal(results, call.getResults()))
      from.replaceUsesWithIf(to, [&](OpOperand &use) {
        return !function->isAncestor(use.getOwner());
      });
  }

  func::FuncOp kernel;
  unsigned longest, part, number = 0;
};

struct SplitKernelsPass : public cpu::impl::SplitKernelsBase<SplitKernelsPass> {
  using SplitKernelsBase::SplitKernelsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp kernel : kernels)
      for (Block &block : kernel.getBody())
        Splitter(kernel, longest, part).split(block);
  }
};
} // namespace
