//===- MemoryFlow.h - What a kernel reads of its own stores -----*- C++ -*-===//
//
// A program may load what it has stored itself, in an earlier operation or
// iteration: a recurrence through memory, a buffer that is updated in place, a
// scratch row. What other programs store meanwhile is a race in the user's
// kernel, unless programs wait for each other (Synchronization.h). Then a load
// may see whatever the kernel stores.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_MEMORYFLOW_H
#define AUTODIFF_ANALYSIS_MEMORYFLOW_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/Synchronization.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

class MemoryFlow {
public:
  /// Pairs of integers that are equal in a launch.
  using Equalities = llvm::SmallVector<std::pair<ScalarExpr, ScalarExpr>>;

  /// A pair of arguments: if their tensors share memory, loads through `read`
  /// may see what is stored through `written`. If `unless` has a value, they do
  /// not if the tensors start at the same address and all its equalities hold.
  struct Hazard {
    unsigned written, read;
    std::optional<Equalities> unless;
  };

  explicit MemoryFlow(triton::FuncOp kernel);

  /// The stores and atomics whose effect `read`, a load or an atomic, may see.
  llvm::ArrayRef<Operation *> getWritesSeenBy(Operation *read) const;
  /// The loads and atomics that may see the effect of `write`.
  llvm::ArrayRef<Operation *> getReadsOf(Operation *write) const;

  /// Whether `op` has the same result if it is run again after the kernel: it
  /// reads nothing that the kernel changes, has no effect itself, and does not
  /// wait for other programs. What is in a loop that does belongs to the loop.
  bool isRepeatable(Operation *op) const;

  const Synchronization &getSynchronization() const { return synchronization; }

  llvm::ArrayRef<Hazard> getHazards() const { return hazards; }

private:
  void addHazard(Hazard hazard);

  Synchronization synchronization;

  llvm::DenseMap<Operation *, llvm::SmallVector<Operation *>> writes, reads;
  llvm::SmallVector<Hazard> hazards;
};

/// Whether `later` can run after `earlier` in one program; for the same
/// operation, whether it can run twice.
bool mayRunAfter(Operation *later, Operation *earlier);

/// The float or integer that a store or atomic operation writes; null for other
/// operations.
Value getWrittenValue(Operation *op);

/// Whether `op` leaves either the operand or the old content in memory, bit for
/// bit (max, min, exchange). Then it makes no difference whether the bits are
/// floats or integers.
bool selectsContent(triton::AtomicRMWOp op);

/// Whether `op` is an atomic addition whose result, the old value, is not used.
bool isBlindSum(triton::AtomicRMWOp op);

/// The value that `value` is a bitcast of, if it is one.
Value withoutBitcast(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_MEMORYFLOW_H
