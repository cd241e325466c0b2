//===- Passes.td - Passes of the CPU backend -----------------*- tablegen -*-===//

#ifndef AUTODIFF_CPU_PASSES_TD
#define AUTODIFF_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def HoistAllocations : Pass<"cpu-hoist-allocations", "::mlir::func::FuncOp"> {
  let summary = "Give every buffer of a kernel a fixed place on the stack";
  let description = [{
    Every allocation becomes an `alloca` at the start of the function. A buffer
    lives at most as long as one iteration of the loop around it (loops update
    carried buffers in place), so one place serves all iterations. Buffers of
    one type share a place if their lifetimes do not overlap.
  }];
  let dependentDialects = ["memref::MemRefDialect"];
}

def SeparateTiles : Pass<"cpu-separate-tiles", "::mlir::func::FuncOp"> {
  let summary = "Give every tile a buffer of its own";
  let description = [{
    Every use of an empty tensor gets its own allocation. Otherwise tiles that
    start from one empty tensor would be aliases, and bufferization compares all
    pairs of aliases. Common subexpressions have to be merged before.
  }];
  let dependentDialects = ["bufferization::BufferizationDialect"];
}

def SplitKernels : Pass<"cpu-split-kernels", "::mlir::ModuleOp"> {
  let summary = "Make several functions of a long kernel";
  let description = [{
    The time that LLVM takes for a function grows with the square of the number
    of its loops. In a block with more than `longest` of them, each loop nest
    becomes a function; equal nests share one. The values and buffers that it
    uses are its arguments. Buffers are on the kernel's stack and do not
    overlap.
  }];
  let options = [
    Option<"longest", "longest", "unsigned", "128",
           "Loops that a block may have">,
  ];
}

def IntegerBFloats : Pass<"cpu-integer-bfloats", "::mlir::ModuleOp"> {
  let summary = "Hold bf16 numbers as integers of their bits";
  let description = [{
    Conversions from and to bf16 are integer arithmetic already
    (`triton-to-linalg`); what is left only moves bits. LLVM may hold a bf16 in
    an f32 register between blocks, and round it again where it leaves that: by
    an instruction that makes zeros of subnormal numbers, on processors that
    have one. Without values of the type there is nothing to round. Arithmetic
    on bf16 is an error.
    Fault: rounded-bfloats.
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
}

def Promote : Pass<"autodiff-promote", "::mlir::ModuleOp"> {
  let summary = "Make a Triton kernel compute in double precision";
  let description = [{
    Every floating-point type becomes f64, in memory, too, and conversions
    between them are removed. Constants keep the values that the kernel rounded
    them to. Inline assembly becomes arithmetic, and its approximations become
    the exact functions. An operation that depends on the bits of a narrower
    type is an error. Finite differences of the result are what gradients of the
    kernel are compared with.
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect"];
}

#endif // AUTODIFF_CPU_PASSES_TD
