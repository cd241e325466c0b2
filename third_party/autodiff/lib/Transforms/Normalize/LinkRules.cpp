//===- LinkRules.cpp - Attach the derivatives that the user defines -------===//
//
// Python's tracer can only put standard operations into TTIR. Markers are
// inline assembly without instructions, "// autodiff.stop_gradient". A function
// with its own derivative ends with a call of a declared function.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Assembly/Lift.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LINKRULES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Creates a custom_vjp operation at `builder` with an empty pullback. Its
/// place in the kernel, `call`, keeps it apart from others.
static CustomVjpOp createCustomVjp(OpBuilder &builder, Location loc,
                                   StringRef rule, ValueRange values,
                                   ValueRange inputs, unsigned call) {
  auto custom = CustomVjpOp::create(builder, loc, values.getTypes(), values,
                                    inputs, builder.getStringAttr(rule),
                                    builder.getI32IntegerAttr(call));
  Block &block = custom.getPullback().emplaceBlock();
  for (Value value : values)
    block.addArgument(Adjoint::typeFor(value.getType()), loc);
  return custom;
}

//===----------------------------------------------------------------------===//
// Rules of operations
//===----------------------------------------------------------------------===//

static SmallVector<Value> getFloats(ValueRange values) {
  return llvm::filter_to_vector(
      values, [](Value value) { return isDifferentiable(value.getType()); });
}

static bool isFor(triton::FuncOp rule, Operation *op) {
  auto matches = [&](StringRef attribute, StringRef text) {
    auto expected = rule->getAttrOfType<StringAttr>(attribute);
    return expected && expected.getValue() == text;
  };
  auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op);
  auto call = dyn_cast<triton::ExternElementwiseOp>(op);
  if (!(assembly && matches(kRuleAsmAttr, assembly.getAsmString())) &&
      !(call && matches(kRuleSymbolAttr, call.getSymbol())))
    return false;
  SmallVector<Type> types;
  for (Value result : getFloats(op->getResults()))
    types.push_back(Adjoint::typeFor(result.getType()));
  llvm::append_range(types, op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  return llvm::equal(types, rule.getArgumentTypes());
}

/// Replaces the results of `op` by those of a custom_vjp with the body of
/// `rule`.
static void applyRule(triton::FuncOp rule, Operation *op, unsigned number) {
  OpBuilder builder(op);
  SmallVector<Value> inputs = getFloats(op->getOperands());
  SmallVector<Value> operands(op->getOperands());
  for (OpOperand &operand : op->getOpOperands())
    if (isDifferentiable(operand.get().getType()))
      operand.set(StopGradientOp::create(builder, op->getLoc(), operand.get()));
  builder.setInsertionPointAfter(op);
  SmallVector<Value> values = getFloats(op->getResults());
  CustomVjpOp custom =
      createCustomVjp(builder, op->getLoc(),
                      rule->getAttrOfType<StringAttr>(kRuleAttr).getValue(),
                      values, inputs, number);
  for (auto [value, result] : llvm::zip_equal(values, custom.getResults()))
    value.replaceAllUsesExcept(result, custom);

  Block &pullback = custom.getPullback().front();
  SmallVector<Value> arguments(pullback.getArguments());
  llvm::append_range(arguments, operands);
  llvm::append_range(arguments, op->getResults());
  IRMapping mapping;
  mapping.map(rule.getArguments(), arguments);
  builder.setInsertionPointToEnd(&pullback);
  Block &body = rule.getBody().front();
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  YieldOp::create(
      builder, op->getLoc(),
      llvm::map_to_vector(body.getTerminator()->getOperands(),
                          [&](Value v) { return mapping.lookupOrDefault(v); }));
}

//===----------------------------------------------------------------------===//
// Functions with a derivative of their own
//===----------------------------------------------------------------------===//

static bool isCustomCall(triton::CallOp call) {
  return call.getCallee().starts_with("autodiff.custom_vjp");
}

