//===- LiveValues.h - Values that effects depend on -------------*- C++ -*-===//
#ifndef AUTODIFF_FORWARD_LIVEVALUES_H
#define AUTODIFF_FORWARD_LIVEVALUES_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

/// The values that an effect, a condition or a bound of a loop depends on. What
/// a loop carries counts only if something outside of this circle needs it.
class LiveValues {
public:
  explicit LiveValues(triton::FuncOp kernel);

  bool contains(Value value) const { return live.contains(value); }

private:
  void mark(Value value);
  void follow(Value value);

  llvm::DenseSet<Value> live;
  SmallVector<Value> pending;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_FORWARD_LIVEVALUES_H
