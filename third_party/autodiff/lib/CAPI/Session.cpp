//===- Session.cpp - One call into the library ----------------------------===//

#include "Session.h"

#include "DeepStack.h"
#include "autodiff/Support/CheckText.h"
#include "autodiff/Support/CheckTiles.h"
#include "autodiff/Support/Position.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <csetjmp>
#include <cstdio>
#include <mutex>

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// The call sites around `loc`, innermost first.
static void collectCallers(Location loc, SmallVectorImpl<Location> &callers) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return collectCallers(name.getChildLoc(), callers);
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectCallers(call.getCallee(), callers);
    callers.push_back(call.getCaller());
    collectCallers(call.getCaller(), callers);
  }
}

static StringRef getSeverityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

void Session::append(Location loc, StringRef severity, StringRef message) {
  llvm::raw_string_ostream os(diagnostics);
  if (FileLineColLoc position = findPosition(loc))
    os << position.getFilename().getValue() << ":" << position.getLine() << ":"
       << position.getColumn() << ": ";
  else
    os << fileName << ": ";
  os << severity << ": " << message << "\n";
}

/// The first line of a note, without the beginning of a region: the rest of the
/// operation that it shows is of no use to a reader. A long line is cut.
static std::string shorten(StringRef note) {
  constexpr size_t kLongest = 240;
  StringRef line = note.split('\n').first;
  if (line.consume_back("({"))
    line = line.rtrim();
  if (line.size() <= kLongest)
    return line.str();
  line = line.take_front(kLongest);
  // Not inside of a character.
  while (!line.empty() && (line.back() & 0x80))
    line = line.drop_back();
  return (line + " …").str();
}

void Session::append(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return;
  hasErrors |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
  append(diagnostic.getLocation(), getSeverityName(diagnostic.getSeverity()),
         diagnostic.str());
  SmallVector<Location> callers;
  collectCallers(diagnostic.getLocation(), callers);
  for (Location caller : callers)
    append(caller, "note", "called from here");
  for (Diagnostic &note : diagnostic.getNotes())
    append(note.getLocation(), "note", shorten(note.str()));
}

//===----------------------------------------------------------------------===//
// Session
//===----------------------------------------------------------------------===//

Session::Session(const DialectRegistry &registry, const char *fileName)
    : fileName(fileName && *fileName ? fileName : "<ttir>"),
      context(registry, MLIRContext::Threading::DISABLED),
      handler(&context,
              [this](Diagnostic &diagnostic) { append(diagnostic); }) {}

OwningOpRef<ModuleOp> Session::parse(const char *ir, size_t size) {
  if (failed(checkText(StringRef(ir, size), fileName, &context)))
    return nullptr;
  // The lexer needs a terminating zero, which the caller's text may lack.
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(StringRef(ir, size), fileName),
      llvm::SMLoc());
  // Verifiers count elements, too, so checkTiles comes first.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  // After some errors of the lexer, the parser goes on.
  if (!module || hasErrors || failed(checkTiles(*module)) ||
      failed(verify(*module)))
    return nullptr;
  return module;
}

//===----------------------------------------------------------------------===//
// Fatal errors
//===----------------------------------------------------------------------===//

namespace {
/// Where to go on after a fatal error in this thread.
struct Recovery {
  std::jmp_buf state;
  char reason[1024];
};
} // namespace

static thread_local Recovery *recovery = nullptr;

// LLVM exits the process when its handler returns. Inside an entry point,
// longjmp leaves the call instead; memory of the frames in between leaks.
void autodiff::giveUp(const char *reason) {
  if (!recovery)
    return;
  std::snprintf(recovery->reason, sizeof(recovery->reason), "%s", reason);
  std::longjmp(recovery->state, 1);
}

static void handleFatalError(void *, const char *reason, bool) {
  autodiff::giveUp(reason);
}

/// Runs `body`; false if a fatal error ended it. `frame` then has the reason:
/// there may be no memory left to report it in this thread.
static bool runToTheEnd(llvm::function_ref<void()> body, Recovery &frame) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(handleFatalError);
    llvm::install_bad_alloc_error_handler(handleFatalError);
  });
  Recovery *const outer = recovery;
  volatile bool ended = false;
  if (setjmp(frame.state) == 0) {
    recovery = &frame;
    body();
    ended = true;
  }
  recovery = outer;
  return ended;
}

bool autodiff::runEntryPoint(
    size_t textSize, llvm::function_ref<bool(std::string &diagnostics)> body,
    TadSink onError, void *user, bool *gaveUp) {
  auto refuse = [&](const llvm::Twine &reason) {
    emit(onError, ("error: " + reason + "\n").str(), user);
    return false;
  };
  if (textSize > kLongestText)
    return refuse("the kernel is too long: " + Twine(textSize >> 20) +
                  " MiB of TTIR, of which up to " + Twine(kLongestText >> 20) +
                  " can be compiled; let loops that are unrolled run instead "
                  "(range for tl.static_range), or launch several kernels");
  std::string diagnostics;
  bool succeeded = false, ended = false;
  Recovery frame;
  if (!runOnDeepStack(textSize, [&] {
        ended = runToTheEnd([&] { succeeded = body(diagnostics); }, frame);
      }))
    return refuse("no memory for the compiler's stack");
  if (!ended && gaveUp) {
    *gaveUp = true;
    return false;
  }
  if (!ended)
    return refuse("the compiler gave up: " + Twine(frame.reason));
  if (!succeeded && diagnostics.empty())
    return refuse("failed without a diagnostic");
  if (!diagnostics.empty())
    emit(onError, diagnostics, user);
  return succeeded;
}
