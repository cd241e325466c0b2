//===- triton-autodiff-opt.cpp - run passes on TTIR -----------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "PrintAxes.h"
#include "PrintContributions.h"
#include "autodiff/InitAll.h"
#include "autodiff/Support/CheckText.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Target/TargetMachine.h"

static llvm::cl::opt<bool> optimizeLLVM(
    "cpu-optimize-llvm",
    llvm::cl::desc("Read LLVM IR, and run the CPU backend's LLVM passes"));

/// Triton names values by name locations; printing those names (unless the
/// command line says otherwise) keeps dumps readable beside Triton's own.
static void printNamesByDefault() {
  mlir::registerAsmPrinterCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  auto option = options.find("mlir-use-nameloc-as-prefix");
  if (option != options.end())
    static_cast<llvm::cl::opt<bool> *>(option->second)->setInitialValue(true);
}

static bool optimize(const llvm::MemoryBuffer &file, llvm::raw_ostream &os) {
  namespace cpu = mlir::autodiff::cpu;
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseIR(file.getMemBufferRef(), diagnostic, context);
  if (!module) {
    diagnostic.print(nullptr, llvm::errs());
    return false;
  }
  std::string error;
  auto target = cpu::createHostTarget({}, error);
  if (target) {
    module->setDataLayout(target->createDataLayout());
    module->setTargetTriple(target->getTargetTriple());
  }
  if (!target || failed(cpu::optimize(*module, *target, {}, error))) {
    llvm::errs() << "error: " << error << "\n";
    return false;
  }
  module->print(os, nullptr);
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM initialised(argc, argv);
  printNamesByDefault();
  mlir::DialectRegistry registry;
  mlir::autodiff::registerAllDialects(registry);
  // What stands between the passes of the CPU backend.
  registry.insert<mlir::bufferization::BufferizationDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect,
                  mlir::memref::MemRefDialect, mlir::tensor::TensorDialect>();
  mlir::autodiff::registerAllPasses();
  mlir::triton::registerPrintAxes();
  mlir::autodiff::registerPrintContributions();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Triton-Autodiff's pass driver\n", registry);
  std::string message;
  auto file = mlir::openInputFile(input, &message);
  auto result = file ? mlir::openOutputFile(output, &message) : nullptr;
  if (!result) {
    llvm::errs() << message << "\n";
    return 1;
  }
  if (optimizeLLVM) {
    if (!optimize(*file, result->os()))
      return 1;
    result->keep();
    return 0;
  }
  mlir::MLIRContext context;
  if (failed(mlir::autodiff::checkText(file->getBuffer(), input, &context)) ||
      failed(mlir::MlirOptMain(result->os(), std::move(file), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return 1;
  result->keep();
  return 0;
}
