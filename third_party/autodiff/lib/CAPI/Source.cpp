//===- Source.cpp - tadPrintSource ----------------------------------------===//

#include "Session.h"

#include "autodiff/InitAll.h"
#include "autodiff/Source/Python.h"

using namespace mlir;
using namespace mlir::autodiff;

bool tadPrintSource(const char *ir, size_t irSize, const char *fileName,
                    TadSink onResult, TadSink onError, void *user) {
  return runEntryPoint(
      irSize,
      [&](std::string &diagnostics) {
        DialectRegistry registry;
        registerAllDialects(registry);
        Session session(registry, fileName);
        std::string result;
        llvm::raw_string_ostream stream(result);
        OwningOpRef<ModuleOp> module = session.parse(ir, irSize);
        bool isPrinted =
            module && mlir::succeeded(printPython(*module, stream));
        diagnostics = std::move(session.getDiagnostics());
        if (isPrinted)
          emit(onResult, result, user);
        return isPrinted;
      },
      onError, user);
}
