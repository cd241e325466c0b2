//===- MathFunctions.cpp - Which function an operation computes -----------===//
#include "autodiff/Analysis/MathFunctions.h"

#include "autodiff/Support/LibraryNames.h"
#include "autodiff/Support/PtxInstruction.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::autodiff;

llvm::ArrayRef<std::pair<llvm::StringLiteral, llvm::StringLiteral>>
mlir::autodiff::getFunctionOperations() {
  static const std::pair<llvm::StringLiteral, llvm::StringLiteral> table[] = {
      {"arith.addf", "add"},
      {"arith.divf", "div"},
      {"arith.maximumf", "maximum"},
      {"arith.maxnumf", "fmax"},
      {"arith.minimumf", "minimum"},
      {"arith.minnumf", "fmin"},
      {"arith.mulf", "mul"},
      {"arith.negf", "neg"},
      {"arith.remf", "fmod"},
      {"arith.subf", "sub"},
      {"math.absf", "fabs"},
      {"math.acos", "acos"},
      {"math.acosh", "acosh"},
      {"math.asin", "asin"},
      {"math.asinh", "asinh"},
      {"math.atan", "atan"},
      {"math.atan2", "atan2"},
      {"math.atanh", "atanh"},
      {"math.cbrt", "cbrt"},
      {"math.ceil", "ceil"},
      {"math.copysign", "copysign"},
      {"math.cos", "cos"},
      {"math.cosh", "cosh"},
      {"math.erf", "erf"},
      {"math.erfc", "erfc"},
      {"math.exp", "exp"},
      {"math.exp2", "exp2"},
      {"math.expm1", "expm1"},
      {"math.floor", "floor"},
      {"math.fma", "fma"},
      {"math.fpowi", "powi"},
      {"math.isfinite", "isfinite"},
      {"math.isinf", "isinf"},
      {"math.isnan", "isnan"},
      {"math.log", "log"},
      {"math.log10", "log10"},
      {"math.log1p", "log1p"},
      {"math.log2", "log2"},
      {"math.powf", "pow"},
      {"math.round", "round"},
      {"math.roundeven", "roundeven"},
      {"math.rsqrt", "rsqrt"},
      {"math.sin", "sin"},
      {"math.sinh", "sinh"},
      {"math.sqrt", "sqrt"},
      {"math.tan", "tan"},
      {"math.tanh", "tanh"},
      {"math.trunc", "trunc"},
      {"tt.approx_divf", "div"},
      {"tt.precise_divf", "div"},
      {"tt.precise_sqrt", "sqrt"},
  };
  return table;
}

std::string
mlir::autodiff::getFunctionName(Operation *op,
                                llvm::function_ref<bool(StringRef)> isKnown) {
  if (auto call = dyn_cast<triton::ExternElementwiseOp>(op))
    return getPlainName(call.getSymbol(), isKnown);
  if (auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op)) {
    std::optional<PtxInstruction> instruction = parsePtxInstruction(assembly);
    return instruction ? instruction->function : "";
  }
  static const llvm::StringMap<StringRef> byOperation = [] {
    llvm::StringMap<StringRef> map;
    for (auto [operation, function] : getFunctionOperations())
      map[operation] = function;
    return map;
  }();
  return byOperation.lookup(op->getName().getStringRef()).str();
}

SmallVector<unsigned> mlir::autodiff::getFunctionOperands(Operation *op) {
  if (auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op))
    return parsePtxInstruction(assembly)->operands;
  return llvm::to_vector(llvm::seq<unsigned>(op->getNumOperands()));
}

llvm::ArrayRef<llvm::StringLiteral>
mlir::autodiff::getPiecewiseConstantFunctions() {
  static const llvm::StringLiteral names[] = {
      "floor",      "ceil",        "trunc",      "round",     "roundeven",
      "rint",       "nearbyint",   "logb",       "ilogb",     "llrint",
      "llround",    "isnan",       "isinf",      "isfinite",  "signbit",
      "float2e8m0", "float2int",   "float2uint", "float2ll",  "float2ull",
      "double2int", "double2uint", "double2ll",  "double2ull"};
  return names;
}

bool mlir::autodiff::isPiecewiseConstant(Operation *op) {
  auto isKnown = [](StringRef name) {
    return llvm::is_contained(getPiecewiseConstantFunctions(), name);
  };
  return isKnown(getFunctionName(op, isKnown));
}
