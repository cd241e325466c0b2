//===- HoistAllocations.cpp - Buffers on the stack ------------------------===//
//
// Tiles are many and short-lived. Buffers of one type with disjoint lifetimes
// share a place, so that a long kernel stays within the caches.
//
//===----------------------------------------------------------------------===//

#include "autodiff/CPU/Passes.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_HOISTALLOCATIONS
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

namespace {

/// Gives allocations their places, in program order.
class Layout {
public:
  explicit Layout(func::FuncOp function)
      : builder(OpBuilder::atBlockBegin(&function.getBody().front())) {}

  void visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto allocation = dyn_cast<memref::AllocOp>(op)) {
        place(allocation);
        continue;
      }
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          visit(inner);
      auto it = lastUses.find(&op);
      if (it == lastUses.end())
        continue;
      for (Value slot : it->second)
        vacant[slot.getType()].push_back(slot);
      lastUses.erase(it);
    }
  }

private:
  /// The last use of an allocation, as an operation of the allocation's block;
  /// null if it is not known, as for buffers that loops carry.
  static Operation *findLastUse(memref::AllocOp allocation) {
    Block *block = allocation->getBlock();
    Operation *last = nullptr;
    SmallVector<Value> aliases{allocation.getResult()};
    while (!aliases.empty())
      for (Operation *user : aliases.pop_back_val().getUsers()) {
        Operation *inBlock = block->findAncestorOpInBlock(*user);
        if (isa<ViewLikeOpInterface>(user)) {
          if (!mutation::isMade("cpu-buffers:parts of them"))
            aliases.append(user->result_begin(), user->result_end());
        } else if (!isa<memref::LoadOp, memref::StoreOp, memref::CopyOp,
                        memref::DeallocOp, vector::TransferReadOp,
                        vector::TransferWriteOp>(user) &&
                   !mutation::isMade("cpu-buffers:those that loops carry"))
          return nullptr;
        if (!inBlock)
          return nullptr;
        if (!last || last->isBeforeInBlock(inBlock))
          last = inBlock;
      }
    return last;
  }

  void place(memref::AllocOp allocation) {
    Operation *last = findLastUse(allocation);
    SmallVector<Value> &free = vacant[allocation.getType()];
    Value slot = last && !free.empty()
                     ? free.pop_back_val()
                     : memref::AllocaOp::create(builder, allocation.getLoc(),
                                                allocation.getType(),
                                                builder.getI64IntegerAttr(64))
                           .getResult();
    if (last)
      lastUses[last].push_back(slot);
    allocation.replaceAllUsesWith(slot);
    allocation.erase();
  }

  OpBuilder builder;
  DenseMap<Type, SmallVector<Value>> vacant;
  DenseMap<Operation *, SmallVector<Value, 2>> lastUses;
};

struct HoistAllocationsPass
    : public cpu::impl::HoistAllocationsBase<HoistAllocationsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    WalkResult result = function.walk([&](memref::AllocOp op) {
      if (op->getNumOperands() == 0)
        return WalkResult::advance();
      op.emitError("allocation of unknown size");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    Layout layout(function);
    for (Block &block : function.getBody())
      layout.visit(block);
    function.walk([](memref::DeallocOp op) { op.erase(); });
  }
};
} // namespace
