//===- Reason.h - Why something is not so -----------------------*- C++ -*-===//
//
// An analysis that fails says why, so that a pass can tell the user in a remark
// what stood in its way. The text is only made if remarks are on: otherwise a
// reason costs one test.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_REASON_H
#define AUTODIFF_ANALYSIS_REASON_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <memory>

namespace mlir::autodiff {

/// Whether MLIR's remarks are on in this context.
bool wantsReasons(MLIRContext *context);

/// Why something is not so: a clause in plain English, or empty if remarks are
/// off.
class Reason {
public:
  Reason() = default;
  explicit Reason(std::string text)
      : text(std::make_shared<const std::string>(std::move(text))) {}

  /// Several reasons as one, each once.
  static Reason all(llvm::ArrayRef<Reason> reasons);

  llvm::StringRef getText() const { return text ? *text : llvm::StringRef(); }
  /// Whether there is a text.
  explicit operator bool() const { return text != nullptr; }

private:
  std::shared_ptr<const std::string> text;
};

namespace reasons {
/// A source line, "kernel.py:12".
std::string spell(MLIRContext *context, Location loc);
std::string spell(MLIRContext *context, Operation *op);
/// An integer expression. Arguments and program ids are numbers here; remarks
/// replace these by names.
std::string spell(MLIRContext *context, const ScalarExpr &number);
std::string spell(MLIRContext *context, ExprAttr number);
inline std::string spell(MLIRContext *, const Reason &why) {
  return why.getText().str();
}
inline std::string spell(MLIRContext *, llvm::StringRef text) {
  return text.str();
}
inline std::string spell(MLIRContext *, const char *text) { return text; }
std::string spell(MLIRContext *, double number);
template <typename T>
std::enable_if_t<std::is_integral_v<T>, T> spell(MLIRContext *, T number) {
  return number;
}
/// "a", "a and b", "a, b and c".
template <typename T>
std::string spell(MLIRContext *context, llvm::ArrayRef<T> list) {
  std::string text;
  for (auto [place, each] : llvm::enumerate(list)) {
    if (place > 0)
      text += place + 1 == list.size() ? " and " : ", ";
    text += spell(context, each);
  }
  return text;
}
template <typename T>
std::string spell(MLIRContext *context, const llvm::SmallVector<T> &list) {
  return spell(context, llvm::ArrayRef<T>(list));
}
} // namespace reasons

/// A reason with a format string of llvm::formatv. Arguments may be operations,
/// locations, symbolic integers and plain ones:
///
///   return because(loop, "the loop at {0} runs {1} times", loop, trips);
template <typename... Ts>
Reason because(MLIRContext *context, const char *format, const Ts &...values) {
  if (LLVM_LIKELY(!wantsReasons(context)))
    return {};
  return Reason(
      llvm::formatv(format, reasons::spell(context, values)...).str());
}
template <typename... Ts>
Reason because(Operation *op, const char *format, const Ts &...values) {
  return because(op->getContext(), format, values...);
}
template <typename... Ts>
Reason because(Value value, const char *format, const Ts &...values) {
  return because(value.getContext(), format, values...);
}

/// A result, or the reason why there is none.
template <typename T> class ReasonOr : public std::optional<T> {
public:
  ReasonOr() = default;
  ReasonOr(T value) : std::optional<T>(std::move(value)) {}
  ReasonOr(std::optional<T> value) : std::optional<T>(std::move(value)) {}
  ReasonOr(std::nullopt_t) {}
  ReasonOr(Reason why) : reason(std::move(why)) {}

  const Reason &why() const { return reason; }

private:
  Reason reason;
};

/// What stands in the way of something, if anything does.
using Obstacle = std::optional<Reason>;

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_REASON_H
