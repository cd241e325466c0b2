//===- Libdevice.cpp - Functions of device libraries ----------------------===//
//
// `__nv_expf` and the like. Functions of MLIR's math dialect become its
// operations, which vectorize; the others call the C library or our runtime.
//
//===----------------------------------------------------------------------===//

#include "Libdevice.h"
#include "Numerics.h"

#include "autodiff/Support/LibraryNames.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;

/// The operation with this meaning, or "".
static StringRef findOperation(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("exp", "math.exp")
      .Case("exp2", "math.exp2")
      .Case("log", "math.log")
      .Case("log2", "math.log2")
      .Case("log10", "math.log10")
      .Case("sin", "math.sin")
      .Case("cos", "math.cos")
      .Case("tan", "math.tan")
      .Case("tanh", "math.tanh")
      .Case("sqrt", "math.sqrt")
      .Case("rsqrt", "math.rsqrt")
      .Case("erf", "math.erf")
      .Case("pow", "math.powf")
      .Case("floor", "math.floor")
      .Case("ceil", "math.ceil")
      .Case("trunc", "math.trunc")
      .Case("round", "math.round")
      .Cases({"rint", "nearbyint"}, "math.roundeven")
      .Case("fabs", "math.absf")
      .Cases({"abs", "llabs", "iabs"}, "math.absi")
      .Case("copysign", "math.copysign")
      .Case("fma", "math.fma")
      .Case("fmod", "arith.remf")
      .Case("add", "arith.addf")
      .Case("sub", "arith.subf")
      .Case("mul", "arith.mulf")
      .Case("div", "arith.divf")
      .Case("neg", "arith.negf")
      .Cases({"popc", "popcll"}, "math.ctpop")
      .Cases({"clz", "clzll"}, "math.ctlz")
      .Case("double2float", "arith.truncf")
      .Cases({"int2float", "ll2float", "int2double", "ll2double"},
             "arith.sitofp")
      .Cases({"uint2float", "ull2float", "uint2double", "ull2double"},
             "arith.uitofp")
      .Cases({"float_as_int", "float_as_uint", "double_as_longlong"},
             "arith.bitcast")
      .Cases({"int_as_float", "uint_as_float", "longlong_as_double"},
             "arith.bitcast")
      .Default("");
}

/// Whether the C library has a function of this name, with an `f` behind it for
/// f32.
static bool isInLibm(StringRef name) {
  static const llvm::StringSet<> names = {
      "acos",    "acosh", "asin", "asinh",     "atan",      "atan2",  "atanh",
      "cbrt",    "cosh",  "erfc", "exp10",     "expm1",     "fdim",   "hypot",
      "ilogb",   "j0",    "j1",   "jn",        "ldexp",     "lgamma", "llrint",
      "llround", "log1p", "logb", "nextafter", "remainder", "scalbn", "sinh",
      "tgamma",  "y0",    "y1",   "yn"};
  return names.contains(name);
}

/// Whether the runtime has a function of this name, with `tad_` in front and an
/// `f` behind it for f32.
static bool isInRuntime(StringRef name) {
  static const llvm::StringSet<> names = {
      "cospi",    "cyl_bessel_i0", "cyl_bessel_i1", "erfcinv", "erfcx",
      "erfinv",   "norm3d",        "norm4d",        "normcdf", "normcdfinv",
      "powi",     "rcbrt",         "rhypot",        "rnorm3d", "rnorm4d",
      "saturate", "sinpi"};
  return names.contains(name);
}

/// For a conversion of floats to integers, "s" or "u" for its sign; or "".
static StringRef findIntegerConversion(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"float2int", "float2ll", "double2int", "double2ll"}, "s")
      .Cases({"float2uint", "float2ull", "double2uint", "double2ull"}, "u")
      .Default("");
}

static bool isClassification(StringRef name) {
  return name == "isnan" || name == "isinf" || name == "isfinite" ||
         name == "signbit";
}

static bool isKnown(StringRef name) {
  return !findOperation(name).empty() || isInLibm(name) || isInRuntime(name) ||
         !findIntegerConversion(name).empty() || name == "fmax" ||
         name == "fmin" || name == "rcp" || isClassification(name);
}

static Value createOperation(OpBuilder &b, Location loc, StringRef name,
                             Type type, ValueRange operands) {
  OperationState state(loc, name, operands, TypeRange(type));
  return b.create(state)->getResult(0);
}

/// Whether an operation is a function of so many operands.
static bool takes(OperationName operation, size_t operands) {
  return operands == 1 ? operation.hasTrait<OpTrait::OneOperand>()
         : operands == 2
             ? operation.hasTrait<OpTrait::NOperands<2>::Impl>()
             : operands == 3 &&
                   operation.hasTrait<OpTrait::NOperands<3>::Impl>();
}

