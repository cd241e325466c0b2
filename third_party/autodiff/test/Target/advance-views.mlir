// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-advance-views))' %s | FileCheck %s
// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-advance-views,autodiff-advance-views))' %s | FileCheck %s

// A row is expanded before it is used as a row. Views of views follow, views of
// the same keep their order.
// CHECK-LABEL: tt.func @row(
// CHECK: %[[E:.*]] = math.exp %arg0
// CHECK-NEXT: %[[ROW:.*]] = tt.expand_dims %[[E]] {axis = 0 : i32}
// CHECK-NEXT: tt.expand_dims %[[ROW]] {axis = 2 : i32}
// CHECK-NEXT: tt.expand_dims %[[E]] {axis = 1 : i32}
// CHECK-NEXT: math.sin %[[E]]
// CHECK-NEXT: math.cos %[[E]]
tt.func @row(%a: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<1x16x1xf32>, tensor<16x1xf32>) {
  %e = math.exp %a : tensor<16xf32>
  %s = math.sin %e : tensor<16xf32>
  %r = tt.expand_dims %e {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  %c = math.cos %e : tensor<16xf32>
  %q = tt.expand_dims %e {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %t = tt.expand_dims %r {axis = 2 : i32} : tensor<1x16xf32> -> tensor<1x16x1xf32>
  tt.return %s, %c, %t, %q : tensor<16xf32>, tensor<16xf32>, tensor<1x16x1xf32>, tensor<16x1xf32>
}

// Out of the block that uses it, behind several results, and to the beginning of
// the block that is handed the operands.
// CHECK-LABEL: tt.func @blocks(
// CHECK-NEXT: %[[A:.*]] = tt.expand_dims %arg0
// CHECK-NEXT: %[[B:.*]] = tt.expand_dims %arg1
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK-SAME: iter_args(%[[X:.*]] = %arg0, %[[Y:.*]] = %arg1)
// CHECK-NEXT: tt.expand_dims %[[X]]
// CHECK-NEXT: tt.expand_dims %[[Y]]
// CHECK-NEXT: math.exp %[[X]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: tt.expand_dims %[[R]]#0
// CHECK-NEXT: tt.expand_dims %[[R]]#1
// CHECK-NEXT: arith.addf %[[R]]#0, %[[R]]#1
tt.func @blocks(%a: tensor<16xf32>, %b: tensor<16xf32>, %p: tensor<1x16x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    %e = math.exp %x : tensor<16xf32>
    %v = tt.expand_dims %a {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
    tt.store %p, %v : tensor<1x16x!tt.ptr<f32>>
    %u = tt.expand_dims %x {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
    tt.store %p, %u : tensor<1x16x!tt.ptr<f32>>
    %w = tt.expand_dims %b {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
    tt.store %p, %w : tensor<1x16x!tt.ptr<f32>>
    %z = tt.expand_dims %y {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
    tt.store %p, %z : tensor<1x16x!tt.ptr<f32>>
    scf.yield %e, %x : tensor<16xf32>, tensor<16xf32>
  }
  %s = arith.addf %r#0, %r#1 : tensor<16xf32>
  %v = tt.expand_dims %r#0 {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  tt.store %p, %v : tensor<1x16x!tt.ptr<f32>>
  %w = tt.expand_dims %r#1 {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  tt.store %p, %w : tensor<1x16x!tt.ptr<f32>>
  %t = tt.expand_dims %s {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  tt.store %p, %t : tensor<1x16x!tt.ptr<f32>>
  tt.return
}

// A pair of tiles is split behind where it is computed.
// CHECK-LABEL: tt.func @split(
// CHECK: %[[E:.*]] = math.exp
// CHECK-NEXT: tt.split %[[E]]
// CHECK-NEXT: math.sin %[[E]]
tt.func @split(%a: tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = math.exp %a : tensor<8x2xf32>
  %s = math.sin %e : tensor<8x2xf32>
  %l, %r = tt.split %e : tensor<8x2xf32> -> tensor<8xf32>
  tt.return %s, %l, %r : tensor<8x2xf32>, tensor<8xf32>, tensor<8xf32>
}
