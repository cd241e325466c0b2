// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mask-loads -canonicalize -cse | FileCheck %s

// Positions behind the end are loaded, but not stored: the copy that is
// differentiated does not read them.
// CHECK-LABEL: tt.func @tail(
// CHECK: tt.load %{{[0-9]+}} {autodiff.site
// CHECK-LABEL: tt.func @tail_framed(
// CHECK: %[[END:.*]] = tt.splat %arg2
// CHECK: %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : tensor<8xi32>
// CHECK: tt.load %{{[0-9]+}}, %[[MASK]], %{{.*}} {autodiff.site
tt.func @tail(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %end = tt.splat %n : i32 -> tensor<8xi32>
  %mask = arith.cmpi slt, %range, %end : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %x, %mask : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// All that is read is stored.
// CHECK-LABEL: tt.func @all(
// CHECK-NOT: tt.func
tt.func @all(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %x : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A selection leaves out what a lane of data says: that is not known of memory.
// CHECK-LABEL: tt.func @data(
// CHECK-NOT: tt.func
tt.func @data(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %c = arith.cmpf ogt, %x, %zero : tensor<8xf32>
  %y = arith.select %c, %x, %zero : tensor<8xi1>, tensor<8xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %y : tensor<8x!tt.ptr<f32>>
  tt.return
}
