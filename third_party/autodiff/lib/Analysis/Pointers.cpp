//===- Pointers.cpp - Where a pointer comes from --------------------------===//
#include "autodiff/Analysis/Pointers.h"

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isPointer(Type type) {
  return isa<triton::PointerType>(getElementTypeOrSelf(type));
}

Value mlir::autodiff::getAccessedPointer(Operation *op) {
  return isa<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp,
             triton::AtomicCASOp>(op)
             ? op->getOperand(0)
             : Value();
}

Value mlir::autodiff::getMask(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp, AccumulateOp>(
          [](auto access) { return access.getMask(); })
      .Default(Value());
}

SmallVector<Value> mlir::autodiff::getWrittenPointers(Operation *root) {
  SmallVector<Value> written;
  root->walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (pointer && !isa<triton::LoadOp>(op))
      written.push_back(pointer);
  });
  return written;
}

Type mlir::autodiff::getPointee(Type type) {
  return cast<triton::PointerType>(getElementTypeOrSelf(type)).getPointeeType();
}

OpOperand *mlir::autodiff::getPointerSource(Operation *op) {
  bool isSource = isa<triton::AddPtrOp>(op) || triton::isMove(op);
  return isSource ? &op->getOpOperand(0) : nullptr;
}

namespace {
/// Walks all paths that a pointer may come from, and collects their ends.
struct BaseFinder {
  llvm::SmallPtrSet<Value, 16> visited;
  SmallVector<BlockArgument> bases;
  Value unknown;

  explicit BaseFinder(Value pointer) {
    visit(pointer);
    llvm::sort(bases, [](BlockArgument a, BlockArgument b) {
      return a.getArgNumber() < b.getArgNumber();
    });
  }

  void visit(Value pointer) {
    if (!visited.insert(pointer).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(pointer))
      return visitArgument(argument);
    Operation *op = pointer.getDefiningOp();
    unsigned index = cast<OpResult>(pointer).getResultNumber();
    if (OpOperand *source = getPointerSource(op))
      return visit(source->get());
    if (isa<triton::BitcastOp>(op) && isPointer(op->getOperand(0).getType()))
      return visit(op->getOperand(0));
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      visit(select.getTrueValue());
      return visit(select.getFalseValue());
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      visit(branch.thenYield().getOperand(index));
      return visit(branch.elseYield().getOperand(index));
    }
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitCarried(loop, index);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return visit(loop.getConditionOp().getArgs()[index]);
    // A value that is defined on no path is never accessed.
    if (!isa<ub::PoisonOp>(op))
      unknown = pointer;
  }

  void visitArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned index = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return visitCarried(loop, index - 1);
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (argument.getOwner() == loop.getAfterBody())
        return visit(loop.getConditionOp().getArgs()[index]);
      visit(loop.getInits()[index]);
      return visit(loop.getYieldedValues()[index]);
    }
    if (isa<triton::FuncOp>(parent))
      bases.push_back(argument);
    else
      unknown = argument;
  }

  void visitCarried(scf::ForOp loop, unsigned index) {
    visit(loop.getInitArgs()[index]);
    visit(loop.getYieldedValues()[index]);
  }
};
} // namespace

SmallVector<BlockArgument> mlir::autodiff::getBaseArguments(Value pointer) {
  BaseFinder finder(pointer);
  if (finder.unknown)
    return {};
  return finder.bases;
}

BlockArgument mlir::autodiff::getBaseArgument(Value pointer) {
  SmallVector<BlockArgument> bases = getBaseArguments(pointer);
  return bases.size() == 1 ? bases.front() : BlockArgument();
}

bool mlir::autodiff::mayPointInto(Value pointer, BlockArgument argument) {
  BaseFinder finder(pointer);
  return finder.unknown || llvm::is_contained(finder.bases, argument);
}

bool mlir::autodiff::mayBeAccessed(
    BlockArgument argument, llvm::function_ref<bool(Operation *)> isMeant) {
  auto accesses = [&](Operation *op) {
    return !isMemoryEffectFree(op) &&
           !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return isPointer(operand.getType()) &&
                    mayPointInto(operand, argument);
           });
  };
  auto walk = argument.getOwner()->getParentOp()->walk([&](Operation *op) {
    return isMeant(op) && accesses(op) ? WalkResult::interrupt()
                                       : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

bool mlir::autodiff::mayAlias(ArrayRef<Value> some, ArrayRef<Value> others) {
  return llvm::any_of(some, [&](Value pointer) {
    BaseFinder finder(pointer);
    return llvm::any_of(others, [&](Value other) {
      return finder.unknown ||
             llvm::any_of(finder.bases, [&](BlockArgument base) {
               return mayPointInto(other, base);
             });
    });
  });
}

bool mlir::autodiff::isElsewhere(triton::StoreOp store, Value pointer) {
  return isa<FloatType>(getPointee(pointer.getType())) &&
         !mayAlias(store.getPtr(), pointer);
}

Value mlir::autodiff::getUnknownOrigin(Value pointer) {
  return BaseFinder(pointer).unknown;
}
