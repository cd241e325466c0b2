//===- Target.cpp - The devices that kernels are derived for --------------===//
#include "autodiff/Support/Target.h"

#include "autodiff/Support/NarrowLoads.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// The width of an instruction's operands, and how many elements it sums over.
struct Instruction {
  int64_t bits, sum;
};
} // namespace

static Instruction findInstruction(const LeastSums &sums, triton::DotOp dot) {
  using triton::InputPrecision;
  int64_t bits =
      getElementTypeOrSelf(dot.getA().getType()).getIntOrFloatBitWidth();
  switch (bits) {
  case 8:
    return {bits, sums.bytes};
  case 16:
    return {bits, sums.halves};
  case 64:
    return {bits, sums.doubles};
  default:
    break;
  }
  switch (dot.getInputPrecision()) {
  case InputPrecision::IEEE:
    return {bits, 1};
  case InputPrecision::BF16x3:
  case InputPrecision::BF16x6:
    return {16, sums.halves};
  case InputPrecision::TF32:
  case InputPrecision::TF32x3:
    return {bits, sums.tf32};
  }
  llvm_unreachable("unknown precision");
}

/// The threads that share a sum over float64.
constexpr int64_t kThreadsAlongSum = 4;

int64_t Target::getLeastSum(triton::DotOp dot) const {
  auto [bits, sum] = findInstruction(sums, dot);
  if (!isNvidia() || sum == 1)
    return sum;
  // That `tt.join` halves this width (`findLayoutWidth`) needs no longer sums:
  // the threads along one then have as many neighbours as it is long.
  int64_t narrowest = std::min(
      {bits, findNarrowestLoad(dot.getA()), findNarrowestLoad(dot.getB())});
  if (bits == 64)
    return std::max(sum, getNeighbours(narrowest) * kThreadsAlongSum);
  return sum * bits / narrowest;
}

bool Target::isTooShort(triton::DotOp dot) const {
  int64_t length =
      cast<RankedTensorType>(dot.getA().getType()).getShape().back();
  // Longer sums are enough for operands from any memory.
  constexpr int64_t kEnough = 64;
  return length < kEnough && length < getLeastSum(dot);
}

/// The compute capability of an NVIDIA GPU times ten, from its name.
static std::optional<unsigned> getCapability(StringRef name) {
  unsigned number;
  if (!name.consume_front("sm_") || name.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

const Target *Target::find(StringRef name) {
  // It has the shared memory and matrix unit of sm_89, not of the older sm_80.
  if (name == "sm_86")
    name = "sm_89";
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
