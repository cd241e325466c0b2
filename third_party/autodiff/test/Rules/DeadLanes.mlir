// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// A selection after an exponential: where it is not taken, the exponential may
// be infinite. The selection is made once more, of the product.
// CHECK-LABEL: tt.func @selected_bwd(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]]
// CHECK: %[[D:.*]] = arith.select %arg2, %[[P]], %{{.*}}
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @selected(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %y = arith.select %c, %e, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So is the mask of a store.
// CHECK-LABEL: tt.func @stored_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0, %arg2, %{{.*}} :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 mask %arg2
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[X]]
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO:.*]] :
// CHECK: %[[S:.*]] = arith.select %[[Z]], %[[ZERO]], %[[P]]
// CHECK: arith.select %arg2, %[[S]], %{{.*}}
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %other = arith.constant 0xFF800000 : f32
  %x = tt.load %px, %c, %other : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  tt.store %py, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Finite factors cost nothing.
// CHECK-LABEL: tt.func @finite_bwd(
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @finite(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>,
                %c: i1) {
  %other = arith.constant 0.0 : f32
  %x = tt.load %px, %c, %other : !tt.ptr<f32>
  %w = tt.load %pw, %c : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Also of a mask that compares a number with zero.
// CHECK-LABEL: tt.func @compared_bwd(
// CHECK: %[[C:.*]] = arith.cmpf olt
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]]
// CHECK: %[[D:.*]] = arith.select %[[C]], %[[P]], %{{.*}}
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @compared(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %c = arith.cmpf olt, %x, %zero : f32
  %e = math.exp %x : f32
  %y = arith.select %c, %e, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A padding of −∞ that the exponential makes zero: the scale's gradient has
// 0·∞ there. What cannot be infinite (the scale, the exponential) is left alone.
// CHECK-LABEL: tt.func @padded_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[A:.*]] = tt.splat
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = arith.mulf %{{.*}}, %[[Y]]
// CHECK-NOT: arith.select
// CHECK: arith.mulf %[[T]], %[[A]]
// CHECK-NOT: arith.select
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[X]]
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: arith.select %[[Z]], %[[ZERO]], %[[P]]
// CHECK: tt.return
tt.func @padded(%px: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %py: !tt.ptr<f32>,
                %mask: tensor<16xi1>) {
  %other = arith.constant dense<0xFF800000> : tensor<16xf32>
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %base = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = tt.addptr %base, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %p, %mask, %other : tensor<16x!tt.ptr<f32>>
  %scale = tt.load %pa : !tt.ptr<f32>
  %a = tt.splat %scale : f32 -> tensor<16xf32>
  %z = arith.mulf %x, %a : tensor<16xf32>
  %e = math.exp %z : tensor<16xf32>
  %y = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tt.reduce.return %s : f32
  }) : (tensor<16xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
