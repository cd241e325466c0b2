//===- Mutation.h - Deliberate mistakes, to test the tests ------*- C++ -*-===//
//
// A build with TAD_MUTATION can be told to make one mistake, by name, in the
// environment variable of that name; `trace:PATH` makes none and appends the
// names of those that it could have made to a file instead. scripts/mutation.py
// checks that a test notices each. In every other build all of this is empty.
//
// Mistakes in contributions to adjoints are named "operation:operand:kind",
// those to tangents "operation:tangent result:kind", those in masks
// "operation:mask:kind", all others as they stand in the source.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_MUTATION_H
#define AUTODIFF_RULES_MUTATION_H

#include "mlir/IR/Builders.h"

namespace mlir::autodiff::mutation {

#ifdef TAD_MUTATION

/// While it lives, contributions are those of `op`'s rule.
class Reversing {
public:
  explicit Reversing(Operation *op);
  ~Reversing();

private:
  Operation *outer;
};

/// Whether to make the mistake `name`.
bool isMade(llvm::StringRef name);

/// Makes a mistake in `contribution`, or in whose adjoint it is added to. If
/// `value` is a result, it is added to that one's tangent.
void inContribution(OpBuilder &builder, Location loc, Value &value,
                    Value &contribution);

/// Makes a mistake in the mask of the access that reverses `op`.
void inMask(OpBuilder &builder, Operation *op, Value &mask);

#else

struct Reversing {
  explicit Reversing(Operation *) {}
};
inline bool isMade(llvm::StringRef) { return false; }
inline void inContribution(OpBuilder &, Location, Value &, Value &) {}
inline void inMask(OpBuilder &, Operation *, Value &) {}

#endif

} // namespace mlir::autodiff::mutation

#endif // AUTODIFF_RULES_MUTATION_H
