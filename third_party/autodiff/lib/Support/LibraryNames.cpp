//===- LibraryNames.cpp - Names of device library functions ---------------===//
#include "autodiff/Support/LibraryNames.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace mlir::autodiff;

/// One name where libraries have different names for a function.
static StringRef unify(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"fadd", "dadd"}, "add")
      .Cases({"fsub", "dsub"}, "sub")
      .Cases({"fmul", "dmul"}, "mul")
      .Cases({"fdiv", "ddiv", "fdivide", "divide"}, "div")
      .Cases({"frcp", "drcp"}, "rcp")
      .Cases({"fsqrt", "dsqrt"}, "sqrt")
      .Case("frsqrt", "rsqrt")
      .Cases({"finite", "isfinited"}, "isfinite")
      .Case("isinfd", "isinf")
      .Case("isnand", "isnan")
      .Case("signbitd", "signbit")
      .Case("i0", "cyl_bessel_i0")
      .Case("i1", "cyl_bessel_i1")
      .Case("pown", "powi")
      .Default(name);
}

std::string
mlir::autodiff::getPlainName(StringRef symbol,
                             llvm::function_ref<bool(StringRef)> isKnown) {
  StringRef name = symbol;
  if (!name.consume_front("__nv_") && !name.consume_front("__triton_hip_")) {
    if (!name.consume_front("__ocml_"))
      return "";
    if (!name.consume_back("_f32"))
      name.consume_back("_f64");
  }
  name.consume_front("fast_");
  for (StringRef rounding : {"_rn", "_rz", "_rd", "_ru"})
    if (name.consume_back(rounding))
      break;
  name = unify(name);
  if (!isKnown(name)) {
    StringRef shorter = name;
    shorter.consume_back("f");
    shorter = unify(shorter);
    if (isKnown(shorter))
      name = shorter;
  }
  return name.str();
}

std::string mlir::autodiff::getSiblingSymbol(StringRef like, StringRef name,
                                             unsigned width) {
  if (like.starts_with("__nv_"))
    return ("__nv_" + name + (width == 32 ? "f" : "")).str();
  StringRef ocml = llvm::StringSwitch<StringRef>(name)
                       .Case("cyl_bessel_i0", "i0")
                       .Case("cyl_bessel_i1", "i1")
                       .Case("powi", "pown")
                       .Default(name);
  return ("__ocml_" + ocml + (width == 32 ? "_f32" : "_f64")).str();
}
