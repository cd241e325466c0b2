//===- IntegerBFloats.cpp - bf16 numbers as integers of their bits --------===//

#include "autodiff/CPU/Passes.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::autodiff::cpu {
#define GEN_PASS_DEF_INTEGERBFLOATS
#include "autodiff/CPU/Passes.h.inc"
} // namespace mlir::autodiff::cpu

using namespace mlir;
using namespace mlir::autodiff;

static bool isBFloat(Type type) { return getElementTypeOrSelf(type).isBF16(); }

static bool isExchange(Operation *op) {
  auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op);
  return atomic && atomic.getBinOp() == LLVM::AtomicBinOp::xchg;
}

/// Operations that only move bits, whatever the type. Of a constant, the
/// attribute is replaced.
static bool movesBits(Operation *op) {
  return isa<LLVM::LoadOp, LLVM::StoreOp, LLVM::BitcastOp, LLVM::SelectOp,
             LLVM::ConstantOp, LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp,
             LLVM::FreezeOp, LLVM::BrOp, LLVM::CondBrOp, LLVM::SwitchOp,
             LLVM::CallOp, LLVM::ReturnOp, LLVM::InsertElementOp,
             LLVM::ExtractElementOp, LLVM::ShuffleVectorOp, LLVM::InsertValueOp,
             LLVM::ExtractValueOp, LLVM::MaskedLoadOp, LLVM::MaskedStoreOp>(
             op) ||
         isExchange(op);
}

/// Flips the sign.
static void negate(LLVM::FNegOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getType();
  TypedAttr sign = b.getI16IntegerAttr(
      mutation::isMade("cpu-bf16:a sign that stays") ? 0 : int16_t(0x8000));
  Type bits = b.getI16Type();
  if (auto vector = dyn_cast<VectorType>(type)) {
    auto vectorOfBits = vector.clone(bits);
    sign = SplatElementsAttr::get(vectorOfBits, sign);
    bits = vectorOfBits;
  }
  Value flipped = LLVM::XOrOp::create(
      b, loc, LLVM::BitcastOp::create(b, loc, bits, op.getOperand()),
      LLVM::ConstantOp::create(b, loc, bits, sign));
  op.replaceAllUsesWith(
      LLVM::BitcastOp::create(b, loc, type, flipped).getResult());
  op.erase();
}

namespace {
struct IntegerBFloatsPass
    : public cpu::impl::IntegerBFloatsBase<IntegerBFloatsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk([](LLVM::FNegOp op) {
      if (isBFloat(op.getType()))
        negate(op);
    });
    WalkResult checked = module.walk([](Operation *op) -> WalkResult {
      if (movesBits(op) || (llvm::none_of(op->getOperandTypes(), isBFloat) &&
                            llvm::none_of(op->getResultTypes(), isBFloat)))
        return WalkResult::advance();
      return op->emitError("the CPU backend has no bf16 arithmetic here");
    });
    if (checked.wasInterrupted())
      return signalPassFailure();

    Type bits = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](BFloat16Type) { return bits; });
    replacer.addReplacement([&](FloatAttr number) -> Attribute {
      if (!number.getType().isBF16())
        return number;
      return IntegerAttr::get(bits, number.getValue().bitcastToAPInt());
    });
    replacer.addReplacement([&](DenseElementsAttr numbers) -> Attribute {
      return numbers.getElementType().isBF16() ? numbers.bitcast(bits)
                                               : numbers;
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    module.walk([](LLVM::BitcastOp cast) {
      if (cast.getType() != cast.getArg().getType())
        return;
      cast.replaceAllUsesWith(cast.getArg());
      cast.erase();
    });
  }
};
} // namespace
