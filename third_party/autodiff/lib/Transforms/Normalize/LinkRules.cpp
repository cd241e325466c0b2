//===- LinkRules.cpp - Attach the derivatives that the user defines -------===//
//
// Markers are inline assembly without instructions,
// "// autodiff.stop_gradient". A function with its own derivative ends with a
// call (CustomCall.h).
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Assembly/Lift.h"
#include "autodiff/Builders/FirstOrderStop.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Transforms/CustomCall.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LINKRULES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

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
  for (Value value : getFloats(rule->hasAttr(kRuleForwardAttr)
                                   ? ValueRange(op->getOperands())
                                   : ValueRange(op->getResults())))
    types.push_back(Adjoint::typeFor(value.getType()));
  llvm::append_range(types, op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  return llvm::equal(types, rule.getArgumentTypes());
}

/// Fills `region` with the body of a rule, a function of the derivatives of
/// `of`, the operands and the results.
static void inlineRule(triton::FuncOp rule, Operation *op, Region &region,
                       ValueRange of, ValueRange operands) {
  Location loc = op->getLoc();
  Block &block = region.emplaceBlock();
  for (Value value : of)
    block.addArgument(Adjoint::typeFor(value.getType()), loc);
  SmallVector<Value> arguments(block.getArguments());
  llvm::append_range(arguments, operands);
  llvm::append_range(arguments, op->getResults());
  IRMapping mapping;
  mapping.map(rule.getArguments(), arguments);
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  Block &body = rule.getBody().front();
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  YieldOp::create(
      builder, loc,
      llvm::map_to_vector(body.getTerminator()->getOperands(),
                          [&](Value v) { return mapping.lookupOrDefault(v); }));
}

/// Replaces the results of `op` by those of a custom_vjp with the bodies of
/// rules, of which the `forward` one may be missing.
///
/// An exact rule is found again when a derived kernel is differentiated: in its
/// text, nothing is left but the operation itself.
static LogicalResult applyRules(triton::FuncOp backward, triton::FuncOp forward,
                                Operation *op, unsigned number) {
  triton::FuncOp given = backward ? backward : forward;
  StringRef name = given->getAttrOfType<StringAttr>(kRuleAttr).getValue();
  if (!backward)
    return op->emitError() << "the rule '" << name << "' has no way back";
  bool isExact = given->hasAttr(kRuleExactAttr);
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> inputs = getFloats(op->getOperands());
  SmallVector<Value> operands(op->getOperands());
  for (OpOperand &operand : op->getOpOperands())
    if (isDifferentiable(operand.get().getType()))
      operand.set(createFirstOrderStop(builder, loc, operand.get()));
  builder.setInsertionPointAfter(op);
  SmallVector<Value> values = getFloats(op->getResults());
  auto call = isExact ? IntegerAttr() : builder.getI32IntegerAttr(number);
  auto custom =
      CustomVjpOp::create(builder, loc, ValueRange(values).getTypes(), values,
                          inputs, builder.getStringAttr(name), call, isExact);
  for (auto [value, result] : llvm::zip_equal(values, custom.getResults()))
    value.replaceAllUsesExcept(result, custom);
  inlineRule(backward, op, custom.getPullback(), values, operands);
  if (forward)
    inlineRule(forward, op, custom.getPushforward(), inputs, operands);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Replaces markers: stop_gradient, arguments inside of functions with
/// user-defined derivatives, and values that must not be differentiated again.
static LogicalResult linkMarker(Operation *op) {
  StringRef marker = getMarker(op);
  if (marker == "custom_vjp")
    return op->emitError("a function with its own derivative was traced "
                         "without it; differentiate the kernel through "
                         "`differentiable` or `autodiff`");
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value value = op->getOperands().empty() ? Value() : op->getOperand(0);
  if (marker == "stop_gradient")
    value = StopGradientOp::create(builder, loc, value);
  else if (marker == "inside")
    value = createFirstOrderStop(builder, loc, value);
  else if (marker == "once")
    value = OnceOp::create(builder, loc, value, ValueRange());
  else
    return success();
  op->replaceAllUsesWith(ValueRange{value});
  op->erase();
  return success();
}

namespace {
struct LinkRules : autodiff::impl::LinkRulesBase<LinkRules> {
  using LinkRulesBase::LinkRulesBase;

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
      auto findRule = [&](bool isForward) {
        for (triton::FuncOp rule : rules)
          if (rule->hasAttr(kRuleForwardAttr) == isForward && isFor(rule, op))
            return rule;
        return triton::FuncOp();
      };
      auto call = dyn_cast<triton::CallOp>(op);
      triton::FuncOp back = findRule(false), forth = findRule(true);
      if (call && CustomCall::linkOnce(call))
        continue;
      if (call && CustomCall::find(call))
        calls.push_back(call);
      else if (failed(back || forth
                          ? applyRules(back, forward ? forth : triton::FuncOp(),
                                       op, number++)
                          : linkMarker(op)))
        return signalPassFailure();
    }
    for (triton::CallOp call : calls)
      if (failed(CustomCall::find(call)->link(number++, forward, again)))
        return signalPassFailure();
    for (triton::FuncOp rule : rules)
      rule.erase();
    for (triton::FuncOp declaration : declarations)
      if (SymbolTable::symbolKnownUseEmpty(declaration, getOperation()))
        declaration.erase();
  }
};
} // namespace
