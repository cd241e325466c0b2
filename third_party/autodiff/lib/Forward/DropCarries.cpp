//===- DropCarries.cpp - What loops carry for nobody ----------------------===//
//
// A sum that nobody reads after its loop is still an operand of the next
// iteration, so no folder removes it.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/LiveValues.h"
#include "autodiff/Forward/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPCARRIES
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct DropCarries : autodiff::impl::DropCarriesBase<DropCarries> {
  void runOnOperation() override {
    LiveValues live(getOperation());
    getOperation().walk([&](scf::ForOp loop) {
      for (BlockArgument carried : loop.getRegionIterArgs())
        if (!live.contains(carried))
          loop.getBody()->getTerminator()->setOperand(
              carried.getArgNumber() - 1, carried);
    });
  }
};
} // namespace
