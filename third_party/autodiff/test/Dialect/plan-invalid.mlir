// RUN: triton-autodiff-opt -split-input-file -verify-diagnostics %s

autodiff.plan {
  // expected-error @below {{is of a kernel that the module does not have: @gone}}
  autodiff.launch @gone
}

// -----

autodiff.plan {
  // expected-error @below {{is in place of a kernel that the module does not have: @gone}}
  autodiff.launch @wide in_place_of @gone when <arg0>
}
tt.func @wide() { tt.return }

// -----

autodiff.plan {
  // expected-error @below {{is in place of another one at no time}}
  autodiff.launch @wide in_place_of @bwd
  autodiff.launch @bwd
}
tt.func @wide() { tt.return }
tt.func @bwd() { tt.return }

// -----

autodiff.plan {
  // expected-error @below {{needs a grid of three numbers}}
  autodiff.launch @bwd grid [grid0]
}
tt.func @bwd() { tt.return }

// -----

autodiff.plan {
  // expected-error @below {{needs a grid of three numbers}}
  autodiff.rearranged <[grid0]>
}

// -----

autodiff.plan {
  // expected-error @below {{has an option that is no integer: "num_warps"}}
  autodiff.launch @bwd options {num_warps = "four"}
}
tt.func @bwd() { tt.return }

// -----

autodiff.plan {
  autodiff.launch @bwd
  // expected-error @below {{repeats what this plan says already}}
  autodiff.launch @bwd grid [1, 1, 1]
}
tt.func @bwd() { tt.return }

// -----

autodiff.plan {
  autodiff.buffer 0 <tape "tape0" : f32, 8>
  // expected-error @below {{repeats what this plan says already}}
  autodiff.buffer 0 <saved "saved0" : f32, 8>
}

// -----

autodiff.plan {
  // expected-error @below {{with an operand that the plan does not describe: #autodiff.operand<buffer 1>}}
  autodiff.launch @bwd
  autodiff.buffer 0 <tape "tape0" : f32, 8>
}
tt.func @bwd(%tape: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 1>}) {
  tt.return
}

// -----

autodiff.plan {}
// expected-error @below {{is the second one of its module}}
autodiff.plan {}

// -----

autodiff.plan {
  // expected-error @below {{is no item of a plan}}
  arith.constant 0 : i32
}

// -----

tt.func @kernel() {
  // expected-error @below {{expects parent op 'autodiff.plan'}}
  autodiff.assume <arg0>
  tt.return
}
