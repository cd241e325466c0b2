//===- Pipeline.cpp - tadRunPipeline --------------------------------------===//

#include "Session.h"

#include "autodiff/InitAll.h"
#include "autodiff/Support/Dump.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <mutex>

using namespace mlir;
using namespace mlir::autodiff;

static bool runPipeline(Session &session, const char *ir, size_t irSize,
                        const char *pipeline, std::string &result) {
  OwningOpRef<ModuleOp> module = session.parse(ir, irSize);
  if (!module)
    return false;

  if (pipeline && *pipeline) {
    static std::once_flag registered;
    std::call_once(registered, registerAllPasses);

    PassManager pm(&session.getContext());
    std::string message;
    llvm::raw_string_ostream errors(message);
    if (failed(parsePassPipeline(pipeline, pm, errors))) {
      emitError(UnknownLoc::get(&session.getContext()))
          << "in pass pipeline '" << pipeline << "': " << message;
      return false;
    }
    enableDump(pm);
    if (failed(pm.run(*module)))
      return false;
  }

  llvm::raw_string_ostream stream(result);
  module->print(stream, getPrintingFlags());
  return true;
}

bool tadRunPipeline(const char *ir, size_t irSize, const char *fileName,
                    const char *pipeline, TadSink onResult, TadSink onError,
                    void *user) {
  return runEntryPoint(
      [&](std::string &diagnostics) {
        DialectRegistry registry;
        registerAllDialects(registry);
        Session session(registry, fileName);
        std::string result;
        bool succeeded = runPipeline(session, ir, irSize, pipeline, result);
        diagnostics = std::move(session.getDiagnostics());
        if (succeeded)
          emit(onResult, result, user);
        return succeeded;
      },
      onError, user);
}
