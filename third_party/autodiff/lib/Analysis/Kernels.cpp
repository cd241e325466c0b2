//===- Kernels.cpp - The kernels of a module ------------------------------===//
#include "autodiff/Analysis/Kernels.h"

#include "autodiff/Dialect/Expr.h"

using namespace mlir;
using namespace mlir::autodiff;

llvm::StringRef mlir::autodiff::getRole(triton::FuncOp function) {
  auto role = function->getAttrOfType<StringAttr>(kRoleAttr);
  return role ? role.getValue() : "";
}

static bool hasRole(triton::FuncOp function, llvm::StringRef role) {
  return getRole(function) == role && (!role.empty() || function.isPublic());
}

static triton::FuncOp findByRole(ModuleOp module, llvm::StringRef role) {
  for (auto function : module.getOps<triton::FuncOp>())
    if (hasRole(function, role))
      return function;
  return {};
}

triton::FuncOp mlir::autodiff::getPrimal(ModuleOp module) {
  return findByRole(module, "");
}
triton::FuncOp mlir::autodiff::getBackward(ModuleOp module) {
  return findByRole(module, "backward");
}
SmallVector<triton::FuncOp> mlir::autodiff::getBackwards(ModuleOp module) {
  SmallVector<triton::FuncOp> kernels;
  for (auto function : module.getOps<triton::FuncOp>())
    if (!function.isDeclaration() && hasRole(function, "backward"))
      kernels.push_back(function);
  return kernels;
}
SmallVector<triton::FuncOp>
mlir::autodiff::getVariants(triton::FuncOp backward) {
  SmallVector<triton::FuncOp> kernels;
  for (auto function :
       backward->getParentOfType<ModuleOp>().getOps<triton::FuncOp>())
    if (LaunchOp launch = findLaunch(function))
      if (launch.getInPlaceOf() == backward.getSymName())
        kernels.push_back(function);
  return kernels;
}
static bool isTallying(triton::FuncOp kernel) {
  return hasRole(kernel, "tally") || hasRole(kernel, "clear") ||
         hasRole(kernel, "round");
}
SmallVector<triton::FuncOp> mlir::autodiff::getTallying(ModuleOp module) {
  SmallVector<triton::FuncOp> kernels;
  for (auto function : module.getOps<triton::FuncOp>())
    if (isTallying(function))
      kernels.push_back(function);
  return kernels;
}
bool mlir::autodiff::isLaunched(triton::FuncOp kernel) {
  return isBackward(kernel) || hasRole(kernel, "forward") ||
         hasRole(kernel, "count");
}
bool mlir::autodiff::isBackward(triton::FuncOp kernel) {
  return !kernel.isDeclaration() &&
         (hasRole(kernel, "backward") || hasRole(kernel, "variant") ||
          isTallying(kernel));
}
triton::FuncOp mlir::autodiff::getForward(ModuleOp module) {
  return findByRole(module, "forward");
}
triton::FuncOp mlir::autodiff::getCounting(ModuleOp module) {
  return findByRole(module, "count");
}

triton::FuncOp mlir::autodiff::getDifferentiated(ModuleOp module) {
  triton::FuncOp rewritten = findByRole(module, "differentiated");
  return rewritten ? rewritten : getPrimal(module);
}

LaunchOp mlir::autodiff::findLaunch(triton::FuncOp kernel) {
  PlanOp plan = PlanOp::of(kernel->getParentOfType<ModuleOp>());
  return plan ? plan.findLaunch(kernel.getSymName()) : LaunchOp();
}
triton::FuncOp mlir::autodiff::getKernel(LaunchOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<triton::FuncOp>(
      launch, launch.getKernelAttr());
}
llvm::DenseSet<OperandAttr> mlir::autodiff::collectOperands(ModuleOp module) {
  llvm::DenseSet<OperandAttr> operands;
  for (auto kernel : module.getOps<triton::FuncOp>())
    collectOperands(kernel, operands);
  return operands;
}
void mlir::autodiff::collectOperands(triton::FuncOp kernel,
                                     llvm::DenseSet<OperandAttr> &operands) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (auto operand =
            kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr))
      operands.insert(operand);
}

SmallVector<ExprAttr> mlir::autodiff::getGrid(triton::FuncOp kernel) {
  LaunchOp launch = findLaunch(kernel);
  ArrayAttr grid = launch ? launch.getGridAttr() : ArrayAttr();
  return grid ? toExpressions(grid) : SmallVector<ExprAttr>();
}

llvm::DenseSet<Operation *> mlir::autodiff::findAdjoint(Block &body) {
  llvm::DenseSet<Operation *> adjoint;
  for (Operation &op : body) {
    bool belongs = op.hasTrait<OpTrait::IsTerminator>();
    op.walk([&](Operation *inner) {
      belongs |= isa<UpstreamOp>(inner) ||
                 hasEffect<MemoryEffects::Write>(inner) ||
                 llvm::any_of(inner->getOperands(), [&](Value operand) {
                   return adjoint.contains(operand.getDefiningOp());
                 });
    });
    if (belongs)
      adjoint.insert(&op);
  }
  return adjoint;
}

SmallVector<scf::ForOp> mlir::autodiff::getLoops(triton::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

bool mlir::autodiff::mayWrite(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return inner->getNumRegions() == 0 &&
                       hasEffect<MemoryEffects::Write>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}
