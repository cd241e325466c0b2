//===- MemoryFlow.h - What a kernel reads of its own stores -----*- C++ -*-===//
//
// A program may load what it, in an earlier operation or iteration, has stored
// itself: a recurrence through memory, a buffer that is updated in place, a
// scratch row. (What other programs store meanwhile is a race in the primal, or
// something that orders them, see Synchronization.h.)
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_MEMORYFLOW_H
#define AUTODIFF_ANALYSIS_MEMORYFLOW_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

class MemoryFlow {
public:
  /// Pairs of integers that are equal in a launch.
  using Equalities = llvm::SmallVector<std::pair<ScalarExpr, ScalarExpr>>;

  /// If the tensors passed for two arguments share memory, loads through `read`
  /// may see what is stored through `written`; not so if the tensors start at
  /// the same address and all of `unless`, if there is any, hold.
  struct Hazard {
    unsigned written, read;
    std::optional<Equalities> unless;
  };

  explicit MemoryFlow(triton::FuncOp kernel);

  /// The stores and atomics whose effect `read`, a load or an atomic, may see.
  llvm::ArrayRef<Operation *> getWritesSeenBy(Operation *read) const;
  /// The loads and atomics that may see the effect of `write`.
  llvm::ArrayRef<Operation *> getReadsOf(Operation *write) const;

  /// Whether `op`, run once more after the kernel, gives what it gave: it does
  /// not read what the kernel changes and has no effect itself.
  bool isRepeatable(Operation *op) const;

  llvm::ArrayRef<Hazard> getHazards() const { return hazards; }

private:
  void addHazard(Hazard hazard);

  llvm::DenseMap<Operation *, llvm::SmallVector<Operation *>> writes, reads;
  llvm::SmallVector<Hazard> hazards;
};

/// Whether `later`, or another time `earlier` itself, can run after `earlier`
/// in one program.
bool mayRunAfter(Operation *later, Operation *earlier);

/// The float or integer that a store or atomic operation writes; null for other
/// operations.
Value getWrittenValue(Operation *op);

/// Whether `op` leaves one of the values written, or the earlier content, in
/// memory, bit for bit (max, min, exchange): its bits may as well be integers.
bool selectsContent(triton::AtomicRMWOp op);

/// Whether an atomic addition hands on nothing of what others have added.
bool isBlindSum(triton::AtomicRMWOp op);

/// `value` before its bits, or what it points to, were given another type.
Value withoutBitcast(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_MEMORYFLOW_H
