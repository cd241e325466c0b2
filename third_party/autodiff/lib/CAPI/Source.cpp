//===- Source.cpp - tadPrintSource ----------------------------------------===//

#include "Session.h"

#include "autodiff/InitAll.h"
#include "autodiff/Source/Python.h"
#include "mlir/Support/ToolUtilities.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Parses several texts, separated by `// -----`, into one module. Functions
/// whose name is taken are renamed.
static OwningOpRef<ModuleOp> parseAll(Session &session, llvm::StringRef text) {
  SmallVector<llvm::StringRef> parts;
  text.split(parts, kDefaultSplitMarker);
  OwningOpRef<ModuleOp> all;
  for (llvm::StringRef part : parts) {
    // The parser needs a terminating zero.
    std::string ended = part.str();
    OwningOpRef<ModuleOp> module = session.parse(ended.c_str(), ended.size());
    if (!module)
      return {};
    if (!all) {
      all = std::move(module);
      continue;
    }
    SymbolTable symbols(*all), own(*module);
    for (auto function :
         llvm::make_early_inc_range(module->getOps<triton::FuncOp>())) {
      // Calls of the function are renamed, too.
      if (symbols.lookup(function.getSymName()) &&
          failed(own.renameToUnique(function, {&symbols})))
        return {};
      function->remove();
      symbols.insert(function);
    }
  }
  return all;
}

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
        OwningOpRef<ModuleOp> module = parseAll(session, {ir, irSize});
        bool isPrinted =
            module && mlir::succeeded(printPython(*module, stream));
        diagnostics = std::move(session.getDiagnostics());
        if (isPrinted)
          emit(onResult, result, user);
        return isPrinted;
      },
      onError, user);
}
