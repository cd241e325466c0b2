//===- SplitKernels.cpp - Long kernels in several functions ---------------===//
//
// Every tile is a loop nest, and a kernel is a sequence of nests. Many of
// LLVM's analyses of a loop go back over all code before it, so that compile
// time grows with the square of the number of loops in a function. In long
// kernels, each nest becomes a function. Equal nests, as in unrolled code,
// share one. Sequences of calls become functions, too. Kernels of usual length
// stay in one piece.
//
//===----------------------------------------------------------------------===//

#include "autodiff/CPU/Passes.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

#include <map>

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_SPLITKERNELS
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

static unsigned countLoops(Operation &op) {
  unsigned count = 0;
  op.walk([&](LoopLikeOpInterface) { ++count; });
  return count;
}

/// Operations that every function clones: constants, and views of buffers. All
/// buffers are the kernel's.
static bool isCopied(Operation *op) {
  if (matchPattern(op, m_Constant()) || isa<memref::GetGlobalOp>(op))
    return true;
  return isa<ViewLikeOpInterface>(op) &&
         llvm::all_of(op->getOperands(), [](Value operand) {
           Operation *from = operand.getDefiningOp();
           return from && (isa<memref::AllocaOp>(from) || isCopied(from));
         });
}

/// Whether the value is a buffer that may be a part of another one.
static bool isView(Value value) {
  return isa<MemRefType>(value.getType()) &&
         !value.getDefiningOp<memref::AllocaOp>();
}

static bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         (mutation::isMade("cpu-parts:with operands in another order") ||
          OperationEquivalence::isRegionEquivalentTo(
              &a.getBody(), &b.getBody(),
              OperationEquivalence::IgnoreLocations));
}

static llvm::hash_code computeHash(func::FuncOp function) {
  llvm::hash_code hash = hash_value(function.getFunctionType());
  function.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

namespace {

/// Splits one kernel.
class Splitter {
public:
  Splitter(func::FuncOp kernel, unsigned longest)
      : kernel(kernel), longest(longest) {}

  /// Leaves no more than `longest` loops in the block.
  void split(Block &block) {
    unsigned count = 0;
    for (Operation &op : block) {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          split(inner);
      count += countLoops(op);
    }
    if (count <= longest)
      return;
    for (Operation &op : llvm::make_early_inc_range(block))
      if (countLoops(op))
        outline(&op);
    splitCalls(block);
  }

private:
  /// Adds the values from outside of the nest that `value` needs to `captured`,
  /// and the operations that the function clones to `copied`, in the order of
  /// dependences.
  static void capture(Value value, SetVector<Value> &captured,
                      SetVector<Operation *> &copied) {
    Operation *op = value.getDefiningOp();
    if (!op || !isCopied(op)) {
      captured.insert(value);
      return;
    }
    if (copied.contains(op))
      return;
    for (Value operand : op->getOperands())
      capture(operand, captured, copied);
    copied.insert(op);
  }

  /// LLVM's time also grows with the square of a block's length: sequences of
  /// `longest` calls, with the operations between them, become functions as
  /// well.
  void splitCalls(Block &block) {
    SmallVector<Operation *> run;
    unsigned calls = 0;
    for (Operation &op :
         llvm::make_early_inc_range(block.without_terminator())) {
      // Cloned operations need nothing of the sequence, so they may stay before
      // it.
      if (isa<memref::AllocaOp>(op) || isCopied(&op))
        continue;
      run.push_back(&op);
      if (isa<func::CallOp>(op) && ++calls == longest) {
        outline(run);
        run.clear();
        calls = 0;
      }
    }
  }

  /// Replaces some operations of a block by a call of a new function.
  void outline(ArrayRef<Operation *> ops) {
    SetVector<Value> used;
    for (Operation *op : ops) {
      used.insert(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), used);
    }
    llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
    SetVector<Value> captured;
    SetVector<Operation *> copied;
    for (Value value : used)
      if (!inside.contains(value.getDefiningOp()))
        capture(value, captured, copied);
    Block *block = ops.front()->getBlock();
    SmallVector<Value> results;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (!llvm::all_of(result.getUsers(), [&](Operation *user) {
              return inside.contains(block->findAncestorOpInBlock(*user));
            }))
          results.push_back(result);
    // Only whole buffers are passed, so that none is part of another one.
    if ((llvm::any_of(captured, isView) || llvm::any_of(results, isView)) &&
        !mutation::isMade("cpu-parts:views as buffers of their own"))
      return;

    OpBuilder b(ops.back());
    Location loc = ops.front()->getLoc();
    auto type = b.getFunctionType(TypeRange(captured.getArrayRef()),
                                  TypeRange(results));
    OwningOpRef<func::FuncOp> function = func::FuncOp::create(
        loc, (kernel.getName() + ".part" + Twine(number)).str(), type);
    Block *body = function->addEntryBlock();
    IRMapping mapping;
    mapping.map(captured.getArrayRef(), body->getArguments());
    OpBuilder inner = OpBuilder::atBlockBegin(body);
    for (Operation *op : copied)
      inner.clone(*op, mapping);
    for (Operation *op : ops)
      inner.clone(*op, mapping);
    SmallVector<Value> returned = llvm::map_to_vector(
        results, [&](Value result) { return mapping.lookup(result); });
    func::ReturnOp::create(inner, loc, returned);

    auto call = func::CallOp::create(b, loc, intern(std::move(function)),
                                     captured.getArrayRef());
    for (auto [result, replacement] : llvm::zip(results, call.getResults()))
      result.replaceAllUsesWith(replacement);
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

  /// The function, or an equal one that exists already.
  func::FuncOp intern(OwningOpRef<func::FuncOp> function) {
    SmallVector<func::FuncOp, 1> &alike = parts[computeHash(*function)];
    for (func::FuncOp other : alike)
      if (areEqual(other, *function))
        return other;
    function->setPrivate();
    Builder b(kernel.getContext());
    (*function)->setAttr("llvm.bareptr", b.getUnitAttr());
    for (auto [index, type] : llvm::enumerate(function->getArgumentTypes())) {
      if (!isa<MemRefType>(type))
        continue;
      function->setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                           b.getUnitAttr());
      function->setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                           b.getI64IntegerAttr(64));
    }
    ++number;
    alike.push_back(function.release());
    kernel->getBlock()->getOperations().insert(kernel->getIterator(),
                                               alike.back());
    return alike.back();
  }

  func::FuncOp kernel;
  unsigned longest, number = 0;
  std::map<size_t, SmallVector<func::FuncOp, 1>> parts;
};

struct SplitKernelsPass : public cpu::impl::SplitKernelsBase<SplitKernelsPass> {
  using SplitKernelsBase::SplitKernelsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp kernel : kernels) {
      Splitter splitter(kernel, longest);
      for (Block &block : kernel.getBody())
        splitter.split(block);
    }
  }
};
} // namespace
