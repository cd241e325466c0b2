//===- ArithmeticFunctions.cpp - Arithmetic that libraries give names -----===//
//
// Functions that libraries have for arithmetic: rounding modes, distances,
// remainders, signs; and piecewise constant functions.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Functions.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using App = const Application &;
using arith::CmpFPredicate;

static Tile same(Tile t, App) { return t; }
static Tile negated(Tile t, App) { return -t; }
static Tile timesRhs(Tile t, App f) { return t * f.x[1]; }
static Tile timesLhs(Tile t, App f) { return t * f.x[0]; }

static void addRoundedArithmetic(FunctionTable &table) {
  table["add"] = {"x̄₁ += ȳ, x̄₂ += ȳ", {same, same}};
  table["sub"] = {"x̄₁ += ȳ, x̄₂ −= ȳ", {same, negated}};
  table["mul"] = {"x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁", {timesRhs, timesLhs}};
  table["div"] = {
      "x̄₁ += ȳ/x₂, x̄₂ −= ȳ/x₂·y",
      {[](Tile t, App f) { return unlessZero(t, t / f.x[1], f.x[1]); },
       // Uses quotients that exist already: the forward's, and x̄₁.
       [](Tile t, App f) {
         return unlessZero(t, -(t / f.x[1] * f.y), f.x[1]);
       }}};
  table["fma"] = {"x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁, x̄₃ += ȳ",
                  {timesRhs, timesLhs, same}};
  table["cvt"] = {"ȳ", {same}};
  table["double2float"] = {"ȳ", {same}};
  table["mov"] = {"ȳ", {same}};
  table["neg"] = {"−ȳ", {negated}};
}

/// The rounded quotient, recomputed from the remainder y.
static Tile quotient(App f) { return (f.x[0] - f.y) / f.x[1]; }

static void addRemainders(FunctionTable &table) {
  FunctionPartial divisor = [](Tile t, App f) {
    return unlessZero(t, -(t * quotient(f)), f.x[1]);
  };
  table["fmod"] = {"x̄₁ += ȳ, x̄₂ −= ȳ·trunc(x₁/x₂)", {same, divisor}};
  table["remainder"] = {"x̄₁ += ȳ, x̄₂ −= ȳ·rint(x₁/x₂)", {same, divisor}};
}

template <unsigned k> static Tile alongNorm(Tile t, App f) {
  Tile zero = t.constant(0.0);
  return where(compare(CmpFPredicate::OEQ, f.y, zero), zero,
               t * (f.x[k] / f.y));
}
template <unsigned k> static Tile alongReciprocalNorm(Tile t, App f) {
  return unlessZero(t, -(t * ((f.x[k] * f.y) * (f.y * f.y))), f.y);
}

static void addNorms(FunctionTable &table) {
  const char *norm = "x̄ₖ += ȳ·xₖ/y, nothing at the origin";
  table["hypot"] = {norm, {alongNorm<0>, alongNorm<1>}};
  table["norm3d"] = {norm, {alongNorm<0>, alongNorm<1>, alongNorm<2>}};
  table["norm4d"] = {norm,
                     {alongNorm<0>, alongNorm<1>, alongNorm<2>, alongNorm<3>}};
  const char *reciprocal = "x̄ₖ −= ȳ·xₖ·y³";
  table["rhypot"] = {reciprocal,
                     {alongReciprocalNorm<0>, alongReciprocalNorm<1>}};
  table["rnorm3d"] = {
      reciprocal,
      {alongReciprocalNorm<0>, alongReciprocalNorm<1>, alongReciprocalNorm<2>}};
  table["rnorm4d"] = {reciprocal,
                      {alongReciprocalNorm<0>, alongReciprocalNorm<1>,
                       alongReciprocalNorm<2>, alongReciprocalNorm<3>}};
}

/// t if operand k wins the comparison, half of it if both are equal. (It is not
/// compared with y, which the forward may have stored rounded.)
template <CmpFPredicate wins, unsigned k> static Tile winner(Tile t, App f) {
  Tile other = f.x[1 - k], zero = t.constant(0.0);
  Tile tied = where(compare(CmpFPredicate::OEQ, f.x[0], f.x[1]), 0.5 * t, zero);
  return where(compare(wins, f.x[k], other), t, tied);
}

