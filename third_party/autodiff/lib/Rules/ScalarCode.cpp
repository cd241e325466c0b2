//===- ScalarCode.cpp - What scalar code computes of numbers --------------===//
#include "autodiff/Rules/ScalarCode.h"

#include "autodiff/Rules/Functions.h"
#include "autodiff/Support/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

namespace {
using Arguments = llvm::ArrayRef<double>;
using FunctionOfNumbers = double (*)(Arguments);
} // namespace

/// Functions on floats, by the names in the table of functions.
static FunctionOfNumbers findOnNumbers(StringRef name) {
#define UNARY(NAME)                                                            \
  {                                                                            \
    #NAME, [](Arguments x) { return std::NAME(x[0]); }                         \
  }
#define BINARY(NAME)                                                           \
  {                                                                            \
    #NAME, [](Arguments x) { return std::NAME(x[0], x[1]); }                   \
  }
  static const llvm::StringMap<FunctionOfNumbers> functions = {
      {"add", [](Arguments x) { return x[0] + x[1]; }},
      {"sub", [](Arguments x) { return x[0] - x[1]; }},
      {"mul", [](Arguments x) { return x[0] * x[1]; }},
      {"div", [](Arguments x) { return x[0] / x[1]; }},
      {"neg", [](Arguments x) { return -x[0]; }},
      {"rcp", [](Arguments x) { return 1 / x[0]; }},
      {"rsqrt", [](Arguments x) { return 1 / std::sqrt(x[0]); }},
      {"fma", [](Arguments x) { return x[0] * x[1] + x[2]; }},
      {"maximum",
       [](Arguments x) {
         return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1];
       }},
      {"minimum",
       [](Arguments x) {
         return std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1];
       }},
      {"clamp",
       [](Arguments x) { return std::fmin(std::fmax(x[0], x[1]), x[2]); }},
      {"exp10", [](Arguments x) { return std::pow(10.0, x[0]); }},
      {"roundeven", [](Arguments x) { return std::nearbyint(x[0]); }},
      {"rint", [](Arguments x) { return std::nearbyint(x[0]); }},
      BINARY(fmax),
      BINARY(fmin),
      BINARY(fmod),
      BINARY(pow),
      {"powi", [](Arguments x) { return std::pow(x[0], x[1]); }},
      BINARY(atan2),
      BINARY(copysign),
      BINARY(hypot),
      UNARY(fabs),
      UNARY(acos),
      UNARY(acosh),
      UNARY(asin),
      UNARY(asinh),
      UNARY(atan),
      UNARY(atanh),
      UNARY(cbrt),
      UNARY(ceil),
      UNARY(cos),
      UNARY(cosh),
      UNARY(erf),
      UNARY(erfc),
      UNARY(exp),
      UNARY(exp2),
      UNARY(expm1),
      UNARY(floor),
      UNARY(log),
      UNARY(log10),
      UNARY(log1p),
      UNARY(log2),
      UNARY(round),
      UNARY(sin),
      UNARY(sinh),
      UNARY(sqrt),
      UNARY(tan),
      UNARY(tanh),
      UNARY(trunc),
  };
#undef UNARY
#undef BINARY
  return functions.lookup(name);
}

Attribute ScalarCode::widen(Attribute number) {
  auto narrow = dyn_cast_or_null<FloatAttr>(number);
  return narrow ? FloatAttr::get(Float64Type::get(number.getContext()),
                                 narrow.getValueAsDouble())
                : number;
}

/// The value of a function on floats; null if `op` computes none, or an unknown
/// one.
static Attribute evaluateFunction(Operation &op, ArrayRef<Attribute> operands) {
  std::string name;
  SmallVector<unsigned> order;
  if (isa<triton::ClampFOp>(op)) {
    name = "clamp";
    order = {0, 1, 2};
  } else if (findFunction(&op, &name)) {
    order = getFunctionOperands(&op);
  }
  FunctionOfNumbers function = findOnNumbers(name);
  if (!function || !isFloat(op.getResult(0).getType()))
    return {};
  SmallVector<double> arguments;
  for (unsigned operand : order) {
    auto number = dyn_cast<FloatAttr>(operands[operand]);
    arguments.push_back(
        number
            ? number.getValueAsDouble()
            : cast<IntegerAttr>(operands[operand]).getValue().getSExtValue());
  }
  return FloatAttr::get(Float64Type::get(op.getContext()), function(arguments));
}

Attribute ScalarCode::evaluate(Operation &op, ArrayRef<Attribute> operands,
                               const Numbers &numbers) {
  Attribute constant;
  if (matchPattern(&op, m_Constant(&constant)))
    return widen(constant);
  if (llvm::is_contained(operands, Attribute()))
    return {};
  // The interpreter's doubles do not have the bits of the kernel's floats.
  if (isa<arith::BitcastOp, triton::BitcastOp>(op) &&
      (isFloat(op.getOperand(0).getType()) ||
       isFloat(op.getResult(0).getType())))
    return {};
  if (isa<arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp>(op))
    return operands[0];
  if (isa<arith::SelectOp>(op))
    return operands[cast<IntegerAttr>(operands[0]).getValue().isZero() ? 2 : 1];
  if (Attribute number = evaluateFunction(op, operands))
    return number;
  SmallVector<OpFoldResult> folded;
  if (op.getNumResults() != 1 || failed(op.fold(operands, folded)) ||
      folded.size() != 1)
    return {};
  auto value = dyn_cast<Value>(folded[0]);
  return value ? numbers.lookup(value) : widen(cast<Attribute>(folded[0]));
}

LogicalResult ScalarCode::runBranch(Operation &op, Numbers &numbers) {
  auto branch = cast<scf::IfOp>(op);
  auto condition =
      dyn_cast_or_null<IntegerAttr>(numbers.lookup(branch.getCondition()));
  if (!condition)
    return failure();
  Region &side = condition.getValue().isZero() ? branch.getElseRegion()
                                               : branch.getThenRegion();
  if (side.empty())
    return success();
  if (failed(run(side.front(), numbers)))
    return failure();
  for (auto [result, yielded] : llvm::zip_equal(
           op.getResults(), side.front().getTerminator()->getOperands()))
    numbers[result] = numbers[yielded];
  return success();
}

LogicalResult ScalarCode::run(Block &block, Numbers &numbers) {
  for (Operation &op : block.without_terminator()) {
    if (isa<scf::IfOp>(op)) {
      if (failed(runBranch(op, numbers)))
        return failure();
      continue;
    }
    auto operands = llvm::map_to_vector(
        op.getOperands(), [&](Value value) { return numbers.lookup(value); });
    Attribute number;
    if (op.getNumRegions() == 0 && op.getNumResults() == 1)
      number = evaluate(op, operands, numbers);
    if (!number) {
      failedAt = &op;
      return failure();
    }
    numbers[op.getResult(0)] = number;
  }
  return success();
}

FailureOr<SmallVector<Attribute>>
ScalarCode::run(ArrayRef<Attribute> arguments) {
  Block &block = region.front();
  Numbers numbers = captures;
  for (auto [argument, number] :
       llvm::zip_equal(block.getArguments(), arguments))
    numbers[argument] = number;
  if (failed(run(block, numbers)))
    return failure();
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return numbers[value]; });
}
