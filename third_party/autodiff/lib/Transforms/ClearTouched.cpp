//===- ClearTouched.cpp - Clear and round sums where they are -------------===//
#include "ArgumentUses.h"
#include "ShadowPointers.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Plan/Plan.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CLEARTOUCHED
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;

namespace {
/// A gradient that all contributions are added to atomically, in a wider type.
struct AtomicSum {
  triton::FuncOp kernel;
  unsigned place; // among the kernel's arguments
  unsigned argument;
  SmallVector<triton::AtomicRMWOp> adds;
};

struct ClearTouched : autodiff::impl::ClearTouchedBase<ClearTouched> {
  void runOnOperation() override;
  std::optional<AtomicSum> examine(BlockArgument buffer);
  std::optional<llvm::json::Value> countTouched(const AtomicSum &sum);
  triton::FuncOp derive(const AtomicSum &sum, llvm::StringRef role);

  triton::FuncOp primal;
  llvm::DenseMap<unsigned, Operation *> sites;
};
} // namespace

/// A half that is widened for its sum: rounding is what there is to save.
static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

/// What `op` adds to, if it does nothing else.
static Value getSum(Operation *op) {
  auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
  return atomic && atomic.getAtomicRmwOp() == triton::RMWOp::FADD &&
                 atomic->use_empty()
             ? atomic.getPtr()
             : Value();
}

std::optional<AtomicSum> ClearTouched::examine(BlockArgument buffer) {
  auto kernel = cast<triton::FuncOp>(buffer.getOwner()->getParentOp());
  unsigned place = buffer.getArgNumber();
  auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
  Attribute text = kernel.getArgAttr(place, kBufferAttr);
  if (operand.getKind() != OperandKind::Gradient || !text)
    return std::nullopt;
  llvm::json::Value json = fromAttribute(text);
  const llvm::json::Object &description = *json.getAsObject();
  Type pointee = getPointee(primal.getArgument(operand.getIndex()).getType());
  if (description.getString("accumulate") != "atomic" ||
      description.getString("init") != "zero" ||
      description.getBoolean("returned") != true || !isHalf(pointee))
    return std::nullopt;
  AtomicSum sum{kernel, place, operand.getIndex(), {}};
  bool addsAlone = true;
  kernel.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (!pointer || !mayPointInto(pointer, buffer))
      return;
    addsAlone &= getSum(op) != nullptr && getBaseArgument(pointer) == buffer;
    if (addsAlone)
      sum.adds.push_back(cast<triton::AtomicRMWOp>(op));
  });
  return addsAlone ? std::optional(sum) : std::nullopt;
}

