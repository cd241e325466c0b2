//===- Passes.td - Passes of the CPU backend -----------------*- tablegen -*-===//

#ifndef AUTODIFF_CPU_PASSES_TD
#define AUTODIFF_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def HoistAllocations : Pass<"cpu-hoist-allocations", "::mlir::func::FuncOp"> {
  let summary = "Give every buffer of a kernel a fixed place on the stack";
  let description = [{
    Every allocation becomes an `alloca` at the start of the function. A buffer
    lives at most as long as one iteration of the loop around it (loops carry
    buffers in place), so one place serves all iterations.
  }];
  let dependentDialects = ["memref::MemRefDialect"];
}

#endif // AUTODIFF_CPU_PASSES_TD