/// Whether `op` or an operation inside uses a result of one of `producers`.
static bool usesAny(Operation *op,
                    const llvm::SetVector<Operation *> &producers) {
  return op
      ->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (producers.contains(operand.getDefiningOp()))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns what stands for the cotangents of a call's results, which is inline
/// assembly on these, also where the derivative does not use it.
///
/// The results of several calls may be one value, since a function may return
/// what it is given. Calls nest like brackets: the latest is this call's.
static SmallVector<Operation *> getPlaceholders(triton::CallOp call,
                                                ValueRange values) {
  SmallVector<Operation *> placeholders;
  for (auto [index, value] : llvm::enumerate(values)) {
    Operation *latest = nullptr;
    std::string marker = ("cotangent " + Twine(index)).str();
    for (Operation *user : value.getUsers())
      if (user->getBlock() == call->getBlock() && getMarker(user) == marker &&
          user->isBeforeInBlock(call) &&
          (!latest || latest->isBeforeInBlock(user)))
        latest = user;
    placeholders.push_back(latest);
  }
  return placeholders;
}

/// Turns a call (results…, inputs…, gradients…) into a custom_vjp. Operations
/// that depend on the placeholders of cotangents move into its pullback.
static LogicalResult linkCall(triton::CallOp call, unsigned number) {
  unsigned results = call.getNumResults();
  unsigned inputs = (call.getNumOperands() - results) / 2;
  ValueRange operands = call.getOperands();
  ValueRange values = operands.take_front(results);
  ValueRange gradients = operands.take_back(inputs);

  SmallVector<Operation *> placeholders = getPlaceholders(call, values);
  if (llvm::is_contained(placeholders, nullptr))
    return call->emitError("malformed cotangents");
  llvm::SetVector<Operation *> dependent(llvm::from_range, placeholders);
  for (Operation &op : *call->getBlock()) {
    if (&op == call)
      break;
    if (usesAny(&op, dependent))
      dependent.insert(&op);
  }

  StringRef rule = call.getCallee();
  rule.consume_front("autodiff.custom_vjp.");
  for (Operation *op : dependent)
    for (Operation *user : op->getUsers()) {
      Operation *outer = call->getBlock()->findAncestorOpInBlock(*user);
      if (outer != call && !dependent.contains(outer))
        return user->emitError()
               << "only the derivative of '" << rule.rsplit('.').first
               << "' may use its cotangent";
    }

  OpBuilder builder(call);
  CustomVjpOp custom =
      createCustomVjp(builder, call.getLoc(), rule.rsplit('.').first, values,
                      operands.slice(results, inputs), number);
  Block &pullback = custom.getPullback().front();
  IRMapping mapping;
  for (auto [placeholder, cotangent] :
       llvm::zip_equal(placeholders, pullback.getArguments()))
    mapping.map(placeholder->getResult(0), cotangent);
  builder.setInsertionPointToEnd(&pullback);
  for (Operation *op : dependent) {
    if (llvm::is_contained(placeholders, op))
      continue;
    if (!isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      return op->emitError() << "the derivative of '" << rule.rsplit('.').first
                             << "' must not have an effect";
    builder.clone(*op, mapping);
  }
  YieldOp::create(builder, call.getLoc(),
                  llvm::map_to_vector(gradients, [&](Value v) {
                    return mapping.lookupOrDefault(v);
                  }));
  call->replaceAllUsesWith(custom.getResults());
  call->erase();
  for (Operation *op : llvm::reverse(dependent))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Replaces markers: stop_gradient, values that must not be differentiated
/// again, and arguments of functions with user-defined derivatives.
static LogicalResult linkMarker(Operation *op) {
  StringRef marker = getMarker(op);
  if (marker == "custom_vjp")
    return op->emitError("a function with its own derivative was traced "
                         "without it; differentiate the kernel through "
                         "`differentiable` or `autodiff`");
  if (marker == "once")
    return op->emitError("a gradient of a function with a custom_vjp is "
                         "differentiated again here: a derivative of one's own "
                         "is the first one only; for a second derivative take "
                         "the function without it");
  if (marker != "stop_gradient")
    return success();
  OpBuilder builder(op);
  op->replaceAllUsesWith(
      StopGradientOp::create(builder, op->getLoc(), op->getOperand(0)));
  op->erase();
  return success();
}

namespace {
struct LinkRules : autodiff::impl::LinkRulesBase<LinkRules> {
  void transform() override {
    triton::FuncOp kernel = getPrimal(getOperation());
    SmallVector<triton::FuncOp> rules, declarations;
    for (auto function : getOperation().getOps<triton::FuncOp>()) {
      if (getRole(function) == "rule") {
        if (!function->getAttrOfType<StringAttr>(kRuleAttr)) {
          function.emitError("a rule without a name in `") << kRuleAttr << "`";
          return signalPassFailure();
        }
        rules.push_back(function);
      } else if (function.isDeclaration()) {
        declarations.push_back(function);
      }
    }
    SmallVector<Operation *> operations;
    kernel.walk([&](Operation *op) { operations.push_back(op); });
    SmallVector<triton::CallOp> calls;
    unsigned number = 0;
    for (Operation *op : operations) {
      auto isForOp = [&](triton::FuncOp rule) { return isFor(rule, op); };
      if (auto call = dyn_cast<triton::CallOp>(op); call && isCustomCall(call))
        calls.push_back(call);
      else if (auto rule = llvm::find_if(rules, isForOp); rule != rules.end())
        applyRule(*rule, op, number++);
      else if (failed(linkMarker(op)))
        return signalPassFailure();
    }
    for (triton::CallOp call : calls)
      if (failed(linkCall(call, number++)))
        return signalPassFailure();
    for (triton::FuncOp rule : rules)
      rule.erase();
    for (triton::FuncOp declaration : declarations)
      if (SymbolTable::symbolKnownUseEmpty(declaration, getOperation()))
        declaration.erase();
  }
};
} // namespace
