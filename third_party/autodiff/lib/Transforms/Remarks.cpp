//===- Remarks.cpp - What passes decide, and why --------------------------===//
#include "autodiff/Transforms/Remarks.h"

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Remarks.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

Subject::Subject(Operation *op) : op(op), loc(op->getLoc()) {
  if (auto sum = dyn_cast<AccumulateOp>(op))
    argument = sum.getArgument();
  else if (auto cotangent = dyn_cast<UpstreamOp>(op))
    argument = cotangent.getArgument();
}

/// The user's name of an argument or program id, if `word` is one.
static std::string nameWord(StringRef word, triton::FuncOp kernel) {
  auto numbered = [&](StringRef prefix, unsigned &number) {
    StringRef rest = word;
    return rest.consume_front(prefix) && !rest.getAsInteger(10, number);
  };
  unsigned number;
  if (numbered("pid", number))
    return "program_id(" + std::to_string(number) + ")";
  if (numbered("grid", number))
    return "num_programs(" + std::to_string(number) + ")";
  if (numbered("arg", number) && number < kernel.getNumArguments())
    if (auto name = dyn_cast<NameLoc>(kernel.getArgument(number).getLoc()))
      return name.getName().str();
  return word.str();
}

/// A text with the user's names of arguments and program ids.
static std::string nameNumbers(StringRef text, triton::FuncOp kernel) {
  std::string named;
  while (!text.empty()) {
    StringRef word =
        text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    named += word.empty() ? text.take_front().str() : nameWord(word, kernel);
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
  return named;
}

void Remarks::emit(Subject subject, const Reason &reason, bool isTaken) const {
  Operation *op = subject.op;
  auto kernel = dyn_cast<triton::FuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<triton::FuncOp>();
  remark::RemarkOpts opts =
      remark::RemarkOpts::name(name).category(name).function(
          kernel.getSymName());
  remark::detail::InFlightRemark remark =
      isTaken ? remark::passed(subject.loc, opts)
              : remark::missed(subject.loc, opts);
  remark << remark::detail::Remark::Arg(kReasonKey,
                                        nameNumbers(reason.getText(), kernel));
  if (subject.argument)
    remark << remark::detail::Remark::Arg(kArgumentKey, *subject.argument);
}
