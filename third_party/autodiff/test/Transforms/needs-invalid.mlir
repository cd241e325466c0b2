// What a pass needs of a module, and what it says where that is missing.
// RUN: split-file %s %t
// RUN: triton-autodiff-opt %t/rewrites-kernel.mlir -split-input-file -verify-diagnostics -autodiff-spread-loops
// RUN: triton-autodiff-opt %t/rewrites-copy.mlir -split-input-file -verify-diagnostics -autodiff-reverse
// RUN: triton-autodiff-opt %t/looks-at-backward.mlir -split-input-file -verify-diagnostics -autodiff-persist
// RUN: triton-autodiff-opt %t/same-loops.mlir -verify-diagnostics -autodiff-rescale-accumulators
// RUN: triton-autodiff-opt %t/taped.mlir -split-input-file -verify-diagnostics -autodiff-save-records
// RUN: triton-autodiff-opt %t/unsized.mlir -verify-diagnostics -autodiff-pass-sizes

//--- rewrites-kernel.mlir

// expected-error @+1 {{autodiff-spread-loops needs a kernel: there is no public function to differentiate}}
module {}

// -----

module {
  tt.func public @first() { tt.return }
  // expected-error @+1 {{autodiff-spread-loops needs one kernel, but there is another public function: first}}
  tt.func public @second() { tt.return }
}

// -----

module {
  // expected-error @+1 {{autodiff-spread-loops needs a kernel of one block (autodiff-normalize makes it so)}}
  tt.func public @early(%c: i1) {
    cf.cond_br %c, ^exit, ^body
  ^exit:
    tt.return
  ^body:
    tt.return
  }
}

// -----

module {
  tt.func public @kernel() { tt.return }
  // expected-error @+1 {{autodiff-spread-loops needs to come before what derives this kernel (`count`)}}
  tt.func public @kernel_count() attributes {autodiff.role = "count"} { tt.return }
}

//--- rewrites-copy.mlir

tt.func public @unnumbered(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  // expected-error @+1 {{autodiff-reverse needs accesses with numbers (autodiff-normalize gives them)}}
  %v = tt.load %x : !tt.ptr<f32>
  tt.store %y, %v : !tt.ptr<f32>
  tt.return
}

// -----

module {
  tt.func public @kernel() { tt.return }
  // expected-error @+1 {{autodiff-reverse needs to come before what derives this kernel (`backward`)}}
  tt.func public @kernel_bwd() attributes {autodiff.role = "backward"} { tt.return }
}

//--- looks-at-backward.mlir

// expected-error @+1 {{autodiff-persist needs a backward kernel (autodiff-reverse makes it)}}
module {
  tt.func public @kernel() { tt.return }
}

// -----

module {
  tt.func public @kernel(%x: !tt.ptr<f32>) { tt.return }
  // expected-error @+1 {{autodiff-persist needs a backward kernel of one block}}
  tt.func private @kernel_bwd(!tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>})
      attributes {autodiff.role = "backward"}
}

// -----

module {
  tt.func public @kernel(%x: !tt.ptr<f32>) { tt.return }
  // expected-error @+1 {{autodiff-persist needs derived kernels that say what their arguments are (`autodiff.operand`): argument 0 does not}}
  tt.func public @kernel_bwd(%x: !tt.ptr<f32>) attributes {autodiff.role = "backward"} { tt.return }
}

// -----

module {
  tt.func public @kernel(%x: !tt.ptr<f32>) { tt.return }
  // expected-error @+1 {{autodiff-persist needs derived kernels with arguments of its kernel: argument 0 is of none}}
  tt.func public @kernel_bwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 1>})
      attributes {autodiff.role = "backward"} { tt.return }
}

// -----

// The load has been there when the backward was derived.
module {
  tt.func public @kernel(%x: !tt.ptr<f32>) { tt.return }
  tt.func public @kernel_bwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // expected-error @+1 {{autodiff-persist needs the adjoint of an access that the kernel has}}
    autodiff.accumulate %x, %one {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
}

// -----

// What an atomic operation reads is not differentiated.
module {
  tt.func public @kernel(%x: !tt.ptr<f32>) {
    %true = arith.constant true
    %one = arith.constant 1.0 : f32
    %v = tt.atomic_rmw fadd, relaxed, gpu, %x, %one, %true {autodiff.site = 0 : i32} : (!tt.ptr<f32>, f32, i1) -> f32
    tt.return
  }
  tt.func public @kernel_bwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // expected-error @+1 {{autodiff-persist needs the adjoint of an access that the kernel has}}
    autodiff.accumulate %x, %one {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
}

// -----

module {
  tt.func public @kernel(%n: i32, %p: !tt.ptr<f32>) {
    %x = tt.load %p {autodiff.site = 0 : i32} : !tt.ptr<f32>
    tt.return
  }
  tt.func public @kernel_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // expected-error @+1 {{autodiff-persist needs backward kernels with all arguments of its kernel, in order (autodiff-trim-operands comes last)}}
    autodiff.accumulate %p, %one {argument = 1 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
}

//--- same-loops.mlir

module {
  tt.func public @kernel(%n: i32, %step: i32) {
    scf.for %i = %step to %n step %step : i32 {}
    tt.return
  }
  // expected-error @+1 {{autodiff-rescale-accumulators needs a copy with the loops of its kernel, of which a pass has rewritten some}}
  tt.func public @kernel_framed(%n: i32, %step: i32)
      attributes {autodiff.role = "differentiated"} { tt.return }
}

//--- taped.mlir

module {
  tt.func public @kernel() { tt.return }
  tt.func public @kernel_bwd() attributes {autodiff.role = "backward"} {
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{autodiff-save-records needs tapes with a place (autodiff-place-tapes gives them one)}}
    autodiff.push %zero at %zero tape = 0 of <1> : i32, i32
    tt.return
  }
}

// -----

module {
  tt.func public @kernel() { tt.return }
  tt.func public @kernel_bwd() attributes {autodiff.role = "backward"} {
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{autodiff-save-records needs a record that the kernel makes}}
    %x = autodiff.pop %zero tape = 0 : i32 -> f32
    tt.return
  }
}

// -----

module {
  tt.func public @kernel() { tt.return }
  tt.func public @kernel_bwd() attributes {autodiff.role = "backward"} { tt.return }
  // expected-error @+1 {{autodiff-save-records needs one backward kernel, before any schedule, but here is another one}}
  tt.func public @kernel_bwd_interchanged0() attributes {autodiff.role = "backward"} { tt.return }
}

//--- unsized.mlir

module {
  tt.func public @kernel() { tt.return }
  // expected-error @+1 {{autodiff-pass-sizes needs to come once, and there are sizes already}}
  tt.func public @kernel_bwd(%n: i64 {autodiff.operand = #autodiff.operand<size 0>})
      attributes {autodiff.role = "backward"} { tt.return }
}
