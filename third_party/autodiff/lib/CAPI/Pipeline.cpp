//===- Pipeline.cpp - tadRunPipeline --------------------------------------===//

#include "Session.h"

#include "autodiff/InitAll.h"
#include "autodiff/Support/Dump.h"
#include "autodiff/Support/PassRecord.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool runPipeline(Session &session, const char *ir, size_t irSize,
                        const char *pipeline, std::string &result) {
  OwningOpRef<ModuleOp> module = session.parse(ir, irSize);
  if (!module)
    return false;

  if (pipeline && *pipeline) {
    registerAllPasses();

    // mlir-opt's spelling names the operation that the pipeline runs on; a bare
    // list of passes runs on the module.
    std::string anchored = pipeline;
    if (!StringRef(pipeline).starts_with("builtin.module("))
      anchored = "builtin.module(" + anchored + ")";
    std::string message;
    llvm::raw_string_ostream errors(message);
    FailureOr<OpPassManager> parsed = parsePassPipeline(anchored, errors);
    if (failed(parsed)) {
      emitError(UnknownLoc::get(&session.getContext()))
          << "in pass pipeline: " << StringRef(message).rtrim();
      return false;
    }
    PassManager pm(&session.getContext());
    static_cast<OpPassManager &>(pm) = std::move(*parsed);
    recordPasses(pm);
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
      irSize,
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
