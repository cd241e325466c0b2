//===- ElementaryFunctions.cpp - Exponentials, powers, angles -------------===//
//
// Partial derivatives, written as t·∂y/∂x with y = f(x). A derivative with a
// pole is replaced by zero in lanes whose cotangent is zero: see `unlessZero`.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Functions.h"
#include "autodiff/Rules/Infinities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;
using App = const Application &;
using arith::CmpFPredicate;

static Tile finite(App f) { return beforeOverflow(f.y, f.op); }

static void addExponentials(FunctionTable &table) {
  table["exp"] = {"ȳ·y", {[](Tile t, App f) { return t * finite(f); }}};
  table["exp2"] = {"ȳ·y·ln 2",
                   {[](Tile t, App f) { return M_LN2 * (t * finite(f)); }}};
  table["exp10"] = {"ȳ·y·ln 10",
                    {[](Tile t, App f) { return M_LN10 * (t * finite(f)); }}};
  table["expm1"] = {"ȳ·(y + 1)",
                    {[](Tile t, App f) { return t * (f.y + 1.0); }}};
  table["log"] = {
      "ȳ/x", {[](Tile t, App f) { return unlessZero(t, t / f.x[0], f.x[0]); }}};
  table["log2"] = {"ȳ/(x·ln 2)", {[](Tile t, App f) {
                     return unlessZero(t, M_LOG2E * t / f.x[0], f.x[0]);
                   }}};
  table["log10"] = {"ȳ/(x·ln 10)", {[](Tile t, App f) {
                      return unlessZero(t, M_LOG10E * t / f.x[0], f.x[0]);
                    }}};
  table["log1p"] = {"ȳ/(1 + x)", {[](Tile t, App f) {
                      return unlessZero(t, t / (f.x[0] + 1.0), f.x[0]);
                    }}};
}

/// t·p·x^(p−1) for an exponent p, where `lowered` is x^(p−1); zero for p = 0.
static Tile powerBase(Tile t, App f, Tile p, Tile lowered) {
  Tile zero = t.constant(0.0);
  Tile slope =
      where(compare(CmpFPredicate::OEQ, p, zero), zero, t * (p * lowered));
  markUnlessZero(slope);
  return unlessZero(t, slope, f.x[0]);
}

/// t·y·ln x; zero at x = 0, where the power is zero for every p > 0.
static Tile powerExponent(Tile t, App f) {
  Tile zero = t.constant(0.0);
  Value vanishes = arith::AndIOp::create(
      t.b(), t.loc(), compare(CmpFPredicate::OEQ, f.x[0], zero),
      compare(CmpFPredicate::OGE, f.x[1], zero));
  Tile slope = where(vanishes, zero, t * f.y * log(f.x[0]));
  return unlessZero(t, slope, f.x[0]);
}

static void addPowers(FunctionTable &table) {
  table["sqrt"] = {"ȳ/(2y)", {[](Tile t, App f) {
                     return unlessZero(t, 0.5 * t / f.y, f.x[0]);
                   }}};
  table["rsqrt"] = {"−ȳ·y³/2", {[](Tile t, App f) {
                      Tile cube = f.y * f.y * f.y;
                      return unlessZero(t, -0.5 * (t * cube), f.x[0]);
                    }}};
  table["cbrt"] = {"ȳ/(3y²)", {[](Tile t, App f) {
                     return unlessZero(t, t / (3.0 * (f.y * f.y)), f.x[0]);
                   }}};
  table["rcbrt"] = {"−ȳ·y⁴/3", {[](Tile t, App f) {
                      Tile square = f.y * f.y;
                      return unlessZero(t, -1.0 / 3.0 * (t * (square * square)),
                                        f.x[0]);
                    }}};
  table["rcp"] = {"−ȳ·y²", {[](Tile t, App f) {
                    return unlessZero(t, -(t * (f.y * f.y)), f.x[0]);
                  }}};
  table["pow"] = {"x̄₁ += ȳ·x₂·pow(x₁, x₂ − 1), x̄₂ += ȳ·y·ln x₁",
                  {[](Tile t, App f) {
                     Tile p = f.x[1];
                     Tile lowered = f.call("pow", {f.x[0], p + -1.0});
                     return powerBase(t, f, p, lowered);
                   },
                   powerExponent}};
  table["powi"] = {"ȳ·n·xⁿ⁻¹",
                   {[](Tile t, App f) {
                      Tile n = f.x[1];
                      Tile lowered =
                          f.call("powi", {f.x[0], addInteger(n, -1)});
                      return powerBase(t, f, toFloat(n, t), lowered);
                    },
                    nullptr}};
}

