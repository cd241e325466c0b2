//===- UnwrapBackward.cpp - A function of the backward of a wrapped one ---===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_UNWRAPBACKWARD
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct UnwrapBackward : autodiff::impl::UnwrapBackwardBase<UnwrapBackward> {
  using UnwrapBackwardBase::UnwrapBackwardBase;

  void transform() override;
  FunctionType findType(triton::FuncOp kernel, triton::FuncOp backward);
  triton::FuncOp createFunction(triton::FuncOp kernel, FunctionType type);
  SmallVector<Value> computeValues(triton::FuncOp kernel, FunctionType type,
                                   triton::FuncOp function);
  LogicalResult unwrap(triton::FuncOp kernel, triton::FuncOp backward,
                       FunctionType type, triton::FuncOp function);
};
} // namespace

/// The autodiff.accumulate or autodiff.upstream operations of one argument.
template <typename Op>
static SmallVector<Op> findAll(Block &block, unsigned argument) {
  SmallVector<Op> found;
  block.walk([&](Op op) {
    if (op.getArgument() == argument)
      found.push_back(op);
  });
  return found;
}

/// Replaces an argument in memory by a value.
static LogicalResult takeArgument(BlockArgument memory, Value value) {
  SmallVector<triton::LoadOp> loads;
  memory.getOwner()->walk([&](triton::LoadOp load) {
    if (getBaseArgument(load.getPtr()) == memory)
      loads.push_back(load);
  });
  for (triton::LoadOp load : loads) {
    if (load.getType() != value.getType())
      return load.emitError("is of a part of an argument of the function");
    load.replaceAllUsesWith(value);
    load.erase();
  }
  return success();
}

static LogicalResult takeCotangent(BlockArgument memory, Value value) {
  for (auto upstream :
       findAll<UpstreamOp>(*memory.getOwner(), memory.getArgNumber())) {
    if (Value result = upstream.getResult()) {
      if (result.getType() != value.getType())
        return upstream.emitError("is of a part of a result of the function");
      result.replaceAllUsesWith(value);
    }
    upstream.erase();
  }
  return success();
}

/// The sum of all contributions to the gradient of an argument, in its type.
static FailureOr<Value> takeGradient(BlockArgument memory, Type type) {
  OpBuilder b(memory.getOwner()->getTerminator());
  Location loc = memory.getLoc();
  Value sum;
  for (auto contribution :
       findAll<AccumulateOp>(*memory.getOwner(), memory.getArgNumber())) {
    Value value = contribution.getValue();
    if (contribution->getBlock() != memory.getOwner() ||
        value.getType() != Adjoint::typeFor(type))
      return contribution.emitError("is to a part of an argument");
    loc = contribution.getLoc();
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, value)) : value;
    contribution.erase();
  }
  return sum ? castFloat(b, loc, sum, getElementTypeOrSelf(type))
             : zeroOf(b, loc, type);
}

/// The type of the wrapped function; null if there is none.
FunctionType UnwrapBackward::findType(triton::FuncOp kernel,
                                      triton::FuncOp backward) {
  auto found = kernel->getAttrOfType<TypeAttr>(kFunctionAttr);
  auto type = found ? dyn_cast<FunctionType>(found.getValue()) : nullptr;
  if (!type ||
      backward.getNumArguments() != type.getNumInputs() + type.getNumResults())
    return {};
  for (auto [number, input] : llvm::enumerate(type.getInputs()))
    if (!llvm::is_contained(wanted, number) &&
        backward.getArgument(number).getType() != input)
      return {};
  bool areFloats = llvm::all_of(type.getResults(), isDifferentiable) &&
                   llvm::all_of(wanted, [&](unsigned number) {
                     return number < type.getNumInputs() &&
                            isDifferentiable(type.getInput(number));
                   });
  return areFloats ? type : FunctionType();
}

