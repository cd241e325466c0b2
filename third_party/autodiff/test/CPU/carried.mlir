// RUN: triton-autodiff-opt %s -triton-to-linalg -one-shot-bufferize -split-input-file | FileCheck %s

// Tiles that a loop swaps are copied before one overwrites the other.

// CHECK-LABEL: func.func @swap
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (memref<16xf32>, memref<16xf32>)
// CHECK-DAG: memref.copy %[[B]], %[[T:.*]] :
// CHECK-DAG: memref.copy %[[A]], %[[U:.*]] :
// CHECK: memref.copy %[[T]], %[[A]]
// CHECK: memref.copy %[[U]], %[[B]]
tt.func public @swap(%x: tensor<16x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    scf.yield %b, %a : tensor<16xf32>, tensor<16xf32>
  }
  tt.store %x, %r#0 : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// The running maximum's old value is read after the new one is computed, so the
// new one has a place of its own until the iteration ends.

// CHECK-LABEL: func.func @rescaled
// CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<16xf32>
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK: linalg.generic {{.*}} outs(%[[L]] : memref<16xf32>)
// CHECK: memref.copy %{{.*}}, %[[M]]
tt.func public @rescaled(%x: tensor<16x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero, %l = %zero) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    %v = tt.load %x : tensor<16x!tt.ptr<f32>>
    %e = math.exp %v : tensor<16xf32>
    %new = arith.maxnumf %m, %e : tensor<16xf32>
    %d = arith.subf %m, %new : tensor<16xf32>
    %alpha = math.exp2 %d : tensor<16xf32>
    %ls = arith.mulf %l, %alpha : tensor<16xf32>
    %sum = arith.addf %ls, %e : tensor<16xf32>
    scf.yield %new, %sum : tensor<16xf32>, tensor<16xf32>
  }
  tt.store %x, %r#1 : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// The condition forwards less than the loop carries, and something else: each
// has one place throughout.

// CHECK-LABEL: func.func @forwarded
// CHECK: %{{.*}}:3 = scf.while (%[[S:[^ ]+]] = %{{[^ ]+}}, %{{[^ ]+}} = %{{[^ ]+}}, %[[E:[^ ]+]] = %{{[^ ]+}}) : (memref<16xf32>, i32, memref<16xf32>)
// CHECK: math.exp
// CHECK: memref.copy %{{.*}}, %[[E]]
// CHECK: scf.condition(%{{.*}}) %[[S]], %{{.*}}, %[[E]]
// CHECK: ^bb0(%[[OLD:.*]]: memref<16xf32>, %{{.*}}: i32, %[[NEW:.*]]: memref<16xf32>):
// CHECK: memref.copy %{{.*}}, %[[OLD]]
// CHECK: scf.yield %[[OLD]], %{{.*}}, %[[NEW]]
tt.func public @forwarded(%x: tensor<16x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = tt.load %x : tensor<16x!tt.ptr<f32>>
  %r = scf.while (%s = %s0, %i = %c0) : (tensor<16xf32>, i32) -> tensor<16xf32> {
    %e = math.exp %s : tensor<16xf32>
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %e : tensor<16xf32>
  } do {
  ^bb0(%e: tensor<16xf32>):
    scf.yield %e, %n : tensor<16xf32>, i32
  }
  tt.store %x, %r : tensor<16x!tt.ptr<f32>>
  tt.return
}
