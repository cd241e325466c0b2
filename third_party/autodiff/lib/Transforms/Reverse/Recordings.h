//===- Recordings.h - What a backward records and reads back ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// A tape, the buffer of a recorded value: its push and its pops. The forward
/// fills a tape without a push.
struct Recording {
  PushOp push;
  SmallVector<PopOp> pops;

  /// The loop around the push; null if there is no push.
  Operation *loop() {
    return push ? push->getParentOfType<LoopLikeOpInterface>().getOperation()
                : nullptr;
  }
};

/// Tapes by number.
using Recordings = llvm::MapVector<unsigned, Recording>;

/// The tapes of a backward that are read. Other tapes are removed, with
/// operations that only they needed; these may include the pops of further
/// tapes. `run` is how the calling pass runs other passes.
FailureOr<Recordings>
collectRead(triton::FuncOp backward,
            llvm::function_ref<LogicalResult(OpPassManager &)> run);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_RECORDINGS_H
