//===- Activity.h - Which values carry a derivative -------------*- C++ -*-===//
//
// A float value is *varied* if it depends on the content of a wanted argument,
// *useful* if the content of a differentiated output depends on it, *active*
// if both. Only active values have adjoints. (Hascoët, Pascual: The Tapenade
// automatic differentiation tool, 2013, section 4.1.)
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_ACTIVITY_H
#define AUTODIFF_ANALYSIS_ACTIVITY_H

#include "autodiff/Analysis/MemoryFlow.h"
#include "mlir/IR/ValueRange.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallSet.h"

namespace mlir::autodiff {

/// On a cast of bits to a float: why the bits are not those of a float.
constexpr llvm::StringLiteral kReasonAttr = "autodiff.reason";

/// Kernel arguments by number.
using ArgumentSet = llvm::SmallSet<unsigned, 8>;

/// The arguments whose gradients are asked for: those `listed`, or `all` float
/// tensors that `kernel` loads from.
ArgumentSet findWanted(triton::FuncOp kernel, bool all,
                       ArrayRef<unsigned> listed);
/// The arguments whose stored content has a cotangent: those `listed`, or `all`
/// float tensors that `kernel` stores to.
ArgumentSet findWithCotangents(triton::FuncOp kernel, bool all,
                               ArrayRef<unsigned> listed);

class Activity {
public:
  /// Analyses `kernel` for the gradient of arguments `wanted` given cotangents
  /// of what is stored to arguments `cotangents`.
  Activity(triton::FuncOp kernel, const ArgumentSet &wanted,
           const ArgumentSet &cotangents);
  /// The same of a function without memory: which values lie between
  /// `independent` and `dependent`.
  Activity(triton::FuncOp function, ValueRange independent,
           ValueRange dependent);

  /// Fails at the first operation through which a derivative cannot be
  /// followed, with an error there.
  LogicalResult check();

  bool isVaried(Value value) const { return varied.contains(value); }
  bool isUseful(Value value) const { return useful.contains(value); }
  bool isActive(Value value) const {
    return isVaried(value) && isUseful(value);
  }

  /// Whether loads from the argument, or stores to it, take part.
  bool isWanted(unsigned argument) const { return wanted.contains(argument); }
  bool hasCotangent(unsigned argument) const {
    return cotangents.contains(argument);
  }
  /// Whether derivatives pass through the argument's memory within the kernel:
  /// something active is stored there and loaded again.
  bool carries(unsigned argument) const { return carrying.contains(argument); }
  /// Whether `op` is a loop that only the forward can run (Synchronization.h).
  /// No derivative goes through it.
  bool isSpin(Operation *op) const {
    return memory.getSynchronization().isSpin(op);
  }
  /// Whether the backward has memory for the argument's gradient or cotangent,
  /// addressed like the argument.
  bool hasShadow(unsigned argument) const {
    return isWanted(argument) || hasCotangent(argument) || carries(argument);
  }

private:
  void propagateVaried();
  void propagateUseful();
  void findCarrying();
  void checkAccess(Operation *op);
  bool isHandedOn(Operation *read) const;
  void checkSpin(Operation *loop);
  void fail(Operation *op, const llvm::Twine &message);
  bool readsVaried(Operation *read) const;
  bool touchesUnknownMemory(Operation *op) const;
  bool markVaried(Value value);
  bool markUseful(Value value);

  triton::FuncOp kernel;
  MemoryFlow memory;
  ArgumentSet wanted, cotangents, carrying;
  llvm::DenseSet<Value> varied, useful;
  bool hasFailed = false;
};

/// Calls `flow` for each pair of values of which a loop or branch copies one to
/// the other (an initial value to a block argument, a yielded value to a
/// result), and for operands and results of a function with a derivative of its
/// own. False if `op` is none of these.
bool followFlow(Operation *op, llvm::function_ref<void(Value, Value)> flow);

/// Whether a derivative may flow through `op`, which is no loop or branch, from
/// `operand` to `result`. None does through an index (arg-max), a comparison, a
/// conversion to an integer or `stop_gradient`.
bool passesDerivative(Operation *op, Value operand, Value result);

/// The values that a loop or branch may copy to `value`; none if `value` is of
/// another kind.
std::optional<SmallVector<Value>> findHandedOn(Value value);

/// Whether an adjoint can belong to values of this type: floats and tiles of
/// floats.
bool isDifferentiable(Type type);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ACTIVITY_H
