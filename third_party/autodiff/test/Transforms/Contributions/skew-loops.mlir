// RUN: triton-autodiff-opt --autodiff-differentiate='until=autodiff-skew-loops' -split-input-file %s | FileCheck %s

// y[t] = Σ x[t - k] w[k]: the lane of an element q takes what t = q + k
// contributes, as far as that exists and its mask lets it.
// CHECK-LABEL: tt.func @taps_bwd(
// CHECK: scf.for
// CHECK: %[[TAKEN:.*]] = arith.select
// CHECK: autodiff.accumulate %{{.*}}, %[[TAKEN]] mask %{{.*}} moved = [
// CHECK: tt.return
tt.func @taps(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %taps: i32) {
  %c16 = arith.constant 16 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %t = arith.addi %start, %lanes : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %inside = arith.cmpi slt, %t, %end : tensor<16xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %sum = scf.for %k = %c0 to %taps step %c1 iter_args(%s = %none) -> (tensor<16xf32>) : i32 {
    %far = tt.splat %k : i32 -> tensor<16xi32>
    %q = arith.subi %t, %far : tensor<16xi32>
    %after = arith.cmpi sge, %t, %far : tensor<16xi32>
    %both = arith.andi %inside, %after : tensor<16xi1>
    %qx = tt.addptr %xs, %q : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %qx, %both, %none : tensor<16x!tt.ptr<f32>>
    %qw = tt.addptr %pw, %k : !tt.ptr<f32>, i32
    %w = tt.load %qw : !tt.ptr<f32>
    %ws = tt.splat %w : f32 -> tensor<16xf32>
    %term = arith.mulf %x, %ws : tensor<16xf32>
    %next = arith.addf %s, %term : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %qy = tt.addptr %ys, %t : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %qy, %sum, %inside : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing leaves out what lies in front of the first element: no lane has it.
// CHECK-LABEL: tt.func @unmasked_bwd(
// CHECK-NOT: moved
// CHECK: autodiff.accumulate
// CHECK: tt.return
tt.func @unmasked(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %taps: i32) {
  %c16 = arith.constant 16 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %t = arith.addi %start, %lanes : tensor<16xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %sum = scf.for %k = %c0 to %taps step %c1 iter_args(%s = %none) -> (tensor<16xf32>) : i32 {
    %far = tt.splat %k : i32 -> tensor<16xi32>
    %q = arith.subi %t, %far : tensor<16xi32>
    %qx = tt.addptr %xs, %q : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
    %next = arith.addf %s, %x : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %qy = tt.addptr %ys, %t : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %qy, %sum : tensor<16x!tt.ptr<f32>>
  tt.return
}
