//===- Dump.cpp - Printing IR around passes -------------------------------===//

#include "autodiff/Support/Dump.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <mutex>

using namespace mlir;

namespace {

/// Writes one pass's dump at a time, whole, however many threads compile.
void writeDump(StringRef text) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (const char *path = std::getenv("MLIR_DUMP_PATH"); path && *path) {
    std::error_code error;
    llvm::raw_fd_ostream file(path, error, llvm::sys::fs::OF_Append);
    if (!error) {
      file << text;
      return;
    }
    llvm::errs() << "cannot open MLIR_DUMP_PATH '" << path
                 << "': " << error.message() << "\n";
  }
  llvm::errs() << text;
}

class DumpConfig : public PassManager::IRPrinterConfig {
public:
  DumpConfig(std::string filter, std::string kernel)
      : IRPrinterConfig(/*printModuleScope=*/true,
                        /*printAfterOnlyOnChange=*/false,
                        /*printAfterOnlyOnFailure=*/false,
                        autodiff::getPrintingFlags()),
        filter(std::move(filter)), kernel(std::move(kernel)) {}

  void printBeforeIfEnabled(Pass *, Operation *op,
                            PrintCallbackFn print) override {
    printIfSelected(op, print);
  }
  void printAfterIfEnabled(Pass *, Operation *op,
                           PrintCallbackFn print) override {
    printIfSelected(op, print);
  }

private:
  bool isSelected(Operation *op) const {
    if (filter.empty() || filter == kernel)
      return true;
    if (op->hasTrait<OpTrait::SymbolTable>())
      return SymbolTable::lookupSymbolIn(op, filter);
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    return symbol && symbol.getName() == filter;
  }

  void printIfSelected(Operation *op, PrintCallbackFn print) const {
    if (!isSelected(op))
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    print(stream);
    writeDump(text);
  }

  /// Name of the only kernel to print; empty for all.
  std::string filter;
  std::string kernel;
};

} // namespace

OpPrintingFlags autodiff::getPrintingFlags() {
  return OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix();
}

void autodiff::enableDump(PassManager &pm, StringRef kernel) {
  const char *value = std::getenv("MLIR_ENABLE_DUMP");
  if (!value)
    return;
  // The spellings of "on" and "off" that Triton's own switches accept.
  std::string lower = StringRef(value).lower();
  if (lower.empty() || lower == "0" || lower == "off" || lower == "false")
    return;
  bool all = lower == "1" || lower == "on" || lower == "true";
  pm.enableIRPrinting(
      std::make_unique<DumpConfig>(all ? "" : value, kernel.str()));
}