/// √((1 − x)(1 + x)), without the cancellation in 1 − x² near ±1.
static Tile cosineOfArcsine(Tile x) { return sqrt((1.0 - x) * (x + 1.0)); }

static void addAngles(FunctionTable &table) {
  table["sin"] = {"ȳ·cos x", {[](Tile t, App f) { return t * cos(f.x[0]); }}};
  table["cos"] = {"−ȳ·sin x",
                  {[](Tile t, App f) { return -(t * sin(f.x[0])); }}};
  table["tan"] = {"ȳ·(1 + y²)",
                  {[](Tile t, App f) { return t * (f.y * f.y + 1.0); }}};
  table["sinpi"] = {"ȳ·π·cospi x", {[](Tile t, App f) {
                      return M_PI * (t * f.call("cospi", {f.x[0]}));
                    }}};
  table["cospi"] = {"−ȳ·π·sinpi x", {[](Tile t, App f) {
                      return -M_PI * (t * f.call("sinpi", {f.x[0]}));
                    }}};
  table["asin"] = {"ȳ/√(1 − x²)", {[](Tile t, App f) {
                     return unlessZero(t, t / cosineOfArcsine(f.x[0]), f.x[0]);
                   }}};
  table["acos"] = {"−ȳ/√(1 − x²)", {[](Tile t, App f) {
                     return unlessZero(t, -(t / cosineOfArcsine(f.x[0])),
                                       f.x[0]);
                   }}};
  table["atan"] = {"ȳ/(1 + x²)",
                   {[](Tile t, App f) { return t / (f.x[0] * f.x[0] + 1.0); }}};
  table["atan2"] = {"x̄₁ += ȳ·x₂/(x₁² + x₂²), x̄₂ −= ȳ·x₁/(x₁² + x₂²)",
                    {[](Tile t, App f) {
                       Tile square = f.x[0] * f.x[0] + f.x[1] * f.x[1];
                       return unlessZero(t, t * f.x[1] / square, f.y);
                     },
                     [](Tile t, App f) {
                       Tile square = f.x[0] * f.x[0] + f.x[1] * f.x[1];
                       return unlessZero(t, -(t * f.x[0] / square), f.y);
                     }}};
}

// Uses the other function of the pair: √(y² ± 1) would overflow.
static void addHyperbolic(FunctionTable &table) {
  table["sinh"] = {
      "ȳ·cosh x", {[](Tile t, App f) { return t * f.call("cosh", {f.x[0]}); }}};
  table["cosh"] = {
      "ȳ·sinh x", {[](Tile t, App f) { return t * f.call("sinh", {f.x[0]}); }}};
  table["tanh"] = {"ȳ·(1 − y²)",
                   {[](Tile t, App f) { return t * (1.0 - f.y * f.y); }}};
  table["asinh"] = {"ȳ/√(x² + 1)", {[](Tile t, App f) {
                      return t / sqrt(f.x[0] * f.x[0] + 1.0);
                    }}};
  table["acosh"] = {"ȳ/√(x² − 1)", {[](Tile t, App f) {
                      Tile x = f.x[0];
                      return unlessZero(t, t / sqrt((x + -1.0) * (x + 1.0)), x);
                    }}};
  table["atanh"] = {"ȳ/(1 − x²)", {[](Tile t, App f) {
                      Tile x = f.x[0];
                      return unlessZero(t, t / ((1.0 - x) * (x + 1.0)), x);
                    }}};
}

void mlir::autodiff::addElementaryFunctions(FunctionTable &table) {
  addExponentials(table);
  addPowers(table);
  addAngles(table);
  addHyperbolic(table);
}
