//===- WriteMarkers.cpp - What a derived kernel says to differentiation ---===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Differentiation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/CustomCall.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_WRITEMARKERS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// The register that inline assembly keeps a number of this type in.
static StringRef getRegister(Type element, bool isAmd) {
  if (isAmd)
    return "v";
  switch (element.getIntOrFloatBitWidth()) {
  case 16:
    return "h";
  case 32:
    return "f";
  default:
    return "d";
  }
}

/// `value`, through assembly that is nothing but a comment.
static Value mark(OpBuilder &b, Location loc, Value value, StringRef name,
                  bool isAmd) {
  Type element = getElementTypeOrSelf(value.getType());
  // No register has eight bits.
  if (element.getIntOrFloatBitWidth() == 8) {
    Value wide = castFloat(b, loc, value, b.getF16Type());
    return castFloat(b, loc, mark(b, loc, wide, name, isAmd), element);
  }
  std::string text = ((isAmd ? "; autodiff." : "// autodiff.") + name).str();
  std::string constraints = ("=" + getRegister(element, isAmd) + ",0").str();
  return triton::ElementwiseInlineAsmOp::create(b, loc, {value.getType()}, text,
                                                constraints, /*pure=*/true,
                                                /*packed_element=*/1, {value})
      .getResult()[0];
}

namespace {
struct WriteMarkers : autodiff::impl::WriteMarkersBase<WriteMarkers> {
  using WriteMarkersBase::WriteMarkersBase;

  void runOnOperation() override {
    const Target &target = Target::of(getOperation());
    bool isAmd = StringRef(target.name).starts_with("gfx");
    SmallVector<CustomVjpOp> exact;
    getOperation().walk([&](CustomVjpOp custom) {
      if (calls && custom.getExact() && custom.getCall())
        exact.push_back(custom);
    });
    for (CustomVjpOp custom : exact) {
      OpBuilder b(custom);
      CustomCall::write(
          custom, llvm::map_to_vector(custom.getValues(), [&](Value value) {
            return mark(b, custom.getLoc(), value, "inside", isAmd);
          }));
    }
    keepMarkers(getOperation(), /*withInputs=*/calls);
    getOperation().walk([&](Operation *op) {
      op->removeDiscardableAttr(kUnlessZeroAttr);
      auto once = dyn_cast<OnceOp>(op);
      if (!once && !isa<StopGradientOp>(op))
        return;
      if (calls && once && !once.getInputs().empty())
        return CustomCall::write(once);
      OpBuilder b(op);
      Value value = op->getOperand(0);
      if (isDifferentiable(value.getType()))
        value = mark(b, op->getLoc(), value, once ? "once" : "stop_gradient",
                     isAmd);
      op->replaceAllUsesWith(ValueRange{value});
      op->erase();
    });
  }
};
} // namespace
