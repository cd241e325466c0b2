// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -autodiff-count-trips

tt.func public @chase(%flag: !tt.ptr<i32>) {
  %zero = arith.constant 0 : i32
  // expected-error @+1 {{autodiff-count-trips needs a loop that counts its iterations (autodiff-normalize makes it so)}}
  scf.while : () -> () {
    %v = tt.load %flag : !tt.ptr<i32>
    %go = arith.cmpi ne, %v, %zero : i32
    scf.condition(%go)
  } do {
    scf.yield
  }
  tt.return
}
