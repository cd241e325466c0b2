// RUN: triton-autodiff-opt -autodiff-verify-writes -split-input-file -verify-diagnostics %s

// A gradient without a check or a reach.
module {
  autodiff.plan {
    autodiff.gradient <store 0 : f32 init = zero returned = true>
    autodiff.launch @k_bwd
  }
  tt.func @k_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>}) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // expected-error @below {{internal error: nothing says that what a derived kernel writes here is inside of the memory for it: gradient 0}}
    tt.store %p, %one : !tt.ptr<f32>
    tt.return
  }
}

// -----

// What is confined has a mask.
module {
  autodiff.plan {
    autodiff.gradient <atomic 0 : f32 init = zero returned = true confined = sums margin = 0>
    autodiff.launch @k_bwd
  }
  tt.func @k_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>}, %m: i1) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %one, %m : (!tt.ptr<f32>, f32, i1) -> f32
    // expected-error @below {{is inside of the memory for it: gradient 0}}
    %1 = tt.atomic_rmw fadd, relaxed, gpu, %p, %one : (!tt.ptr<f32>, f32) -> f32
    tt.return
  }
}

// -----

// Behind the end of a partial sum is the next one: room is no answer.
module {
  autodiff.plan {
    autodiff.gradient <partial 0 : f32 init = none partials 4 returned = true checks [<distinct 0 at 0 []>]>
    autodiff.launch @k_bwd
  }
  tt.func @k_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>}) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // expected-error @below {{is inside of the memory for it: gradient 0}}
    tt.store %p, %one : !tt.ptr<f32>
    tt.return
  }
}

// -----

// The caller's tensors are the caller's.
module {
  autodiff.plan {
    autodiff.launch @k_bwd
  }
  tt.func @k_bwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>}, %g: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 1>}, %c: i1) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    %p = arith.select %c, %x, %g : !tt.ptr<f32>
    // expected-error @below {{is inside of the memory for it: argument 0}}
    tt.store %p, %one : !tt.ptr<f32>
    tt.return
  }
}

// -----

module {
  autodiff.plan {
    autodiff.launch @k_bwd
  }
  tt.func @k_bwd(%at: i64 {autodiff.operand = #autodiff.operand<argument 0>}) attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    %p = tt.int_to_ptr %at : i64 -> !tt.ptr<f32>
    // expected-error @below {{is inside of the memory for it: memory that nobody knows}}
    tt.store %p, %one : !tt.ptr<f32>
    tt.return
  }
}
