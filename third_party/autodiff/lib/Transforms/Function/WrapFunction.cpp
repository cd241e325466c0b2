//===- WrapFunction.cpp - A kernel that calls a function ------------------===//
//
// A function is differentiated as a kernel that loads its arguments, does what
// the function does, and stores its results.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Support/UserName.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Placeholders.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_WRAPFUNCTION
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct WrapFunction : autodiff::impl::WrapFunctionBase<WrapFunction> {
  using WrapFunctionBase::WrapFunctionBase;

  void runOnOperation() override;
  LogicalResult check(triton::FuncOp function);
  LogicalResult loadArguments(triton::FuncOp function);
};
} // namespace

/// A function that kernels call may read memory; its contents count as
/// constant.
static LogicalResult checkEffects(ModuleOp module) {
  WalkResult walk = module.walk([](Operation *op) {
    bool writes = isa<triton::StoreOp, triton::AtomicRMWOp, triton::AtomicCASOp,
                      triton::DescriptorStoreOp, triton::DescriptorReduceOp,
                      triton::DescriptorScatterOp>(op);
    if (!writes)
      return WalkResult::advance();
    op->emitError(
        "a function that is differentiated by grad, value_and_grad or "
        "vjp writes to memory here (")
        << spellForUser(op)
        << "): let it return the value, and store that in the kernel that "
           "calls it";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult WrapFunction::check(triton::FuncOp function) {
  if (failed(checkEffects(getOperation())))
    return failure();
  llvm::SmallDenseSet<unsigned> seen;
  for (unsigned number : wanted) {
    if (number >= function.getNumArguments() ||
        !isDifferentiable(function.getArgument(number).getType()))
      return function.emitError("argument ")
             << number << " is no float, and has no gradient";
    if (!seen.insert(number).second)
      return function.emitError("argument ") << number << " is wanted twice";
  }
  if (llvm::none_of(function.getResultTypes(), isDifferentiable))
    return function.emitError("returns no float, and has no derivative");
  return success();
}

static Type pointerTo(Type type) {
  return triton::PointerType::get(getElementTypeOrSelf(type),
                                  /*addressSpace=*/1);
}

/// Loads wanted arguments from memory.
LogicalResult WrapFunction::loadArguments(triton::FuncOp function) {
  OpBuilder b(&function.getBody());
  for (unsigned number : wanted) {
    BlockArgument argument = function.getArgument(number);
    Type type = argument.getType();
    Location loc = argument.getLoc();
    if (failed(function.insertArgument(number + 1, pointerTo(type), {}, loc)))
      return failure();
    Value memory = function.getArgument(number + 1);
    Value pointers = pointersFrom(b, loc, memory, type);
    argument.replaceAllUsesWith(
        triton::LoadOp::create(b, loc, pointers, Value(), Value()));
    if (failed(function.eraseArgument(number)))
      return failure();
  }
  return success();
}

/// Stores the floats that are returned, and returns nothing. Gives the type of
/// the function with its arguments and these results.
static FunctionType storeResults(triton::FuncOp function,
                                 ArrayRef<Type> arguments) {
  SmallVector<triton::ReturnOp> ends;
  function.walk([&](triton::ReturnOp end) { ends.push_back(end); });
  SmallVector<Type> stored, taken(function.getArgumentTypes());
  for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
    if (!isDifferentiable(type))
      continue;
    stored.push_back(type);
    taken.push_back(pointerTo(type));
    Value memory =
        function.getBody().addArgument(taken.back(), function.getLoc());
    for (triton::ReturnOp end : ends) {
      OpBuilder b(end);
      triton::StoreOp::create(b, end.getLoc(),
                              pointersFrom(b, end.getLoc(), memory, type),
                              end.getOperand(number), Value());
    }
  }
  for (triton::ReturnOp end : ends)
    end->setOperands({});
  Builder b(function.getContext());
  function.setType(b.getFunctionType(taken, {}));
  return b.getFunctionType(arguments, stored);
}

void WrapFunction::runOnOperation() {
  triton::FuncOp function = getPrimal(getOperation());
  if (!function) {
    getOperation().emitError("there is no public function to differentiate");
    return signalPassFailure();
  }
  if (function.getNumArguments() == 0) {
    if (failed(resolvePlaceholders(function)))
      return signalPassFailure();
    // The location of the function's call in Python.
    function->setLoc(function.getBody().front().getTerminator()->getLoc());
  }
  if (failed(check(function)))
    return signalPassFailure();
  SmallVector<Type> arguments(function.getArgumentTypes());
  if (failed(loadArguments(function)))
    return signalPassFailure();
  function->setAttr(kFunctionAttr,
                    TypeAttr::get(storeResults(function, arguments)));
}
