//===- ScalarCode.h - What scalar code computes of numbers ------*- C++ -*-===//
#ifndef AUTODIFF_RULES_SCALARCODE_H
#define AUTODIFF_RULES_SCALARCODE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// The code of a region, to be run by the compiler on numbers: floats are
/// doubles, whatever types they have in the kernel, and integers are what they
/// are there.
class ScalarCode {
public:
  explicit ScalarCode(Region &region) : region(region) {}

  /// A float as a double; other numbers as they are.
  static Attribute widen(Attribute number);

  /// Gives a value from outside of the region.
  void set(Value value, Attribute number) { captures[value] = widen(number); }

  /// The results for these arguments. Fails at an operation that has none for
  /// these numbers, or is not known here; `getFailed` returns it then.
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
