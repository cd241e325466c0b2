//===- MarkHistory.cpp - Which inputs' floats reach which outputs ---------===//
#include "autodiff/Analysis/FloatFlow.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKHISTORY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkHistory : autodiff::impl::MarkHistoryBase<MarkHistory> {
  void transform() override;
};
} // namespace

void MarkHistory::transform() {
  triton::FuncOp kernel = getPrimal(getOperation());
  // The stages of the pipeline may run one after the other, from the start.
  if (kernel->hasAttr(kHistoryAttr))
    return;
  Builder b(&getContext());
  SmallVector<Attribute> outputs;
  FloatFlow flow(kernel);
  for (const auto &[output, inputs] : flow.getOutputs()) {
    SmallVector<int32_t> numbers(inputs.set_bits());
    outputs.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("argument", b.getI32IntegerAttr(output)),
         b.getNamedAttr("inputs", b.getDenseI32ArrayAttr(numbers))}));
  }
  kernel->setAttr(kHistoryAttr, b.getArrayAttr(outputs));
}
