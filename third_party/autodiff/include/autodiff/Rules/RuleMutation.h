//===- RuleMutation.h - Deliberate mistakes in rules ------------*- C++ -*-===//
//
// For mutation tests (Support/Mutation.h): mistakes in contributions to
// adjoints are named "operation:operand:kind", those in contributions to
// tangents "operation:tangent result:kind", and those in masks
// "operation:mask:kind".
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_RULEMUTATION_H
#define AUTODIFF_RULES_RULEMUTATION_H

#include "autodiff/Support/Mutation.h"
#include "mlir/IR/Builders.h"

namespace mlir::autodiff::mutation {

#ifdef TAD_MUTATION

/// During its lifetime, contributions count as those of the rule of `op`.
class Reversing {
public:
  explicit Reversing(Operation *op);
  ~Reversing();

private:
  Operation *outer;
};

/// Makes a mistake in `contribution`, or in `value`, to whose adjoint it is
/// added. If `value` is a result, it is added to its tangent.
void inContribution(OpBuilder &builder, Location loc, Value &value,
                    Value &contribution);

/// Makes a mistake in the mask of the access that reverses `op`.
void inMask(OpBuilder &builder, Operation *op, Value &mask);

#else

struct Reversing {
  explicit Reversing(Operation *) {}
};
inline void inContribution(OpBuilder &, Location, Value &, Value &) {}
inline void inMask(OpBuilder &, Operation *, Value &) {}

#endif

} // namespace mlir::autodiff::mutation

#endif // AUTODIFF_RULES_RULEMUTATION_H
