//===- Functions.cpp - Derivatives of mathematical functions --------------===//
#include "autodiff/Rules/Functions.h"

#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/LibraryNames.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

const FunctionTable &mlir::autodiff::getFunctions() {
  static const FunctionTable functions = [] {
    FunctionTable table;
    addElementaryFunctions(table);
    addArithmeticFunctions(table);
    addSpecialFunctions(table);
    return table;
  }();
  return functions;
}

/// Whether `op` passes floats where `function` has derivatives, and integers
/// elsewhere (powi, jn, ldexp).
static bool takesOperands(Operation *op, const Function &function) {
  SmallVector<unsigned> order = getFunctionOperands(op);
  if (function.partials.empty())
    return true;
  if (function.partials.size() != order.size())
    return false;
  return llvm::all_of(llvm::zip(order, function.partials), [&](auto pair) {
    auto [number, partial] = pair;
    Type type = op->getOperand(number).getType();
    return partial ? isFloat(type)
                   : getElementTypeOrSelf(type).isSignlessInteger();
  });
}

const Function *mlir::autodiff::findFunction(Operation *op, std::string *name) {
  std::string found = getFunctionName(
      op, [](StringRef name) { return getFunctions().contains(name); });
  auto it = getFunctions().find(found);
  if (it == getFunctions().end())
    return nullptr;
  const Function &function = it->second;
  if (!takesOperands(op, function))
    return nullptr;
  if (name)
    *name = std::move(found);
  return &function;
}

Tile Application::call(llvm::StringRef function,
                       llvm::ArrayRef<Value> operands) const {
  OpBuilder &b = y.b();
  // An integer may come first (jn), but never last.
  Type type = y.type();
  if (auto library = dyn_cast<triton::ExternElementwiseOp>(op))
    return y.like(triton::ExternElementwiseOp::create(
        b, y.loc(), type, operands, library.getLibname(), library.getLibpath(),
        getSiblingSymbol(library.getSymbol(), function,
                         getElementTypeOrSelf(type).getIntOrFloatBitWidth()),
        /*pure=*/true));
  for (auto [operation, computed] : getFunctionOperations())
    if (computed == function && operation.starts_with("math.")) {
      OperationState state(y.loc(), operation, operands, type);
      return y.like(b.create(state)->getResult(0));
    }
  llvm_unreachable("a derivative calls what its function's own kind lacks");
}

/// The partial derivative by operand `operand` of `op`. One operand may be
/// several arguments of the function: "mul.f32 $0, $1, $1".
static Partial bindPartial(Operation *op, const Function &function,
                           unsigned operand) {
  SmallVector<unsigned> order = getFunctionOperands(op);
  SmallVector<FunctionPartial> partials;
  for (auto [number, partial] : llvm::zip(order, function.partials))
    if (number == operand && partial)
      partials.push_back(partial);
  if (partials.empty())
    return {};
  return [=](Tile t, llvm::ArrayRef<Tile> operands, Tile y) {
    SmallVector<Tile> x;
    for (unsigned number : order)
      x.push_back(operands[number]);
    Application application{x, y, op};
    Tile sum = partials.front()(t, application);
    for (FunctionPartial partial : llvm::drop_begin(partials))
      sum = sum + partial(t, application);
    return sum;
  };
}

Partials mlir::autodiff::getPartials(Operation *op) {
  const Function &function = *findFunction(op);
  Partials partials;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    partials.push_back(bindPartial(op, function, operand));
  return partials;
}

void mlir::autodiff::addFunctionRules(RuleTable &table) {
  for (const auto &entry : getFunctions()) {
    Rule rule{entry.getValue().formula, Rule::Constant()};
    if (!entry.getValue().partials.empty())
      rule.derivative = getPartials;
    table.insertFunction(entry.getKey(), std::move(rule));
  }
}
