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

/// Runs `body`, which leaves what it has to say in `diagnostics`, and reports
/// to `onError`. Its stack is deep enough for a module with that many
/// characters; one that is too long is an error. A fatal error inside LLVM ends
/// `body` early and counts as a failure; memory that it held then is lost. It
/// is not reported where `gaveUp` takes note of it.
bool runEntryPoint(size_t textSize,
                   llvm::function_ref<bool(std::string &diagnostics)> body,
                   TadSink onError, void *user, bool *gaveUp = nullptr);

/// Ends the call into the library that this thread is in, for a reason; returns
/// if it is in none.
void giveUp(const char *reason);

/// Hands `text` to a sink.
inline void emit(TadSink sink, StringRef text, void *user) {
  if (sink)
    sink(text.data(), text.size(), user);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_CAPI_SESSION_H
