// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-round-late | FileCheck %s

// A row is rounded for each tile of it, behind what repeats it.
// CHECK-LABEL: tt.func @repeated(
// CHECK: %[[X:.*]] = tt.load
// CHECK-NOT: arith.truncf
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %[[X]] {axis = 1 : i32} : tensor<8xf64> -> tensor<8x1xf64>
// CHECK: %[[TILE:.*]] = tt.broadcast %[[COLUMN]] : tensor<8x1xf64> -> tensor<8x4xf64>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[TILE]] : tensor<8x4xf64> to tensor<8x4xf32>
// CHECK: tt.store %{{.*}}, %[[ROUNDED]]
// CHECK: %[[ROW:.*]] = arith.truncf %[[X]] : tensor<8xf64> to tensor<8xf32>
// CHECK: tt.store %{{.*}}, %[[ROW]]
tt.func @repeated(%px: !tt.ptr<f64>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f64> -> tensor<8x!tt.ptr<f64>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f64>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f64>>
  %r = arith.truncf %x : tensor<8xf64> to tensor<8xf32>
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  %b = tt.broadcast %e : tensor<8x1xf32> -> tensor<8x4xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x4x!tt.ptr<f32>>
  %3 = tt.expand_dims %range {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %4 = tt.broadcast %3 : tensor<8x1xi32> -> tensor<8x4xi32>
  %5 = tt.addptr %2, %4 : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>
  tt.store %5, %b : tensor<8x4x!tt.ptr<f32>>
  %6 = tt.splat %pz : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %7 = tt.addptr %6, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %7, %r : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// In a loop, once for each iteration. What is no float64 stays.
// CHECK-LABEL: tt.func @iterations(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[HALF:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK: scf.for
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK: tt.store %{{.*}}, %[[ROUNDED]]
// CHECK: tt.store %{{.*}}, %[[HALF]]
tt.func @iterations(%px: !tt.ptr<f64>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f64>
  %r = arith.truncf %x : f64 to f32
  %w = tt.load %pw : !tt.ptr<f32>
  %h = arith.truncf %w : f32 to f16
  scf.for %i = %c0 to %n step %c1 : i32 {
    %y = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %y, %r : !tt.ptr<f32>
    %z = tt.addptr %pz, %i : !tt.ptr<f16>, i32
    tt.store %z, %h : !tt.ptr<f16>
  }
  tt.return
}
