//===- Differentiate.cpp - From a kernel to a plan ------------------------===//
#include "autodiff/Plan/Differentiate.h"

#include "RemarkLog.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/CombinerLaws.h"
#include "autodiff/Support/Descriptors.h"
#include "autodiff/Support/Dump.h"
#include "autodiff/Support/PassRecord.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Kernels that were derived before lack attributes that passes rely on.
static LogicalResult checkRoles(ModuleOp module) {
  for (auto function : module.getOps<triton::FuncOp>())
    if (function->hasAttr(kRoleAttr))
      return function.emitError("has a role (`")
             << kRoleAttr
             << "`), which differentiation gives to what it derives; "
                "differentiate the kernel that it comes from";
  return success();
}

/// Notes the known values of components of descriptors in a launch: Triton
/// specializes kernels for integer arguments, but not for these.
static LogicalResult markDescriptors(triton::FuncOp kernel,
                                     const Request &request) {
  // Arguments as the plan numbers them: a descriptor is a pointer and a
  // padding.
  llvm::DenseMap<unsigned, unsigned> integers;
  unsigned number = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    bool isDescriptor = isa<triton::TensorDescType>(argument.getType());
    if (isDescriptor || isa<IntegerType>(argument.getType()))
      integers[number + isDescriptor] = argument.getArgNumber();
    number += isDescriptor ? 2 : 1;
  }
  Builder builder(kernel.getContext());
  auto mark = [&](unsigned part, StringRef name,
                  Attribute value) -> LogicalResult {
    auto found = integers.find(part);
    if (found == integers.end())
      return kernel.emitError("malformed request: argument ")
             << part << " is no integer";
    kernel.setArgAttr(found->second, name, value);
    return success();
  };
  for (unsigned part : request.aligned)
    if (failed(mark(part, "tt.divisibility", builder.getI32IntegerAttr(16))))
      return failure();
  for (auto [part, value] : request.known)
    if (failed(mark(part, kKnownAttr, builder.getI64IntegerAttr(value))))
      return failure();
  for (auto [part, first] : request.same)
    for (unsigned each : {part, unsigned(first)})
      if (failed(mark(each, kSameAttr, builder.getI64IntegerAttr(first))))
        return failure();
  return success();
}

FailureOr<std::string>
mlir::autodiff::differentiate(ModuleOp module, llvm::StringRef requestJson) {
  FailureOr<Request> request = Request::parse(requestJson, module.getLoc());
  if (failed(request) || failed(checkRoles(module)))
    return failure();
  for (const UserRule &rule : request->rules)
    if (failed(importRule(rule, module)))
      return failure();
  PassManager pm(module.getContext());
  // To verify after each pass takes as long as all passes; tests do so.
  pm.enableVerifier(false);
  triton::FuncOp primal = getPrimal(module);
  recordPasses(pm);
  enableDump(pm, primal ? primal.getSymName() : "");
  if (primal && failed(markDescriptors(primal, *request)))
    return failure();
  if (request->checkpoint)
    module->setAttr(kCheckpointAttr, UnitAttr::get(module.getContext()));
  if (request->target)
    module->setAttr(kTargetAttr, StringAttr::get(module.getContext(),
                                                 request->target->name));
  if (request->anyOrder)
    module->setAttr(kAnyOrderAttr, UnitAttr::get(module.getContext()));
  if (request->tangents)
    buildForwardPipeline(pm, *request);
  else if (failed(buildDifferentiatePipeline(pm, *request)))
    return failure();
  if (request->explain)
    return RemarkLog(module.getContext()).follow([&] { (void)pm.run(module); });
  if (failed(pm.run(module)) || failed(verify(module)))
    return failure();
  return request->tangents ? printForward(module) : printPlan(module);
}
