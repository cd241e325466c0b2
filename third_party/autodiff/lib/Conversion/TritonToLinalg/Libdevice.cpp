//===- Libdevice.cpp - Functions of device libraries ----------------------===//
//
// `__nv_expf` and the like. Those that MLIR's math dialect has become its
// operations, which vectorize; the others call the C library.
//
//===----------------------------------------------------------------------===//

#include "Libdevice.h"
#include "Numerics.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;

/// The operation of the math dialect with this meaning, or "".
static StringRef findMathOp(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"exp", "fast_exp"}, "math.exp")
      .Case("exp2", "math.exp2")
      .Cases({"log", "fast_log"}, "math.log")
      .Cases({"log2", "fast_log2"}, "math.log2")
      .Cases({"log10", "fast_log10"}, "math.log10")
      .Cases({"sin", "fast_sin"}, "math.sin")
      .Cases({"cos", "fast_cos"}, "math.cos")
      .Cases({"tan", "fast_tan"}, "math.tan")
      .Cases({"tanh", "fast_tanh"}, "math.tanh")
      .Cases({"sqrt", "sqrt_rn", "fsqrt_rn", "dsqrt_rn"}, "math.sqrt")
      .Cases({"rsqrt", "frsqrt_rn"}, "math.rsqrt")
      .Case("erf", "math.erf")
      .Cases({"pow", "fast_pow"}, "math.powf")
      .Case("floor", "math.floor")
      .Case("ceil", "math.ceil")
      .Case("trunc", "math.trunc")
      .Case("round", "math.round")
      .Cases({"rint", "nearbyint"}, "math.roundeven")
      .Case("fabs", "math.absf")
      .Case("abs", "math.absi")
      .Case("copysign", "math.copysign")
      .Cases({"fma", "fma_rn", "fmaf_rn"}, "math.fma")
      .Case("fmod", "arith.remf")
      .Cases({"fadd_rn", "dadd_rn", "add_rn"}, "arith.addf")
      .Cases({"fsub_rn", "dsub_rn", "sub_rn"}, "arith.subf")
      .Cases({"fmul_rn", "dmul_rn", "mul_rn"}, "arith.mulf")
      .Cases({"fdiv_rn", "ddiv_rn", "div_rn", "fast_divide"}, "arith.divf")
      .Cases({"popc", "popcll"}, "math.ctpop")
      .Cases({"clz", "clzll"}, "math.ctlz")
      .Default("");
}

/// Whether the C library has the function under its own name, with an `f`
/// behind it for f32.
static bool isInLibm(StringRef name) {
  static const llvm::StringSet<> names = {
      "acos",  "acosh",  "asin", "asinh",  "atan",  "atan2",     "atanh",
      "cbrt",  "cosh",   "erfc", "exp10",  "expm1", "log1p",     "fdim",
      "hypot", "j0",     "j1",   "lgamma", "logb",  "nextafter", "remainder",
      "sinh",  "tgamma", "y0",   "y1"};
  return names.contains(name);
}

Value cpu::lowerLibdevice(Lowering &lowering, OpBuilder &b,
                          triton::ExternElementwiseOp op, ValueRange operands) {
  Location loc = op.getLoc();
  StringRef name = op.getSymbol();
  if (!name.consume_front("__nv_") && !name.consume_front("__ocml_"))
    return {};
  Type type = operands.empty() ? Type() : operands[0].getType();
  Type resultType = getElementTypeOrSelf(op.getResult().getType());
  // fast_dividef and sqrtf, but not fmaf_rn: the suffix names the type.
  if (name.ends_with("_f32") || name.ends_with("_f64"))
    name = name.drop_back(4);
  else if (type && type.isF32() && findMathOp(name).empty() && !isInLibm(name))
    name.consume_back("f");

  if (name == "fmax" || name == "fmin")
    return selectNumber(b, loc, name == "fmax", operands[0], operands[1]);
  if (name == "exp2" && type.isF32())
    return expandExp2(b, loc, operands[0]);
  if (StringRef math = findMathOp(name); !math.empty()) {
    OperationState state(loc, math);
    state.addOperands(operands);
    state.addTypes(type);
    Value result = b.create(state)->getResult(0);
    if (result.getType() != resultType)
      result = arith::TruncIOp::create(b, loc, resultType, result);
    return result;
  }
  auto classify = [&](Value isTrue) -> Value {
    return isTrue.getType() == resultType
               ? isTrue
               : arith::ExtUIOp::create(b, loc, resultType, isTrue).getResult();
  };
  if (name == "isnan" || name == "isnand")
    return classify(math::IsNaNOp::create(b, loc, operands[0]));
  if (name == "isinf" || name == "isinfd")
    return classify(math::IsInfOp::create(b, loc, operands[0]));
  if (name == "finite" || name == "isfinited")
    return classify(math::IsFiniteOp::create(b, loc, operands[0]));
  if (isInLibm(name) && type == resultType && (type.isF32() || type.isF64()))
    return lowering.callExternal(
        b, loc, type.isF32() ? (name + "f").str() : name.str(), type, operands);
  return {};
}
