//===- Session.h - One call into the library --------------------*- C++ -*-===//
//
// What every entry point needs: a context of its own, diagnostics as text, and
// LLVM's fatal errors turned into an ordinary failure.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_LIB_CAPI_SESSION_H
#define AUTODIFF_LIB_CAPI_SESSION_H

#include "autodiff-c/Autodiff.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace mlir::autodiff {

/// An MLIR context for one call, and the diagnostics emitted in it.
class Session {
public:
  Session(const DialectRegistry &registry, const char *fileName);

  MLIRContext &getContext() { return context; }

  /// Parses and verifies a module; null, with diagnostics, where that fails.
  OwningOpRef<ModuleOp> parse(const char *ir, size_t size);

  /// All diagnostics so far.
  std::string &getDiagnostics() { return diagnostics; }

private:
  void append(Location loc, StringRef severity, StringRef message);
  void append(Diagnostic &diagnostic);

  std::string fileName;
  std::string diagnostics;
  bool hasErrors = false;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
};

/// Runs `body` with a stack that is deep enough for a module with that many
/// characters; a module that is too long is an error. Errors are in
/// `diagnostics` and go to `onError`. A fatal error inside LLVM ends `body`
/// early and counts as a failure; memory that it held is lost. With `gaveUp`,
/// it is noted there and not reported.
bool runEntryPoint(size_t textSize,
                   llvm::function_ref<bool(std::string &diagnostics)> body,
                   TadSink onError, void *user, bool *gaveUp = nullptr);

/// Ends the current call into the library in this thread, for a reason; returns
/// if there is none.
void giveUp(const char *reason);

/// Passes `text` to a sink.
inline void emit(TadSink sink, StringRef text, void *user) {
  if (sink)
    sink(text.data(), text.size(), user);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_CAPI_SESSION_H