/// An empty function with the parameters and results of a function's backward.
triton::FuncOp UnwrapBackward::createFunction(triton::FuncOp kernel,
                                              FunctionType type) {
  SmallVector<Type> arguments(type.getInputs()), results;
  if (withValues)
    llvm::append_range(results, type.getResults());
  if (!ones)
    for (Type result : type.getResults())
      arguments.push_back(Adjoint::typeFor(result));
  for (unsigned number : wanted)
    results.push_back(type.getInput(number));
  OpBuilder b(kernel);
  auto function = triton::FuncOp::create(
      b, kernel.getLoc(), name.empty() ? kernel.getSymName() : StringRef(name),
      b.getFunctionType(arguments, results));
  function.addEntryBlock();
  for (auto [number, argument] : llvm::enumerate(function.getArguments()))
    argument.setLoc(number < type.getNumInputs()
                        ? kernel.getArgument(number).getLoc()
                        : withVariable(kernel.getLoc(), "cotangent"));
  return function;
}

/// Computes the function's results and returns them.
SmallVector<Value> UnwrapBackward::computeValues(triton::FuncOp kernel,
                                                 FunctionType type,
                                                 triton::FuncOp function) {
  OpBuilder b(&function.getBody());
  IRMapping map;
  map.map(kernel.getArguments().take_front(type.getNumInputs()),
          function.getArguments().take_front(type.getNumInputs()));
  SmallVector<Value> values(type.getNumResults());
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    Value pointer = getAccessedPointer(&op);
    BlockArgument memory = pointer ? getBaseArgument(pointer) : nullptr;
    unsigned number = memory ? memory.getArgNumber() : 0;
    auto load = dyn_cast<triton::LoadOp>(op);
    auto store = dyn_cast<triton::StoreOp>(op);
    if (memory && store && number >= type.getNumInputs())
      values[number - type.getNumInputs()] = map.lookup(store.getValue());
    else if (memory && load && llvm::is_contained(wanted, number))
      map.map(load.getResult(), function.getArgument(number));
    else if (!pointer || number < type.getNumInputs())
      b.clone(op, map);
  }
  return values;
}

LogicalResult UnwrapBackward::unwrap(triton::FuncOp kernel,
                                     triton::FuncOp backward, FunctionType type,
                                     triton::FuncOp function) {
  Block &block = backward.getBody().front();
  Block &body = function.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  SmallVector<Value> gradients;
  for (unsigned number : wanted) {
    FailureOr<Value> gradient =
        takeGradient(block.getArgument(number), type.getInput(number));
    if (failed(gradient))
      return failure();
    gradients.push_back(*gradient);
  }
  SmallVector<Value> results;
  if (withValues)
    results = computeValues(kernel, type, function);
  llvm::append_range(results, gradients);
  block.getTerminator()->setOperands(results);
  for (BlockArgument argument : block.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (number >= type.getNumInputs()) {
      Type adjoint =
          Adjoint::typeFor(type.getResult(number - type.getNumInputs()));
      Value cotangent = ones ? constantOf(b, function.getLoc(), adjoint, 1.0)
                             : Value(body.getArgument(number));
      if (failed(takeCotangent(argument, cotangent)))
        return failure();
    } else if (!llvm::is_contained(wanted, number)) {
      argument.replaceAllUsesWith(body.getArgument(number));
    } else if (failed(takeArgument(argument, body.getArgument(number)))) {
      return failure();
    }
  }
  body.getOperations().splice(body.end(), block.getOperations());
  // Only addresses are left of the tensors.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (BlockArgument argument : block.getArguments())
    if (!argument.use_empty())
      return (*argument.user_begin())
          ->emitError("takes a value of the function from memory");
  return success();
}

void UnwrapBackward::transform() {
  triton::FuncOp kernel = getPrimal(getOperation());
  triton::FuncOp backward = getBackward(getOperation());
  FunctionType type = findType(kernel, backward);
  if (!type) {
    kernel.emitError("is not what autodiff-wrap-function makes of a function "
                     "whose gradient by these arguments is wanted");
    return signalPassFailure();
  }
  if (kernel->hasAttr(kOrderedAttr)) {
    kernel.emitError("depends on the order of elements that Triton leaves open "
                     "(tl.cat or tl.reshape with can_reorder=True), which its "
                     "gradient cannot know: use tl.join, or keep the order");
    return signalPassFailure();
  }
  getOperation().walk([](ResidualOp residual) {
    residual.replaceAllUsesWith(residual.getValue());
    residual.erase();
  });
  triton::FuncOp function = createFunction(kernel, type);
  if (failed(unwrap(kernel, backward, type, function)))
    return signalPassFailure();
  for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
    if (&op != function)
      op.erase();
  dropMarks(function);
}
