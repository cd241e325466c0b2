//===- triton-autodiff-fuzz.cpp - The compiler behind a pipe --------------===//
//
// The fuzzers (scripts/fuzz_opt.py, scripts/fuzz_passes.py) ask this program. A
// request on the standard input is a line "STEP SIZE" and that many bytes; the
// answer is a line "ok SIZE", "error SIZE" or "invalid SIZE" (a pass left a
// module that is not valid) and that many bytes. Through the C interface:
//
//   differentiate, compile, parse   a module
//
// One pass after the other, on a module that the program keeps:
//
//   pipeline   the passes for a request, one a line
//   load       a module, to be kept
//   advance    a pass: the module becomes what it makes of it
//   print      the module
//   try        passes, one a line: on a copy of the module
//
// It must answer whatever it is given.
//
//===----------------------------------------------------------------------===//

#include "autodiff-c/Autodiff.h"

#include "../third_party/autodiff/lib/CAPI/Session.h"
#include "autodiff/InitAll.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

using namespace mlir;
using namespace mlir::autodiff;

namespace {
enum class Outcome { Ok, Error, Invalid };

/// A module between passes.
class Kept {
public:
  Kept() : session(createRegistry(), "fuzz") {}

  bool load(llvm::StringRef text);
  Outcome advance(llvm::StringRef pass) { return run(*module, pass); }
  Outcome tryPasses(llvm::StringRef passes);
  Outcome print(std::string &text) const;
  std::string &getDiagnostics() { return session.getDiagnostics(); }
  bool isLoaded() { return bool(module); }

private:
  static DialectRegistry createRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }
  Outcome run(ModuleOp on, llvm::StringRef pass);

  Session session;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static void keep(const char *data, size_t size, void *text) {
  static_cast<std::string *>(text)->assign(data, size);
}

bool Kept::load(llvm::StringRef text) {
  module = session.parse(text.data(), text.size());
  return isLoaded();
}

Outcome Kept::print(std::string &text) const {
  llvm::raw_string_ostream stream(text);
  module.get()->print(stream);
  return Outcome::Ok;
}

Outcome Kept::run(ModuleOp on, llvm::StringRef pass) {
  PassManager pm(on->getContext());
  // Afterwards, to know an invalid module from an error.
  pm.enableVerifier(false);
  llvm::raw_string_ostream errors(session.getDiagnostics());
  if (failed(parsePassPipeline(pass, pm, errors)) || failed(pm.run(on)))
    return Outcome::Error;
  return succeeded(verify(on)) ? Outcome::Ok : Outcome::Invalid;
}

Outcome Kept::tryPasses(llvm::StringRef passes) {
  OwningOpRef<ModuleOp> copy = module->clone();
  SmallVector<llvm::StringRef> lines;
  passes.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef pass : lines)
    if (Outcome outcome = run(*copy, pass); outcome != Outcome::Ok)
      return outcome;
  return Outcome::Ok;
}

/// The passes for a request, one a line.
static bool listPasses(llvm::StringRef requestJson, std::string &answer) {
  MLIRContext context;
  FailureOr<Request> request =
      Request::parse(requestJson, UnknownLoc::get(&context));
  OpPassManager pm(ModuleOp::getOperationName());
  if (failed(request) || failed(buildDifferentiatePipeline(pm, *request)))
    return false;
  llvm::raw_string_ostream stream(answer);
  for (Pass &pass : pm) {
    pass.printAsTextualPipeline(stream);
    stream << "\n";
  }
  return true;
}

static Outcome runStep(const std::string &step, const std::string &text,
                       std::unique_ptr<Kept> &kept, std::string &answer) {
  if (step == "load")
    kept = std::make_unique<Kept>();
  if (!kept || (step != "load" && !kept->isLoaded())) {
    answer = "error: no module is loaded\n";
    return Outcome::Error;
  }
  Outcome outcome = Outcome::Error;
  bool ended = false;
  std::string errors;
  runEntryPoint(
      text.size(),
      [&](std::string &diagnostics) {
        kept->getDiagnostics().clear();
        if (step == "load")
          outcome = kept->load(text) ? Outcome::Ok : Outcome::Error;
        else if (step == "advance")
          outcome = kept->advance(text);
        else if (step == "try")
          outcome = kept->tryPasses(text);
        else
          outcome = kept->print(answer);
        ended = true;
        diagnostics = kept->getDiagnostics();
        return outcome == Outcome::Ok;
      },
      keep, &errors);
  if (outcome != Outcome::Ok)
    answer = errors;
  // What a fatal error has left is not to be touched.
  if (!ended)
    (void)kept.release();
  return outcome;
}

static bool runThroughC(const std::string &step, const std::string &ir,
                        std::string &answer) {
  if (step == "differentiate")
    return tadDifferentiate(ir.data(), ir.size(), "fuzz", "{}", keep, keep,
                            &answer);
  const char *pipeline = step == "compile" ? "triton-to-llvm" : "";
  return tadRunPipeline(ir.data(), ir.size(), "fuzz", pipeline, keep, keep,
                        &answer);
}

static Outcome run(const std::string &step, const std::string &text,
                   std::unique_ptr<Kept> &kept, std::string &answer) {
  auto of = [](bool succeeded) {
    return succeeded ? Outcome::Ok : Outcome::Error;
  };
  if (step == "pipeline")
    return of(listPasses(text, answer));
  if (step == "differentiate" || step == "compile" || step == "parse")
    return of(runThroughC(step, text, answer));
  return runStep(step, text, kept, answer);
}

int main() {
  registerAllPasses();
  std::unique_ptr<Kept> kept;
  std::string step;
  for (size_t size; std::cin >> step >> size;) {
    std::cin.get();
    std::string text(size, '\0'), answer;
    std::cin.read(text.data(), size);
    Outcome outcome = run(step, text, kept, answer);
    const char *head = outcome == Outcome::Ok      ? "ok "
                       : outcome == Outcome::Error ? "error "
                                                   : "invalid ";
    std::cout << head << answer.size() << "\n" << answer << std::flush;
  }
}
