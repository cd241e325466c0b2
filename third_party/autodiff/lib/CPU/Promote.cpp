//===- Promote.cpp - A kernel in double precision -------------------------===//
#include "autodiff/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_PROMOTE
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Promote : cpu::impl::PromoteBase<Promote> {
  void runOnOperation() override;
};
} // namespace

static bool holdsFloats(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto pointer = dyn_cast<triton::PointerType>(element))
    element = getElementTypeOrSelf(pointer.getPointeeType());
  return isa<FloatType>(element);
}

static APFloat widen(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value;
}

/// What is more than a change of types cannot be promoted.
static LogicalResult refuse(Operation *op) {
  if (isa<arith::BitcastOp, triton::BitcastOp>(op) &&
      (holdsFloats(op->getOperand(0).getType()) ||
       holdsFloats(op->getResult(0).getType())))
    return op->emitError("reinterprets the bits of floating-point numbers, "
                         "which differ in double precision");
  if (isa<triton::ElementwiseInlineAsmOp, triton::DotScaledOp>(op))
    return op->emitError("'") << op->getName() << "' is bound to its precision";
  return success();
}

/// Conversions between floating-point types do nothing between doubles.
static bool isConversion(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp>(op);
}

void Promote::runOnOperation() {
  ModuleOp module = getOperation();
  WalkResult refused = module.walk([](Operation *op) {
    return failed(refuse(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (refused.wasInterrupted())
    return signalPassFailure();

  Type wide = Float64Type::get(&getContext());
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FloatType) { return wide; });
  replacer.addReplacement([&](FloatAttr attribute) {
    return FloatAttr::get(wide, widen(attribute.getValue()));
  });
  replacer.addReplacement(
      [&](DenseElementsAttr attribute) -> std::optional<Attribute> {
        if (!isa<FloatType>(attribute.getElementType()))
          return std::nullopt;
        ShapedType type = attribute.getType().clone(wide);
        if (attribute.isSplat())
          return DenseElementsAttr::get(
              type, widen(attribute.getSplatValue<APFloat>()));
        return attribute.mapValues(wide, [](const APFloat &value) {
          return widen(value).bitcastToAPInt();
        });
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);

  module.walk([](Operation *op) {
    if (isConversion(op)) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}
