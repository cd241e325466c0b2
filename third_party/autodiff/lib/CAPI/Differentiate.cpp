//===- Differentiate.cpp - tadDifferentiate -------------------------------===//

#include "Session.h"

#include "autodiff/InitAll.h"
#include "autodiff/Plan/Differentiate.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool differentiateText(Session &session, const char *ir, size_t irSize,
                              const char *request, std::string &plan) {
  OwningOpRef<ModuleOp> module = session.parse(ir, irSize);
  if (!module)
    return false;
  FailureOr<std::string> result = differentiate(*module, request);
  if (failed(result))
    return false;
  plan = std::move(*result);
  return true;
}

bool tadDifferentiate(const char *ir, size_t irSize, const char *fileName,
                      const char *request, TadSink onPlan, TadSink onError,
                      void *user) {
  return runEntryPoint(
      irSize,
      [&](std::string &diagnostics) {
        DialectRegistry registry;
        registerTritonDialects(registry);
        Session session(registry, fileName);
        std::string plan;
        bool succeeded = differentiateText(session, ir, irSize, request, plan);
        diagnostics = std::move(session.getDiagnostics());
        if (succeeded)
          emit(onPlan, plan, user);
        return succeeded;
      },
      onError, user);
}
