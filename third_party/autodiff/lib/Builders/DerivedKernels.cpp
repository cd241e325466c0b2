//===- DerivedKernels.cpp - Kernels that passes of ours derive ------------===//
#include "autodiff/Builders/DerivedKernels.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Support/Position.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::autodiff;

void mlir::autodiff::assumeNotNegative(ModuleOp module,
                                       ArrayRef<ScalarExpr> numbers) {
  for (const ScalarExpr &number : numbers)
    PlanOp::getOrCreate(module).add<AssumeOp>(number.get(module.getContext()));
}

/// The plan's rearranged launch, or null.
static RearrangedOp findRearranged(ModuleOp module) {
  PlanOp plan = PlanOp::of(module);
  if (!plan || plan.getItems<RearrangedOp>().empty())
    return {};
  return *plan.getItems<RearrangedOp>().begin();
}

RearrangedLaunch RearrangedLaunch::of(ModuleOp module) {
  RearrangedLaunch launch;
  if (RearrangedOp rearranged = findRearranged(module)) {
    LaunchAttr known = rearranged.getLaunch();
    launch.grid = llvm::to_vector(known.getGrid());
    launch.assumed = llvm::to_vector(known.getAssumed());
    launch.checks = llvm::to_vector(known.getChecks());
    launch.position = known.getPosition();
    launch.length = known.getLength();
    launch.batched = known.getBatched();
    launch.lengths = llvm::to_vector(known.getLengths());
    launch.unraveled = known.getUnraveled();
    return launch;
  }
  for (unsigned axis : {0, 1, 2})
    launch.grid.push_back(gridOf(module.getContext(), axis));
  return launch;
}

void RearrangedLaunch::assume(ArrayRef<ScalarExpr> numbers) {
  for (const ScalarExpr &number : numbers)
    assumed.push_back(number.get(grid.front().getContext()));
}

void RearrangedLaunch::record(ModuleOp module) const {
  auto launch =
      LaunchAttr::get(grid.front().getContext(), grid, assumed, checks,
                      position, length, batched, lengths, unraveled);
  if (RearrangedOp rearranged = findRearranged(module))
    rearranged.setLaunchAttr(launch);
  else
    PlanOp::getOrCreate(module).add<RearrangedOp>(launch);
}

triton::FuncOp mlir::autodiff::getOrCreateDifferentiated(ModuleOp module) {
  triton::FuncOp primal = getPrimal(module), kernel = getDifferentiated(module);
  if (!primal || kernel != primal)
    return kernel;
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  kernel = cast<triton::FuncOp>(builder.clone(*primal));
  nameKernel(kernel, primal.getSymName() + "_framed");
  kernel->setAttr(kRoleAttr, builder.getStringAttr("differentiated"));
  return kernel;
}

triton::FuncOp mlir::autodiff::derive(triton::FuncOp primal,
                                      llvm::StringRef role,
                                      llvm::StringRef suffix) {
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  auto kernel = cast<triton::FuncOp>(builder.clone(*primal));
  nameKernel(kernel,
             primal.getSymName() + "_" + (suffix.empty() ? role : suffix));
  kernel->setAttr(kRoleAttr, builder.getStringAttr(role));
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    kernel.setArgAttr(
        index, kOperandAttr,
        OperandAttr::get(builder.getContext(), OperandKind::Argument, index));
  return kernel;
}

triton::FuncOp mlir::autodiff::getOrCreateForward(ModuleOp module) {
  if (triton::FuncOp forward = getForward(module))
    return forward;
  return derive(getPrimal(module), "forward", "fwd");
}

/// The name of an argument in printed kernels, if the user's arguments have
/// names: `d_x` for the gradient or cotangent of `x`.
static Location nameOperand(triton::FuncOp kernel, OperandAttr operand,
                            Attribute buffer) {
  Location loc = kernel.getLoc();
  auto isOf = [&](BlockArgument argument) {
    return kernel.getArgAttr(argument.getArgNumber(), kOperandAttr) ==
           OperandAttr::get(kernel.getContext(), OperandKind::Argument,
                            operand.getIndex());
  };
  auto hasName = [](BlockArgument argument) {
    return !findVariable(argument.getLoc()).empty();
  };
  if (llvm::none_of(kernel.getArguments(), hasName))
    return loc;
  switch (operand.getKind()) {
  case OperandKind::Gradient:
  case OperandKind::Cotangent:
    if (auto primal = llvm::find_if(kernel.getArguments(), isOf);
        primal != kernel.getArguments().end())
      return ofAdjoint(loc, findVariable(primal->getLoc()));
    return loc;
  case OperandKind::Buffer:
    return withVariable(loc,
                        cast<BufferAttr>(buffer).getName().rtrim("0123456789"));
  default:
    return withVariable(loc, stringifyOperandKind(operand.getKind()));
  }
}

BlockArgument mlir::autodiff::appendOperand(triton::FuncOp kernel, Type type,
                                            OperandAttr operand,
                                            Attribute buffer) {
  Builder builder(kernel.getContext());
  unsigned index = kernel.getNumArguments();
  (void)kernel.insertArgument(
      index, type,
      builder.getDictionaryAttr(builder.getNamedAttr(kOperandAttr, operand)),
      nameOperand(kernel, operand, buffer));
  if (buffer)
    PlanOp::getOrCreate(kernel->getParentOfType<ModuleOp>())
        .describe(operand, buffer);
  return kernel.getArgument(index);
}

LaunchOp mlir::autodiff::launchOf(triton::FuncOp kernel) {
  return PlanOp::getOrCreate(kernel->getParentOfType<ModuleOp>())
      .launch(kernel);
}
void mlir::autodiff::eraseKernel(triton::FuncOp kernel) {
  if (LaunchOp launch = findLaunch(kernel))
    launch.erase();
  kernel.erase();
}
/// Whether an attribute was set by one of our passes.
static bool isOurs(NamedAttribute named) {
  return named.getName().getValue().starts_with("autodiff.");
}

void mlir::autodiff::dropMarks(triton::FuncOp kernel) {
  kernel.walk([](Operation *op) {
    for (NamedAttribute named : llvm::to_vector(op->getDiscardableAttrs()))
      if (isOurs(named))
        op->removeDiscardableAttr(named.getName());
  });
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    for (NamedAttribute named :
         llvm::to_vector(function_interface_impl::getArgAttrs(kernel, index)))
      if (isOurs(named))
        kernel.removeArgAttr(index, named.getName());
}

void mlir::autodiff::setGrid(triton::FuncOp kernel, ArrayRef<ExprAttr> grid) {
  launchOf(kernel).setGridAttr(toArray(kernel.getContext(), grid));
}

void mlir::autodiff::dropUnusedArguments(
    triton::FuncOp kernel, llvm::function_ref<bool(OperandKind)> mayGo) {
  llvm::BitVector unused(kernel.getNumArguments());
  for (BlockArgument argument : kernel.getArguments()) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(argument.getArgNumber(),
                                                        kOperandAttr);
    if (operand && mayGo(operand.getKind()) && argument.use_empty())
      unused.set(argument.getArgNumber());
  }
  LogicalResult erased = kernel.eraseArguments(unused);
  assert(succeeded(erased) && "an unused argument can go");
  (void)erased;
}

void mlir::autodiff::dropUnusedArguments(triton::FuncOp kernel) {
  dropUnusedArguments(kernel, [](OperandKind kind) {
    return kind == OperandKind::Argument || kind == OperandKind::Cotangent ||
           kind == OperandKind::Buffer;
  });
}
