//===- SpecialFunctions.cpp - Error, gamma and Bessel functions -----------===//
#include "autodiff/Rules/Functions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::autodiff;
using App = const Application &;
using arith::CmpFPredicate;

static const double sqrtPi = 2.0 / M_2_SQRTPI;
static const double sqrt2Pi = sqrtPi * M_SQRT2;

//===----------------------------------------------------------------------===//
// Error functions
//===----------------------------------------------------------------------===//

/// 2xy − 2/√π for y = erfcx(x). Where x is large the terms cancel; there it is
/// −2/√π·(1 − √π·x·y), and √π·x·y = 1/(1 + z/(1 + 2z/(1 + 3z/…))) with
/// z = 1/(2x²).
static Tile erfcxPartial(Tile t, App f) {
  Tile x = f.x[0];
  bool isDouble = getElementTypeOrSelf(x.type()).isF64();
  Tile z = t.constant(0.5) / (x * x);
  Tile tail = 12.0 * z;
  for (int k = 11; k > 0; --k)
    tail = double(k) * z / (tail + 1.0);
  Tile far = -M_2_SQRTPI * (tail / (tail + 1.0));
  Tile near = 2.0 * (x * f.y) + -M_2_SQRTPI;
  Value isFar = compare(CmpFPredicate::OGT, x, t.constant(isDouble ? 6 : 3));
  return t * where(isFar, far, near);
}

static void addErrorFunctions(FunctionTable &table) {
  table["erf"] = {"ȳ·2/√π·exp(−x²)", {[](Tile t, App f) {
                    return M_2_SQRTPI * (t * exp(-(f.x[0] * f.x[0])));
                  }}};
  table["erfc"] = {"−ȳ·2/√π·exp(−x²)", {[](Tile t, App f) {
                     return -M_2_SQRTPI * (t * exp(-(f.x[0] * f.x[0])));
                   }}};
  table["erfcx"] = {"ȳ·(2xy − 2/√π)", {erfcxPartial}};
  table["erfinv"] = {"ȳ·√π/2·exp(y²)", {[](Tile t, App f) {
                       Tile slope = 0.5 * sqrtPi * (t * exp(f.y * f.y));
                       return unlessZero(t, slope, f.x[0]);
                     }}};
  table["erfcinv"] = {"−ȳ·√π/2·exp(y²)", {[](Tile t, App f) {
                        Tile slope = -0.5 * sqrtPi * (t * exp(f.y * f.y));
                        return unlessZero(t, slope, f.x[0]);
                      }}};
  table["normcdf"] = {"ȳ·exp(−x²/2)/√(2π)", {[](Tile t, App f) {
                        Tile density = exp(-0.5 * (f.x[0] * f.x[0]));
                        return 1.0 / sqrt2Pi * (t * density);
                      }}};
  table["normcdfinv"] = {"ȳ·√(2π)·exp(y²/2)", {[](Tile t, App f) {
                           Tile slope = sqrt2Pi * (t * exp(0.5 * (f.y * f.y)));
                           return unlessZero(t, slope, f.x[0]);
                         }}};
}

//===----------------------------------------------------------------------===//
// Gamma functions
//===----------------------------------------------------------------------===//

