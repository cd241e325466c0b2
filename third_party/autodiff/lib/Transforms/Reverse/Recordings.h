//===- Recordings.h - What a backward records and reads back ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// A tape. One without a push is filled by the forward.
struct Recording {
  PushOp push;
  SmallVector<PopOp> pops;

  /// The loop that records; null for what the forward records.
  Operation *loop() {
    return push ? push->getParentOfType<LoopLikeOpInterface>().getOperation()
                : nullptr;
  }
};

/// Tapes by number.
using Recordings = llvm::MapVector<unsigned, Recording>;

/// The tapes of a backward that are read. Others go, and what only they needed,
/// which may be what another tape is read for. `run` is the calling pass's way
/// to run others.
FailureOr<Recordings>
collectRead(triton::FuncOp backward,
            llvm::function_ref<LogicalResult(OpPassManager &)> run);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H
