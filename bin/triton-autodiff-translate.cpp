//===- triton-autodiff-translate.cpp - TTIR as something else -------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "autodiff/InitAll.h"
#include "autodiff/Source/Python.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration python(
      "ttir-to-python", "Print kernels as Triton Python.",
      [](Operation *op, raw_ostream &os) -> LogicalResult {
        auto module = dyn_cast<ModuleOp>(op);
        return module ? autodiff::printPython(module, os) : failure();
      },
      [](DialectRegistry &registry) {
        autodiff::registerAllDialects(registry);
      });
  return failed(
      mlirTranslateMain(argc, argv, "Triton-Autodiff's translations"));
}
