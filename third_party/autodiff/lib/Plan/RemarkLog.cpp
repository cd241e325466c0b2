//===- RemarkLog.cpp - Remarks of passes as JSON --------------------------===//
#include "RemarkLog.h"

#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Remarks.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class JsonStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit JsonStreamer(llvm::json::Array &remarks) : remarks(remarks) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override;

private:
  llvm::json::Array &remarks;
};
} // namespace

void JsonStreamer::streamOptimizationRemark(
    const remark::detail::Remark &remark) {
  llvm::json::Object object{
      {"schedule", remark.getRemarkName()},
      {"taken", remark.getRemarkType() == llvm::remarks::Type::Passed},
      {"kernel", remark.getFunction()},
      {"position", spellPosition(remark.getLocation())}};
  for (const remark::detail::Remark::Arg &arg : remark.getArgs()) {
    int64_t number;
    if (arg.key == kReasonKey)
      object["reason"] = arg.val;
    else if (arg.key == kArgumentKey &&
             !StringRef(arg.val).getAsInteger(10, number))
      object["argument"] = number;
  }
  llvm::json::Value entry = std::move(object);
  if (!llvm::is_contained(remarks, entry))
    remarks.push_back(std::move(entry));
}

RemarkLog::RemarkLog(MLIRContext *context) : context(context) {
  remark::RemarkCategories all;
  all.passed = all.missed = ".*";
  LogicalResult enabled = remark::enableOptimizationRemarks(
      *context, std::make_unique<JsonStreamer>(remarks),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), all);
  assert(succeeded(enabled) && "nothing is opened for that");
  (void)enabled;
}

std::string RemarkLog::follow(llvm::function_ref<void()> passes) {
  ScopedDiagnosticHandler ignored(context, [](Diagnostic &) {});
  passes();
  return llvm::formatv("{0:2}", llvm::json::Value(std::move(remarks))).str();
}

RemarkLog::~RemarkLog() { context->setRemarkEngine(nullptr); }
