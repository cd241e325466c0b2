//===- RemarkLog.h - Remarks of passes as JSON ------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_PLAN_REMARKLOG_H
#define AUTODIFF_LIB_PLAN_REMARKLOG_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"

namespace mlir::autodiff {

/// Turns remarks on while it lives.
class RemarkLog {
public:
  explicit RemarkLog(MLIRContext *context);
  ~RemarkLog();

  /// The remarks of the passes that `passes` runs, each once and in order, as
  /// JSON that docs/plan.md describes. Errors are dropped: their reasons are
  /// among the remarks.
  std::string follow(llvm::function_ref<void()> passes);

private:
  MLIRContext *context;
  llvm::json::Array remarks;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_PLAN_REMARKLOG_H
