//===- SpecialFunctions.cpp - What the C library's mathematics lacks ------===//
//
// Computed in f64; the f32 versions round the result.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include "autodiff/Support/Mutation.h"
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

using namespace mlir::autodiff::cpu;
namespace mutation = mlir::autodiff::mutation;

/// exp(x²)·erfc(x); from 6 on by Lentz' form of the continued fraction
/// 1/(√π(x + (1/2)/(x + 1/(x + (3/2)/(x + …))))).
static double erfcx(double x) {
  if (x < 6) {
    // x² in two parts: the second is the rounding error of the first.
    double square = x * x, rest = std::fma(x, x, -square);
    if (mutation::isMade("cpu-erfcx:a square that is rounded"))
      rest = 0;
    return std::exp(square) * (1 + rest) * std::erfc(x);
  }
  double tail = x;
  for (int k = 40; k > 0; --k)
    tail = x + 0.5 * k / tail;
  return 0.5 * M_2_SQRTPI / tail;
}

/// The x with erfc(x) = p, by Newton's method for ln erfc, which is nearly a
/// parabola: it converges from every start.
static double erfcinv(double p) {
  if (!(p >= 0 && p <= 2))
    return std::numeric_limits<double>::quiet_NaN();
  if (p > 1)
    return -erfcinv(2 - p);
  if (p == 0)
    return std::numeric_limits<double>::infinity();
  double x = p < 0.5 ? std::sqrt(-std::log(p)) : 0.0;
  for (int step = 0; step < 60; ++step) {
    // ln erfc(x) = ln erfcx(x) − x², and its slope is −2/(√π·erfcx(x)).
    double scaled = erfcx(x);
    double next =
        x + (std::log(scaled) - x * x - std::log(p)) * scaled / M_2_SQRTPI;
    if (std::abs(next - x) <= 1e-16 * std::abs(next))
      return next;
    x = next;
  }
  return x;
}

static double erfinv(double y) {
  if (std::abs(y) > 0.5)
    return std::copysign(erfcinv(1 - std::abs(y)), y);
  double x = y / M_2_SQRTPI;
  for (int step = 0; step < 60; ++step) {
    double next = x - (std::erf(x) - y) * std::exp(x * x) / M_2_SQRTPI;
    if (std::abs(next - x) <= 1e-16 * std::abs(next))
      return next;
    x = next;
  }
  return x;
}

static double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
static double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2 * p); }

static double besselI0(double x) { return std::cyl_bessel_i(0, std::abs(x)); }
static double besselI1(double x) {
  return std::copysign(std::cyl_bessel_i(1, std::abs(x)), x);
}

/// sin(π(x + phase/2)), exact where x is a multiple of a quarter turn.
static double sineOfTurns(double x, int phase) {
  double quarters = std::nearbyint(2 * x);
  double angle = M_PI * (x - 0.5 * quarters);
  switch ((static_cast<int>(std::fmod(quarters, 4)) + phase + 4) % 4) {
  case 0:
    return std::sin(angle);
  case 1:
    return std::cos(angle);
  case 2:
    return -std::sin(angle);
  default:
    return -std::cos(angle);
  }
}
static double sinpi(double x) { return sineOfTurns(x, 0); }
static double cospi(double x) { return sineOfTurns(x, 1); }

static double rcbrt(double x) { return 1 / std::cbrt(x); }
static double rhypot(double x, double y) { return 1 / std::hypot(x, y); }
static double norm3d(double x, double y, double z) {
  return std::hypot(x, y, z);
}
static double norm4d(double x, double y, double z, double w) {
  return std::hypot(std::hypot(x, y), std::hypot(z, w));
}
static double rnorm3d(double x, double y, double z) {
  return 1 / norm3d(x, y, z);
}
static double rnorm4d(double x, double y, double z, double w) {
  return 1 / norm4d(x, y, z, w);
}
static double saturate(double x) { return std::fmax(0, std::fmin(x, 1)); }
static double powi(double x, int n) { return std::pow(x, n); }

namespace {
template <typename T>
using Narrow = std::conditional_t<std::is_same_v<T, double>, float, T>;

/// Adds a function on doubles under `name`, and one on floats with an f behind
/// the name.
class Table {
public:
  template <auto function> void add(const std::string &name) {
    add<function>(name, function);
  }

  std::vector<RuntimeFunction> functions;

private:
  template <auto function, typename... Args>
  void add(const std::string &name, double (*)(Args...)) {
    float (*narrow)(Narrow<Args>...) = [](Narrow<Args>... args) {
      return static_cast<float>(function(args...));
    };
    functions.push_back({name, reinterpret_cast<void *>(function)});
    functions.push_back({name + "f", reinterpret_cast<void *>(narrow)});
  }
};
} // namespace

llvm::ArrayRef<RuntimeFunction> mlir::autodiff::cpu::getSpecialFunctions() {
  static const Table table = [] {
    Table table;
    table.add<erfcx>("tad_erfcx");
    table.add<erfcinv>("tad_erfcinv");
    table.add<erfinv>("tad_erfinv");
    table.add<normcdf>("tad_normcdf");
    table.add<normcdfinv>("tad_normcdfinv");
    table.add<besselI0>("tad_cyl_bessel_i0");
    table.add<besselI1>("tad_cyl_bessel_i1");
    table.add<sinpi>("tad_sinpi");
    table.add<cospi>("tad_cospi");
    table.add<rcbrt>("tad_rcbrt");
    table.add<rhypot>("tad_rhypot");
    table.add<norm3d>("tad_norm3d");
    table.add<norm4d>("tad_norm4d");
    table.add<rnorm3d>("tad_rnorm3d");
    table.add<rnorm4d>("tad_rnorm4d");
    table.add<saturate>("tad_saturate");
    table.add<powi>("tad_powi");
    return table;
  }();
  return table.functions;
}
