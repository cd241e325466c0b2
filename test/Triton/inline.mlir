// RUN: triton-autodiff-opt %s -inline | FileCheck %s

// CHECK-LABEL: tt.func public @kernel
// CHECK-NOT: tt.call
// CHECK: cf.cond_br
// CHECK: tt.call @branches
tt.func private @twice(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  tt.return %0 : f32
}

tt.func private @branches(%x: f32, %c: i1) -> f32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  tt.return %x : f32
^bb2:
  %0 = tt.call @twice(%x) : (f32) -> f32
  tt.return %0 : f32
}

// Inside of structured control flow there is no room for several blocks.
tt.func public @kernel(%p: !tt.ptr<f32>, %c: i1) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.call @branches(%0, %c) : (f32, i1) -> f32
  %2 = scf.if %c -> (f32) {
    %3 = tt.call @twice(%1) : (f32) -> f32
    scf.yield %3 : f32
  } else {
    %3 = tt.call @branches(%1, %c) : (f32, i1) -> f32
    scf.yield %3 : f32
  }
  tt.store %p, %2 : !tt.ptr<f32>
  tt.return
}
