// RUN: triton-autodiff-opt %s -loop-invariant-code-motion | FileCheck %s

// Pure operations leave the loop, reductions included; reads stay, since the
// loop may run no times and its addresses be bad.
// CHECK-LABEL: @loop
// CHECK: tt.get_program_id x
// CHECK: "tt.reduce"
// CHECK: tt.splat
// CHECK: scf.for
// CHECK-NEXT: tt.load
// CHECK: tt.atomic_rmw
// CHECK: scf.yield
tt.func @loop(%n: i32, %p: !tt.ptr<f32>, %a: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> (tensor<16xf32>) : i32 {
    %id = tt.get_program_id x : i32
    %q = tt.addptr %p, %id : !tt.ptr<f32>, i32
    %sum = "tt.reduce"(%a) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tt.reduce.return %s : f32
    }) : (tensor<16xf32>) -> f32
    %t = tt.splat %sum : f32 -> tensor<16xf32>
    %v = tt.load %q : !tt.ptr<f32>
    %w = tt.splat %v : f32 -> tensor<16xf32>
    %u = arith.addf %t, %w : tensor<16xf32>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %sum : (!tt.ptr<f32>, f32) -> f32
    %next = arith.addf %acc, %u : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tt.return %r : tensor<16xf32>
}
