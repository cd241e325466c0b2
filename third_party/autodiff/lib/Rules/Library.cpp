//===- Library.cpp - Derivatives of library functions by name -------------===//
//
// `tt.extern_elementwise` calls a function of the device's math library. CUDA's
// and ROCm's names for it reduce to one: __nv_tanhf, __nv_tanh and
// __ocml_tanh_f32 are all tanh.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;
using Tiles = llvm::ArrayRef<Tile>;

/// t·p·x^(p−1), as p·y/x; at x = 0 its limit from the right.
static Tile powBase(Tile t, Tiles x, Tile y) {
  using arith::CmpFPredicate;
  Tile zero = t.constant(0.0), one = t.constant(1.0), p = x[1];
  Tile tp = t * p;
  Tile steep = where(compare(CmpFPredicate::OLT, p, one), tp / zero, zero);
  Tile flat = where(compare(CmpFPredicate::OEQ, p, zero), zero, steep);
  Tile atZero = where(compare(CmpFPredicate::OEQ, p, one), t, flat);
  Tile slope =
      where(compare(CmpFPredicate::OEQ, x[0], zero), atZero, tp * y / x[0]);
  return unlessZero(t, slope, x[0]);
}

static const llvm::StringMap<SmallVector<Partial>> &getPartials() {
  static const llvm::StringMap<SmallVector<Partial>> partials = {
      {"exp", {[](Tile t, Tiles, Tile y) { return t * y; }}},
      {"exp2", {[](Tile t, Tiles, Tile y) { return M_LN2 * (t * y); }}},
      {"exp10", {[](Tile t, Tiles, Tile y) { return M_LN10 * (t * y); }}},
      {"expm1", {[](Tile t, Tiles, Tile y) { return t * (y + 1.0); }}},
      {"log",
       {[](Tile t, Tiles x, Tile) { return unlessZero(t, t / x[0], x[0]); }}},
      {"log2", {[](Tile t, Tiles x, Tile) {
         return unlessZero(t, M_LOG2E * t / x[0], x[0]);
       }}},
      {"log10", {[](Tile t, Tiles x, Tile) {
         return unlessZero(t, M_LOG10E * t / x[0], x[0]);
       }}},
      {"log1p", {[](Tile t, Tiles x, Tile) { return t / (x[0] + 1.0); }}},
      {"sqrt", {[](Tile t, Tiles x, Tile y) {
         return unlessZero(t, 0.5 * t / y, x[0]);
       }}},
      {"rsqrt", {[](Tile t, Tiles x, Tile y) {
         return unlessZero(t, -0.5 * (t * (y * y * y)), x[0]);
       }}},
      {"cbrt", {[](Tile t, Tiles x, Tile y) {
         return unlessZero(t, t / (3.0 * (y * y)), x[0]);
       }}},
      {"sin", {[](Tile t, Tiles x, Tile) { return t * cos(x[0]); }}},
      {"cos", {[](Tile t, Tiles x, Tile) { return -(t * sin(x[0])); }}},
      {"tan", {[](Tile t, Tiles, Tile y) { return t * (y * y + 1.0); }}},
      {"asin",
       {[](Tile t, Tiles x, Tile) { return t / sqrt(1.0 - x[0] * x[0]); }}},
      {"acos",
       {[](Tile t, Tiles x, Tile) { return -(t / sqrt(1.0 - x[0] * x[0])); }}},
      {"atan", {[](Tile t, Tiles x, Tile) { return t / (x[0] * x[0] + 1.0); }}},
      {"sinh", {[](Tile t, Tiles, Tile y) { return t * sqrt(y * y + 1.0); }}},
      {"cosh", {[](Tile t, Tiles x, Tile) {
         return 0.5 * (t * (exp(x[0]) - exp(-x[0])));
       }}},
      {"tanh", {[](Tile t, Tiles, Tile y) { return t * (1.0 - y * y); }}},
      {"asinh",
       {[](Tile t, Tiles x, Tile) { return t / sqrt(x[0] * x[0] + 1.0); }}},
      {"acosh",
       {[](Tile t, Tiles x, Tile) { return t / sqrt(x[0] * x[0] + -1.0); }}},
      {"atanh",
       {[](Tile t, Tiles x, Tile) { return t / (1.0 - x[0] * x[0]); }}},
      {"erf", {[](Tile t, Tiles x, Tile) {
         return M_2_SQRTPI * (t * exp(-(x[0] * x[0])));
       }}},
      {"erfc", {[](Tile t, Tiles x, Tile) {
         return -M_2_SQRTPI * (t * exp(-(x[0] * x[0])));
       }}},
      {"pow",
       {powBase,
        [](Tile t, Tiles x, Tile y) {
          return unlessZero(t, t * y * log(x[0]), x[0]);
        }}},
      {"fma",
       {[](Tile t, Tiles x, Tile) { return t * x[1]; },
        [](Tile t, Tiles x, Tile) { return t * x[0]; },
        [](Tile t, Tiles, Tile) { return t; }}},
      {"hypot",
       {[](Tile t, Tiles x, Tile y) { return t * x[0] / y; },
        [](Tile t, Tiles x, Tile y) { return t * x[1] / y; }}},
      {"atan2",
       {[](Tile t, Tiles x, Tile) {
          return t * x[1] / (x[0] * x[0] + x[1] * x[1]);
        },
        [](Tile t, Tiles x, Tile) {
          return -(t * x[0] / (x[0] * x[0] + x[1] * x[1]));
        }}},
  };
  return partials;
}

/// The function's own name: without prefix, precision suffix and "fast".
static std::string plainName(llvm::StringRef symbol) {
  bool cuda = symbol.consume_front("__nv_");
  if (!cuda &&
      (symbol.consume_front("__ocml_") || symbol.consume_front("__"))) {
    if (!symbol.consume_back("_f32"))
      symbol.consume_back("_f64");
  }
  symbol.consume_front("fast_");
  if (cuda && !getPartials().contains(symbol))
    symbol.consume_back("f");
  return symbol.str();
}

static LogicalResult libraryCall(triton::ExternElementwiseOp op,
                                 Adjoint &adjoint) {
  if (!adjoint.get(op.getResult()))
    return success();
  auto it = getPartials().find(plainName(op.getSymbol()));
  if (it == getPartials().end() || it->second.size() != op->getNumOperands())
    return op.emitError() << "no derivative is known for the library function '"
                          << op.getSymbol() << "'";
  return pullBackPartials(op, adjoint, it->second);
}

void mlir::autodiff::addLibraryRules(RuleTable &table) {
  SmallVector<llvm::StringRef> names(getPartials().keys());
  llvm::sort(names);
  table.add<triton::ExternElementwiseOp>(
      "by function: " + llvm::join(names, ", "), libraryCall);
}
