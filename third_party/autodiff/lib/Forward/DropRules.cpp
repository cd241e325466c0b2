//===- DropRules.cpp - A kernel to launch beside one to differentiate -----===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Transforms/CustomCall.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPRULES
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct DropRules : autodiff::impl::DropRulesBase<DropRules> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto kernel : llvm::to_vector(module.getOps<triton::FuncOp>())) {
      if (getRole(kernel) != "tangent")
        continue;
      SmallVector<triton::CallOp> calls;
      kernel.walk([&](triton::CallOp call) { calls.push_back(call); });
      if (calls.empty())
        continue;
      triton::FuncOp copy = kernel.clone();
      copy->setAttr(kRoleAttr, StringAttr::get(&getContext(), "rules"));
      SymbolTable(module).insert(copy);
      for (triton::CallOp call : calls)
        if (auto custom = CustomCall::find(call);
            custom ? failed(custom->drop()) : !CustomCall::dropOnce(call))
          return signalPassFailure();
    }
  }
};
} // namespace