/// The same, for functions where a number wins against NaN.
template <CmpFPredicate wins, unsigned k> static Tile number(Tile t, App f) {
  Tile other = f.x[1 - k];
  return where(compare(CmpFPredicate::UNO, other, other), t,
               winner<wins, k>(t, f));
}

template <bool negate> static Tile abovePartial(Tile t, App f) {
  return where(compare(CmpFPredicate::OGT, f.x[0], f.x[1]), negate ? -t : t,
               t.constant(0.0));
}

static void addSelections(FunctionTable &table) {
  const char *larger = "ȳ to the larger operand, half each on a tie";
  table["fmax"] = {
      larger, {number<CmpFPredicate::OGT, 0>, number<CmpFPredicate::OGT, 1>}};
  table["maximum"] = {
      larger, {winner<CmpFPredicate::UGT, 0>, winner<CmpFPredicate::UGT, 1>}};
  const char *smaller = "ȳ to the smaller operand, half each on a tie";
  table["fmin"] = {
      smaller, {number<CmpFPredicate::OLT, 0>, number<CmpFPredicate::OLT, 1>}};
  table["minimum"] = {
      smaller, {winner<CmpFPredicate::ULT, 0>, winner<CmpFPredicate::ULT, 1>}};
  table["fdim"] = {"x₁ > x₂: x̄₁ += ȳ, x̄₂ −= ȳ",
                   {abovePartial<false>, abovePartial<true>}};
  table["saturate"] = {
      "ȳ for 0 ≤ x ≤ 1", {[](Tile t, App f) {
        Tile x = f.x[0], zero = t.constant(0.0);
        Tile below =
            where(compare(CmpFPredicate::OLE, x, t.constant(1.0)), t, zero);
        return where(compare(CmpFPredicate::OGE, x, zero), below, zero);
      }}};
}

/// Whether a and b have different sign bits; zeros and NaN count, too.
static Value haveOtherSigns(Tile a, Tile b) {
  Type type = withElementType(
      a.type(), a.b().getIntegerType(
                    getElementTypeOrSelf(a.type()).getIntOrFloatBitWidth()));
  auto bits = [&](Tile x) {
    return triton::BitcastOp::create(a.b(), a.loc(), type, x);
  };
  Value difference = arith::XOrIOp::create(a.b(), a.loc(), bits(a), bits(b));
  Value zero = zeroOf(a.b(), a.loc(), type);
  return arith::CmpIOp::create(a.b(), a.loc(), arith::CmpIPredicate::slt,
                               difference, zero);
}

static void addSigns(FunctionTable &table) {
  table["fabs"] = {
      "ȳ·sign x", {[](Tile t, App f) {
        Tile zero = t.constant(0.0);
        Tile negative =
            where(compare(CmpFPredicate::OLT, f.x[0], zero), -t, zero);
        return where(compare(CmpFPredicate::OGT, f.x[0], zero), t, negative);
      }}};
  table["copysign"] = {
      "x̄₁ += ȳ·sign(x₁)·sign(x₂)",
      {[](Tile t, App f) {
         Tile zero = t.constant(0.0);
         Tile slope = where(haveOtherSigns(f.x[0], f.x[1]), -t, t);
         return where(compare(CmpFPredicate::OEQ, f.x[0], zero), zero, slope);
       },
       [](Tile t, App) { return t.constant(0.0); }}};
}

static void addScalings(FunctionTable &table) {
  table["ldexp"] = {
      "ȳ·2ⁿ",
      {[](Tile t, App f) { return f.call("ldexp", {t, f.x[1]}); }, nullptr}};
  table["scalbn"] = {
      "ȳ·2ⁿ",
      {[](Tile t, App f) { return f.call("scalbn", {t, f.x[1]}); }, nullptr}};
}

static void addPiecewiseConstant(FunctionTable &table) {
  for (StringRef name : getPiecewiseConstantFunctions())
    table[name] = {"0", {}};
}

void mlir::autodiff::addArithmeticFunctions(FunctionTable &table) {
  addRoundedArithmetic(table);
  addRemainders(table);
  addNorms(table);
  addSelections(table);
  addSigns(table);
  addScalings(table);
  addPiecewiseConstant(table);
}
