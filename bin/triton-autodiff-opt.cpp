//===- triton-autodiff-opt.cpp - run passes on TTIR -----------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "autodiff/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::autodiff::registerAllDialects(registry);
  mlir::autodiff::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Triton-Autodiff's pass driver\n", registry));
}
