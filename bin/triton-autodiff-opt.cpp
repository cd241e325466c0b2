//===- triton-autodiff-opt.cpp - run passes on TTIR -----------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "autodiff/InitAll.h"
#include "autodiff/Support/CheckText.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

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
  llvm::InitLLVM initialised(argc, argv);
  printNamesByDefault();
  mlir::DialectRegistry registry;
  mlir::autodiff::registerAllDialects(registry);
  mlir::autodiff::registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Triton-Autodiff's pass driver\n", registry);
  std::string message;
  auto file = mlir::openInputFile(input, &message);
  auto result = file ? mlir::openOutputFile(output, &message) : nullptr;
  if (!result) {
    llvm::errs() << message << "\n";
    return 1;
  }
  mlir::MLIRContext context;
  if (failed(mlir::autodiff::checkText(file->getBuffer(), input, &context)) ||
      failed(mlir::MlirOptMain(result->os(), std::move(file), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return 1;
  result->keep();
  return 0;
}
