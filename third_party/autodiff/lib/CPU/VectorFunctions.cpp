//===- VectorFunctions.cpp - The C library's functions of vectors ---------===//
//
// Vector functions round differently from scalar ones, and whether LLVM
// vectorizes depends on the surrounding code. A backward kernel that computes a
// value again has to get exactly the same number; otherwise it may take another
// branch than the forward where two values are equal. So every scalar function
// is computed by a vector function, also for single elements.
//
//===----------------------------------------------------------------------===//

#include "VectorFunctions.h"

#include "autodiff/Support/Mutation.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

#include <optional>

using namespace llvm;

namespace {
/// A vector function and the scalar intrinsic that it stands for.
struct VectorFunction {
  unsigned lanes;
  std::string scalar, vector, prefix;
};
} // namespace

/// The letter in the names of vector functions for this machine, and the width
/// of their vectors.
static std::optional<std::pair<char, unsigned>>
findVariant(const TargetMachine &target) {
  const Triple &triple = target.getTargetTriple();
  if (!triple.isOSLinux() || !triple.isGNUEnvironment())
    return std::nullopt;
  if (triple.isAArch64())
    return std::pair('n', 128u);
  if (triple.getArch() != Triple::x86_64)
    return std::nullopt;
  bool isWide = target.getMCSubtargetInfo()->checkFeatures("+avx2");
  return isWide ? std::pair('d', 256u) : std::pair('b', 128u);
}

/// The functions for this machine. LLVM refers to their names.
static ArrayRef<VectorFunction> getFunctions(const TargetMachine &target) {
  static const std::vector<VectorFunction> functions = [&] {
    std::vector<VectorFunction> result;
    auto variant = findVariant(target);
    if (!variant)
      return result;
    auto [letter, bits] = *variant;
    for (auto [name, arguments] :
         {std::pair("sin", "v"), std::pair("cos", "v"), std::pair("exp", "v"),
          std::pair("log", "v"), std::pair("pow", "vv")})
      for (bool isDouble : {false, true}) {
        unsigned lanes = bits / (isDouble ? 64 : 32);
        std::string prefix =
            (Twine("_ZGV") + Twine(letter) + "N" + Twine(lanes) + arguments)
                .str();
        std::string scalar =
            (Twine("llvm.") + name + (isDouble ? ".f64" : ".f32")).str();
        std::string vector =
            (Twine(prefix) + "_" + name + (isDouble ? "" : "f")).str();
        result.push_back({lanes, scalar, vector, prefix});
      }
    return result;
  }();
  return functions;
}

void mlir::autodiff::cpu::addVectorFunctions(TargetLibraryInfoImpl &library,
                                             const TargetMachine &target) {
  std::vector<VecDesc> descriptions;
  for (const VectorFunction &function : getFunctions(target))
    descriptions.emplace_back(function.scalar, function.vector,
                              ElementCount::getFixed(function.lanes),
                              /*Masked=*/false, function.prefix, std::nullopt);
  library.addVectorizableFunctions(descriptions);
}

/// Calls `function` with the operands in every lane, and takes the first
/// result.
static void replaceCall(IntrinsicInst *call, const VectorFunction &function) {
  IRBuilder<> b(call);
  Type *type =
      VectorType::get(call->getType(), ElementCount::getFixed(function.lanes));
  SmallVector<Value *> operands;
  for (Value *operand : call->args())
    operands.push_back(b.CreateVectorSplat(function.lanes, operand));
  SmallVector<Type *> types(operands.size(), type);
  FunctionCallee callee = call->getModule()->getOrInsertFunction(
      function.vector, FunctionType::get(type, types, /*isVarArg=*/false));
  Value *results = b.CreateCall(callee, operands);
  call->replaceAllUsesWith(b.CreateExtractElement(results, uint64_t(0)));
  call->eraseFromParent();
}

void mlir::autodiff::cpu::useVectorFunctions(Module &module,
                                             const TargetMachine &target) {
  if (mutation::isMade("cpu-functions:others for single elements"))
    return;
  SmallVector<std::pair<IntrinsicInst *, const VectorFunction *>> calls;
  for (const VectorFunction &function : getFunctions(target))
    if (Function *scalar = module.getFunction(function.scalar))
      for (User *user : scalar->users())
        calls.emplace_back(cast<IntrinsicInst>(user), &function);
  for (auto [call, function] : calls)
    replaceCall(call, *function);
}
