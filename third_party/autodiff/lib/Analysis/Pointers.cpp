//===- Pointers.cpp - Where a pointer comes from --------------------------===//
#include "autodiff/Analysis/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isPointer(Type type) {
  return isa<triton::PointerType>(getElementTypeOrSelf(type));
}

Type mlir::autodiff::getPointee(Type type) {
  return cast<triton::PointerType>(getElementTypeOrSelf(type)).getPointeeType();
}

OpOperand *mlir::autodiff::getPointerSource(Operation *op) {
  if (isa<triton::AddPtrOp, triton::SplatOp, triton::BroadcastOp,
          triton::ExpandDimsOp, triton::ReshapeOp, triton::TransOp>(op))
    return &op->getOpOperand(0);
  return nullptr;
}

namespace {
/// Walks all paths that a pointer may come from and compares their ends.
struct BaseFinder {
  llvm::SmallPtrSet<Value, 16> visited;
  BlockArgument base;

  bool visit(Value pointer) {
    if (!visited.insert(pointer).second)
      return true;
    if (auto argument = dyn_cast<BlockArgument>(pointer))
      return visitArgument(argument);
    Operation *op = pointer.getDefiningOp();
    if (OpOperand *source = getPointerSource(op))
      return visit(source->get());
    if (isa<triton::BitcastOp>(op))
      return visit(op->getOperand(0));
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return visit(select.getTrueValue()) && visit(select.getFalseValue());
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned index = cast<OpResult>(pointer).getResultNumber();
      return visit(branch.thenYield().getOperand(index)) &&
             visit(branch.elseYield().getOperand(index));
    }
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitCarried(loop, cast<OpResult>(pointer).getResultNumber());
    return false;
  }

  bool visitArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return visitCarried(loop, argument.getArgNumber() - 1);
    if (!isa<triton::FuncOp>(parent))
      return false;
    if (base && base != argument)
      return false;
    base = argument;
    return true;
  }

  bool visitCarried(scf::ForOp loop, unsigned index) {
    return visit(loop.getInitArgs()[index]) &&
           visit(loop.getYieldedValues()[index]);
  }
};
} // namespace

BlockArgument mlir::autodiff::getBaseArgument(Value pointer) {
  BaseFinder finder;
  return finder.visit(pointer) ? finder.base : BlockArgument();
}