/// ψ(x) for x > 0: ψ(x) = ψ(x + 10) − Σ 1/(x + k), and Stirling's series from
/// 10 on. Two terms from both ends of the sum together are
/// (2x + 9)/((x + k)(x + 9 − k)).
static Tile digammaOfPositive(Tile x) {
  Value isSmall = compare(CmpFPredicate::OLT, x, x.constant(10.0));
  Tile product = x * (x + 9.0);
  Tile sum = x.constant(0.0);
  for (double offset : {20.0, 18.0, 14.0, 8.0, 0.0})
    sum = sum + x.constant(1.0) / (offset == 0.0 ? product : product + offset);
  Tile shift = where(isSmall, (2.0 * x + 9.0) * sum, x.constant(0.0));
  Tile large = where(isSmall, x + 10.0, x);
  // B₂ₖ/(2k) for k = 1 … 7, the last first.
  Tile inverse = x.constant(1.0) / large;
  Tile z = inverse * inverse;
  Tile series = x.constant(1.0 / 12);
  for (double coefficient :
       {-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    series = series * z + coefficient;
  return (log(large) - 0.5 * inverse - z * series) - shift;
}

/// Below zero ψ(x) = ψ(1 − x) − π/tan(πx), the angle reduced exactly. As in
/// PyTorch the pole at 0 is infinite, and those at −1, −2, … are NaN.
Tile mlir::autodiff::digamma(Tile x) {
  Tile zero = x.constant(0.0);
  Value isNegative = compare(CmpFPredicate::OLT, x, zero);
  Tile positive = digammaOfPositive(where(isNegative, 1.0 - x, x));
  Tile nearest = x.make<math::FloorOp>(x + 0.5);
  Tile fraction = x - nearest;
  Tile angle = M_PI * fraction;
  Tile cotangent = M_PI * (cos(angle) / sin(angle));
  Tile reflected =
      where(compare(CmpFPredicate::OEQ, fraction, zero),
            x.constant(std::numeric_limits<double>::quiet_NaN()), cotangent);
  return where(isNegative, positive - reflected, positive);
}

static void addGammaFunctions(FunctionTable &table) {
  table["lgamma"] = {"ȳ·ψ(x)", {[](Tile t, App f) {
                       return unlessZero(t, t * digamma(f.x[0]), f.x[0]);
                     }}};
  table["tgamma"] = {"ȳ·y·ψ(x)", {[](Tile t, App f) {
                       return unlessZero(t, t * (f.y * digamma(f.x[0])),
                                         f.x[0]);
                     }}};
}

//===----------------------------------------------------------------------===//
// Bessel functions
//===----------------------------------------------------------------------===//

/// `slope` away from x = 0, `limit` there.
static Tile withLimit(Tile x, Tile limit, Tile slope) {
  return where(compare(CmpFPredicate::OEQ, x, x.constant(0.0)), limit, slope);
}

/// t·(n·y/x − C_{n+1}(x)) for the Bessel function C of order n = x[0].
static Tile orderPartial(Tile t, App f, llvm::StringRef name, Tile limit) {
  Tile n = f.x[0], x = f.x[1];
  Tile following = f.call(name, {addInteger(n, 1), x});
  Tile slope = toFloat(n, t) * f.y / x - following;
  return unlessZero(t, t * withLimit(x, limit, slope), x);
}

static void addBesselFunctions(FunctionTable &table) {
  table["j0"] = {"−ȳ·J₁(x)",
                 {[](Tile t, App f) { return -(t * f.call("j1", {f.x[0]})); }}};
  table["j1"] = {"ȳ·(J₀(x) − y/x)", {[](Tile t, App f) {
                   Tile x = f.x[0];
                   Tile slope = f.call("j0", {x}) - f.y / x;
                   return t * withLimit(x, t.constant(0.5), slope);
                 }}};
  table["y0"] = {"−ȳ·Y₁(x)", {[](Tile t, App f) {
                   return unlessZero(t, -(t * f.call("y1", {f.x[0]})), f.x[0]);
                 }}};
  table["y1"] = {"ȳ·(Y₀(x) − y/x)", {[](Tile t, App f) {
                   Tile x = f.x[0];
                   Tile slope = f.call("y0", {x}) - f.y / x;
                   return unlessZero(t, t * withLimit(x, -f.y, slope), x);
                 }}};
  table["cyl_bessel_i0"] = {"ȳ·I₁(x)", {[](Tile t, App f) {
                              return t * f.call("cyl_bessel_i1", {f.x[0]});
                            }}};
  table["cyl_bessel_i1"] = {"ȳ·(I₀(x) − y/x)", {[](Tile t, App f) {
                              Tile x = f.x[0];
                              Tile slope =
                                  f.call("cyl_bessel_i0", {x}) - f.y / x;
                              return t * withLimit(x, t.constant(0.5), slope);
                            }}};
  table["jn"] = {"ȳ·(n·y/x − Jₙ₊₁(x))",
                 {nullptr, [](Tile t, App f) {
                    Tile isOne =
                        where(compare(CmpFPredicate::OEQ, toFloat(f.x[0], t),
                                      t.constant(1.0)),
                              t.constant(0.5), t.constant(0.0));
                    return orderPartial(t, f, "jn", isOne);
                  }}};
  table["yn"] = {
      "ȳ·(n·y/x − Yₙ₊₁(x))",
      {nullptr, [](Tile t, App f) { return orderPartial(t, f, "yn", -f.y); }}};
}

void mlir::autodiff::addSpecialFunctions(FunctionTable &table) {
  addErrorFunctions(table);
  addGammaFunctions(table);
  addBesselFunctions(table);
}
