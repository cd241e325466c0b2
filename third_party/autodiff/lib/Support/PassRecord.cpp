//===- PassRecord.cpp - Which passes have done something ------------------===//

#include "autodiff/Support/PassRecord.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <mutex>

using namespace mlir;

namespace {

/// What this process has written, for all threads that compile.
struct Written {
  std::mutex mutex;
  llvm::StringSet<> lines;
};

class PassRecord : public PassInstrumentation {
public:
  explicit PassRecord(StringRef path) : path(path) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    write("ran", pass);
    before.emplace_back();
    if (!isWritten("changed", pass))
      before.back().emplace(op);
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    std::optional<OperationFingerPrint> old = before.pop_back_val();
    if (old && *old != OperationFingerPrint(op))
      write("changed", pass);
  }
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    // The pass has failed: its error is a change, too.
    write("changed", pass);
    before.pop_back();
  }

private:
  static Written &written() {
    static Written written;
    return written;
  }
  static std::string lineOf(StringRef what, Pass *pass) {
    return (what + " " + pass->getArgument() + "\n").str();
  }
  static bool isWritten(StringRef what, Pass *pass) {
    std::lock_guard<std::mutex> lock(written().mutex);
    return written().lines.contains(lineOf(what, pass));
  }

  void write(StringRef what, Pass *pass) {
    // Pass managers have no name.
    if (pass->getArgument().empty())
      return;
    std::lock_guard<std::mutex> lock(written().mutex);
    std::string line = lineOf(what, pass);
    if (!written().lines.insert(line).second)
      return;
    std::error_code error;
    llvm::raw_fd_ostream file(path, error, llvm::sys::fs::OF_Append);
    if (!error)
      file << line;
    else
      llvm::errs() << "cannot open TRITON_AUTODIFF_PASSES '" << path
                   << "': " << error.message() << "\n";
  }

  std::string path;
  SmallVector<std::optional<OperationFingerPrint>> before;
};

} // namespace

void autodiff::recordPasses(PassManager &pm) {
  const char *path = std::getenv("TRITON_AUTODIFF_PASSES");
  if (path && *path)
    pm.addInstrumentation(std::make_unique<PassRecord>(path));
}