/// Rounds in the mode that the symbol ends with, then saturates as GPUs do.
static Value convertToInteger(OpBuilder &b, Location loc, StringRef symbol,
                              StringRef sign, Type type, Value x) {
  StringRef rounding = llvm::StringSwitch<StringRef>(symbol.take_back(3))
                           .Case("_rn", "math.roundeven")
                           .Case("_rd", "math.floor")
                           .Case("_ru", "math.ceil")
                           .Default("math.trunc");
  Value rounded = createOperation(b, loc, rounding, x.getType(), x);
  StringRef intrinsic = sign == "s" ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(intrinsic),
                                       ValueRange{rounded})
      .getResult(0);
}

/// The result of isnan, isinf, isfinite or signbit.
static Value classify(OpBuilder &b, Location loc, StringRef name, Type result,
                      Value x) {
  auto type = cast<FloatType>(x.getType());
  Value infinity = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics())));
  auto magnitude = [&](arith::CmpFPredicate predicate) -> Value {
    return arith::CmpFOp::create(b, loc, predicate,
                                 math::AbsFOp::create(b, loc, x), infinity);
  };
  Value answer;
  if (name == "isnan") {
    answer = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  } else if (name == "isinf") {
    answer = magnitude(arith::CmpFPredicate::OEQ);
  } else if (name == "isfinite") {
    answer = magnitude(arith::CmpFPredicate::OLT);
  } else {
    Type bits = b.getIntegerType(type.getWidth());
    Value integer = arith::BitcastOp::create(b, loc, bits, x);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(bits));
    answer =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, integer, zero);
  }
  return result.isInteger(1) ? answer
                             : arith::ExtUIOp::create(b, loc, result, answer);
}

Value cpu::lowerFunction(Lowering &lowering, OpBuilder &b, Location loc,
                         StringRef name, Type result, ValueRange operands) {
  auto isFloat = [](Type type) { return type.isF32() || type.isF64(); };
  Type type = isFloat(result) ? result : operands.back().getType();
  bool isExtremum = name == "fmax" || name == "fmin" || name == "maximum" ||
                    name == "minimum";
  if (isExtremum && operands.size() != 2)
    return {};
  if (name == "fmax" || name == "fmin")
    return selectOrdered(b, loc, name == "fmax", operands[0], operands[1]);
  if (name == "mov")
    return operands[0];
  if (name == "maximum" || name == "minimum")
    return createOperation(
        b, loc, name == "maximum" ? "arith.maximumf" : "arith.minimumf", result,
        operands);
  if (name == "rcp") {
    Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 1.0));
    return arith::DivFOp::create(b, loc, one, operands[0]);
  }
  if (isClassification(name))
    return classify(b, loc, name, result, operands[0]);
  if (name == "exp2" && type.isF32())
    return expandExp2(b, loc, operands[0]);
  if (StringRef operation = findOperation(name); !operation.empty()) {
    if (!takes(OperationName(operation, b.getContext()), operands.size()))
      return {};
    bool counts = operation == "math.ctpop" || operation == "math.ctlz";
    Type computed = counts ? operands[0].getType() : result;
    Value value = createOperation(b, loc, operation, computed, operands);
    if (counts && computed != result)
      value = arith::TruncIOp::create(b, loc, result, value);
    return value;
  }
  if (!isFloat(type) || !(isInLibm(name) || isInRuntime(name)))
    return {};
  std::string symbol = (isInRuntime(name) ? "tad_" : "") + name.str() +
                       (type.isF32() ? "f" : "");
  return lowering.callExternal(b, loc, symbol, result, operands);
}

Value cpu::lowerLibdevice(Lowering &lowering, OpBuilder &b,
                          triton::ExternElementwiseOp op, ValueRange operands) {
  StringRef symbol = op.getSymbol();
  Type result = getElementTypeOrSelf(op.getResult().getType());
  std::string name = getPlainName(symbol, isKnown);
  if (!isKnown(name) || operands.empty())
    return {};
  if (StringRef sign = findIntegerConversion(name); !sign.empty())
    return convertToInteger(b, op.getLoc(), symbol, sign, result, operands[0]);
  using Rounding = PtxInstruction::Rounding;
  for (auto [ending, rounding] :
       {std::pair("_rz", Rounding::TowardZero),
        std::pair("_rd", Rounding::Down), std::pair("_ru", Rounding::Up)})
    if (symbol.ends_with(ending))
      return isa<FloatType>(result)
                 ? lowerRounded(lowering, b, op.getLoc(), name, rounding,
                                cast<FloatType>(result), operands)
                 : Value();
  return lowerFunction(lowering, b, op.getLoc(), name, result, operands);
}
