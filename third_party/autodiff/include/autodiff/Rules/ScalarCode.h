//===- ScalarCode.h - What scalar code computes of numbers ------*- C++ -*-===//
#ifndef AUTODIFF_RULES_SCALARCODE_H
#define AUTODIFF_RULES_SCALARCODE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// Interprets the code of a region at compile time, on constants. Floats are
/// doubles, whatever their types in the kernel; integers have their own types.
class ScalarCode {
public:
  explicit ScalarCode(Region &region) : region(region) {}

  /// A float as a double; other numbers as they are.
  static Attribute widen(Attribute number);

  /// Sets a value that is defined outside of the region.
  void set(Value value, Attribute number) { captures[value] = widen(number); }

  /// The results for these arguments. Fails at an operation that is undefined
  /// for them, or that the interpreter does not know; `getFailed` returns it
  /// then.
  FailureOr<SmallVector<Attribute>> run(ArrayRef<Attribute> arguments);
  Operation *getFailed() const { return failedAt; }

private:
  using Numbers = llvm::DenseMap<Value, Attribute>;
  LogicalResult run(Block &block, Numbers &numbers);
  LogicalResult runBranch(Operation &op, Numbers &numbers);
  Attribute evaluate(Operation &op, ArrayRef<Attribute> operands,
                     const Numbers &numbers);

  Region &region;
  Numbers captures;
  Operation *failedAt = nullptr;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_SCALARCODE_H
