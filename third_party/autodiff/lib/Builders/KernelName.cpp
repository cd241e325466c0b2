//===- KernelName.cpp - What derived kernels are called -------------------===//
#include "autodiff/Builders/KernelName.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

void mlir::autodiff::nameKernel(triton::FuncOp kernel,
                                const llvm::Twine &name) {
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string unique = name.str();
  auto isTaken = [&] {
    Operation *other = module.lookupSymbol(unique);
    return other && other != kernel;
  };
  for (unsigned number = 2; isTaken(); ++number)
    unique = (name + "_" + llvm::Twine(number)).str();
  kernel.setSymName(unique);
}
