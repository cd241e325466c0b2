//===- Promote.cpp - A kernel in double precision -------------------------===//
#include "autodiff/Assembly/Lift.h"
#include "autodiff/CPU/Passes.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/PtxInstruction.h"

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

/// Whether `op` reinterprets the bits of a number.
static bool reinterprets(Operation *op) {
  auto call = dyn_cast<triton::ExternElementwiseOp>(op);
  return isa<arith::BitcastOp, triton::BitcastOp>(op) ||
         (call && call.getSymbol().contains("_as_"));
}

/// Operations that depend on the type cannot be promoted.
static LogicalResult refuse(Operation *op) {
  if (reinterprets(op) && !mutation::isMade("cpu-promote:bits of doubles") &&
      (holdsFloats(op->getOperand(0).getType()) ||
       holdsFloats(op->getResult(0).getType())))
    return op->emitError("reinterprets the bits of floating-point numbers, "
                         "which differ in double precision");
  if (isa<triton::DotScaledOp>(op))
    return op->emitError("'") << op->getName() << "' is bound to its precision";
  return success();
}

/// The operation that computes a function in any precision, or null.
static Operation *createFunction(OpBuilder &b, Location loc, StringRef name,
                                 Type type, ValueRange operands) {
  if (name == "rcp")
    return arith::DivFOp::create(b, loc, constantOf(b, loc, type, 1.0),
                                 operands[0]);
  if (name == "rint")
    name = "roundeven";
  for (auto [operation, function] : getFunctionOperations())
    if (function == name && !operation.starts_with("tt.")) {
      OperationState state(loc, operation, operands, type);
      return b.create(state);
    }
  return nullptr;
}

/// Inline assembly becomes arithmetic, without approximations.
static LogicalResult lift(triton::ElementwiseInlineAsmOp op) {
  std::optional<PtxInstruction> instruction = parsePtxInstruction(op);
  if (!instruction) {
    std::string text = op.getAsmString().trim().str();
    llvm::Error reason = liftAssembly(op);
    if (!reason)
      return success();
    return op->emitError("the inline assembly \"")
           << text << "\" is bound to its precision: "
           << llvm::toString(std::move(reason));
  }
  OpBuilder b(op);
  Value value;
  SmallVector<Value> operands;
  for (unsigned operand : instruction->operands)
    operands.push_back(op->getOperand(operand));
  StringRef name = instruction->function;
  Type type = op->getResult(0).getType();
  if (name == "mov" || (name == "cvt" && isFloat(operands[0].getType())))
    value = castFloat(b, op.getLoc(), operands[0], getElementTypeOrSelf(type));
  else if (Operation *function =
               createFunction(b, op.getLoc(), name, type, operands))
    value = function->getResult(0);
  if (!value)
    return op->emitError("the inline assembly \"")
           << op.getAsmString().trim() << "\" is bound to its precision";
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return success();
}

/// The arithmetic may contain single instructions as assembly, which are
/// replaced in a second round.
static LogicalResult liftAll(ModuleOp module) {
  unsigned rounds = mutation::isMade("cpu-promote:single instructions") ? 1 : 2;
  for (unsigned round = 0; round < rounds; ++round) {
    SmallVector<triton::ElementwiseInlineAsmOp> assembly;
    module.walk(
        [&](triton::ElementwiseInlineAsmOp op) { assembly.push_back(op); });
    for (triton::ElementwiseInlineAsmOp op : assembly)
      if (failed(lift(op)))
        return failure();
  }
  return success();
}

/// Conversions between floating-point types do nothing between doubles.
static bool isConversion(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp>(op);
}

void Promote::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(liftAll(module)))
    return signalPassFailure();
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
