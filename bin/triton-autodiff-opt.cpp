//===- triton-autodiff-opt.cpp - run passes on TTIR -----------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "autodiff/InitAll.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

/// Triton names values by name locations; printing those names (unless the
/// command line says otherwise) keeps dumps readable beside Triton's own.
static void printNamesByDefault() {
  mlir::registerAsmPrinterCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  auto option = options.find("mlir-use-nameloc-as-prefix");
  if (option != options.end())
    static_cast<llvm::cl::opt<bool> *>(option->second)->setInitialValue(true);
}

int main(int argc, char **argv) {
  printNamesByDefault();
  mlir::DialectRegistry registry;
  mlir::autodiff::registerAllDialects(registry);
  mlir::autodiff::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Triton-Autodiff's pass driver\n", registry));
}