/// How many elements are added to at most, repetitions included.
std::optional<llvm::json::Value>
ClearTouched::countTouched(const AtomicSum &sum) {
  llvm::json::Value total = 0;
  for (triton::AtomicRMWOp add : sum.adds) {
    auto site = add->getAttrOfType<IntegerAttr>(kSiteAttr);
    Operation *load = site ? sites.lookup(site.getInt()) : nullptr;
    std::optional<llvm::json::Value> times =
        load ? mostExecutions(load) : std::nullopt;
    if (!times)
      return std::nullopt;
    auto tile = dyn_cast<RankedTensorType>(add.getVal().getType());
    total = Array{"add", std::move(total),
                  Array{"mul", std::move(*times),
                        tile ? tile.getNumElements() : int64_t(1)}};
  }
  for (int axis : {0, 1, 2})
    total = Array{"mul", std::move(total), Array{"grid", axis}};
  // How often loops run must be known before any kernel does.
  std::string text;
  llvm::raw_string_ostream(text) << total;
  if (llvm::StringRef(text).contains("counted"))
    return std::nullopt;
  return total;
}

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// Whether a kernel that clears computes addresses and masks from what is there
/// before the backward, by integers alone, and with little work. Floats may be
/// rounded otherwise than in the kernel that adds: they must not decide.
static bool repeatsAddresses(triton::FuncOp kernel) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    if (operand.getKind() == OperandKind::Buffer)
      return false;
  }
  return !kernel
              ->walk([](Operation *op) {
                bool isLong = isa<triton::DotOp, triton::ReduceOp,
                                  triton::ScanOp, scf::WhileOp>(op);
                bool isZero = isa<arith::ConstantOp, triton::StoreOp>(op);
                bool hasFloats = llvm::any_of(op->getOperands(), isFloat) ||
                                 llvm::any_of(op->getResults(), isFloat);
                return isLong || (hasFloats && !isZero)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Replaces additions to `buffer` by stores of zeros or, with a shadow for the
/// rounded sum, of what is there; removes all other effects. Fails if something
/// depends on one of these.
static LogicalResult replaceEffects(triton::FuncOp kernel, BlockArgument buffer,
                                    BlockArgument rounded) {
  SmallVector<Operation *> effects;
  kernel.walk([&](Operation *op) {
    if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
        !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      effects.push_back(op);
  });
  ShadowPointers shadow(buffer, rounded);
  for (Operation *op : effects) {
    if (!op->use_empty())
      return failure();
    auto add = dyn_cast<triton::AtomicRMWOp>(op);
    if (add && getBaseArgument(add.getPtr()) == buffer) {
      OpBuilder b(op);
      Location loc = op->getLoc();
      Value pointer = add.getPtr(), mask = add.getMask();
      Value value = constantOf(b, loc, add.getVal().getType(), 0.0);
      if (rounded) {
        value = triton::LoadOp::create(b, loc, pointer, mask,
                                       mask ? value : Value());
        value = castFloat(b, loc, value, getPointee(rounded.getType()));
        pointer = shadow.get(pointer);
        if (!pointer)
          return failure();
      }
      triton::StoreOp::create(b, loc, pointer, value, mask);
    }
    op->erase();
  }
  return success();
}

/// The kernel without its effects, but for those on `sum`: "clear" stores
/// zeros where it adds, and "round" what is there, in the tensor's type.
triton::FuncOp ClearTouched::derive(const AtomicSum &sum,
                                    llvm::StringRef role) {
  triton::FuncOp source = sum.kernel;
  OpBuilder builder(source);
  builder.setInsertionPointAfter(source);
  auto kernel = cast<triton::FuncOp>(builder.clone(*source));
  kernel.setSymName(
      (source.getSymName() + "_" + role + llvm::Twine(sum.argument)).str());
  kernel->setAttr(kRoleAttr, builder.getStringAttr(role));
  BlockArgument original = kernel.getArgument(sum.argument), rounded;
  if (role == "round")
    rounded = appendShadow(kernel, original, OperandKind::Rounded,
                           getPointee(original.getType()), {});
  OpPassManager cleanup(triton::FuncOp::getOperationName());
  cleanup.addPass(createSimplify());
  cleanup.addPass(createCanonicalizerPass());
  cleanup.addPass(createCSEPass());
  if (failed(replaceEffects(kernel, kernel.getArgument(sum.place), rounded)) ||
      failed(runPipeline(cleanup, kernel))) {
    kernel.erase();
    return {};
  }
  dropUnusedArguments(kernel, [](OperandKind) { return true; });
  return kernel;
}

void ClearTouched::runOnOperation() {
  primal = getPrimal(getOperation());
  sites = collectSites(primal);
  SmallVector<triton::FuncOp> backwards = getBackwards(getOperation());
  llvm::DenseMap<unsigned, unsigned> kernels; // that have a gradient
  for (triton::FuncOp backward : backwards)
    for (unsigned i = 0; i < backward.getNumArguments(); ++i) {
      auto operand = backward.getArgAttrOfType<OperandAttr>(i, kOperandAttr);
      if (operand.getKind() == OperandKind::Gradient)
        ++kernels[operand.getIndex()];
    }
  for (triton::FuncOp backward : backwards) {
    // Sums in a grid of another size are not those of the primal's loads.
    if (backward->hasAttr(kGridAttr))
      continue;
    for (unsigned i = 0; i < backward.getNumArguments(); ++i) {
      std::optional<AtomicSum> sum = examine(backward.getArgument(i));
      if (!sum || kernels.lookup(sum->argument) != 1)
        continue;
      std::optional<llvm::json::Value> touched = countTouched(*sum);
      if (!touched)
        continue;
      triton::FuncOp clear = derive(*sum, "clear");
      if (!clear)
        continue;
      if (!repeatsAddresses(clear) || !derive(*sum, "round")) {
        clear.erase();
        continue;
      }
      // Otherwise the whole sum is cleared, and read to be rounded: 8 bytes for
      // each element of the tensor, beside the gradient. Here it is 10 for each
      // that is touched, the gradient is cleared, and two launches take the
      // time of some megabytes.
      Array when{
          "max", 0,
          Array{"sub", Array{"mul", 8, Array{"extent", sum->argument}},
                Array{"add", Array{"mul", 10, std::move(*touched)}, 1 << 24}}};
      clear->setAttr(kWhenAttr, toAttribute(&getContext(), std::move(when)));
    }
  }
}
