//===- Target.cpp - The devices that kernels are derived for --------------===//
#include "autodiff/Support/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::autodiff;

int64_t Target::getLeastSum(Type element,
                            triton::InputPrecision precision) const {
  using triton::InputPrecision;
  switch (element.getIntOrFloatBitWidth()) {
  case 8:
    return sums.bytes;
  case 16:
    return sums.halves;
  case 64:
    return sums.doubles;
  default:
    break;
  }
  switch (precision) {
  case InputPrecision::IEEE:
    return 1;
  case InputPrecision::BF16x3:
  case InputPrecision::BF16x6:
    return sums.halves;
  case InputPrecision::TF32:
  case InputPrecision::TF32x3:
    return sums.tf32;
  }
  llvm_unreachable("unknown precision");
}

bool Target::isTooShort(triton::DotOp dot) const {
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  return lhs.getShape().back() <
         getLeastSum(lhs.getElementType(), dot.getInputPrecision());
}

/// The number of an NVIDIA GPU's name, its compute capability times ten.
static std::optional<unsigned> getCapability(StringRef name) {
  unsigned number;
  if (!name.consume_front("sm_") || name.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

const Target *Target::find(StringRef name) {
  std::optional<unsigned> capability = getCapability(name);
  const Target *found = nullptr;
  for (const Target &target : kTargets) {
    std::optional<unsigned> known = getCapability(target.name);
    bool isOlder = capability && known && *known <= *capability;
    bool isAmd = name.starts_with("gfx") && target.name.starts_with("gfx");
    if (target.name == name || isOlder || isAmd)
      found = &target;
  }
  return found;
}

const Target &Target::of(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto name =
      module ? module->getAttrOfType<StringAttr>(kTargetAttr) : StringAttr();
  const Target *named = name ? find(name) : nullptr;
  return named ? *named : *find("sm_90");
}
