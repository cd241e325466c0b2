//===- PrintAxes.cpp - a pass that shows axis maps ------------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "PrintAxes.h"

#include "mlir/Pass/Pass.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

namespace {
struct PrintAxes : PassWrapper<PrintAxes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintAxes)
  StringRef getArgument() const final { return "print-axes"; }
  StringRef getDescription() const final {
    return "Say along which axes operations move, and what they move";
  }
  void runOnOperation() override;
};
} // namespace

void PrintAxes::runOnOperation() {
  auto isTile = llvm::IsaPred<RankedTensorType>;
  getOperation().walk([&](Operation *op) {
    if (op->getNumResults() == 0 ||
        (llvm::none_of(op->getOperandTypes(), isTile) &&
         llvm::none_of(op->getResultTypes(), isTile)))
      return;
    auto known = dyn_cast<triton::AxisMapOpInterface>(op);
    for (OpOperand &use : op->getOpOperands()) {
      InFlightDiagnostic remark = op->emitRemark("operand ")
                                  << use.getOperandNumber() << ": ";
      std::string text;
      llvm::raw_string_ostream os(text);
      if (auto map = triton::AxisMap::of(use))
        map->print(os);
      else
        os << "unknown";
      if (known && known.takesElements(use.getOperandNumber()))
        os << ", moved";
      remark << text;
    }
    if (known && known.getAttrsBehindAxis())
      op->emitRemark("behind another axis: ") << known.getAttrsBehindAxis();
  });
}

void mlir::triton::registerPrintAxes() { PassRegistration<PrintAxes>(); }
