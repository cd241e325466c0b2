// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

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

// -----

// So it is with the logarithm of a padding of zero.
// CHECK-LABEL: tt.func @logarithm_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[L:.*]] = math.log
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[T:.*]] = arith.mulf %{{.*}}, %[[E]]
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[L]]
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: arith.select %[[Z]], %[[ZERO]], %[[P]]
// CHECK: tt.return
tt.func @logarithm(%px: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %py: !tt.ptr<f32>, %mask: i1) {
  %x = tt.load %px, %mask : !tt.ptr<f32>
  %a = tt.load %pa : !tt.ptr<f32>
  %l = math.log %x : f32
  %z = arith.mulf %l, %a : f32
  %e = math.exp %z : f32
  tt.store %py, %e : !tt.ptr<f32>
  tt.return
}

// -----

// An exponential that divides may overflow where the quotient has long come to
// its limit.
// CHECK-LABEL: tt.func @sigmoid_bwd(
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 3.40282347E+38
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[D:.*]] = arith.addf %[[E]]
// CHECK: %[[Q:.*]] = arith.divf %{{.*}}, %[[D]]
// CHECK: %[[F:.*]] = arith.minimumf %[[E]], %[[LARGEST]]
// CHECK: arith.mulf %{{.*}}, %[[F]]
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @sigmoid(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %d = arith.addf %e, %one : f32
  %y = arith.divf %one, %d : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Not one of which a multiple is stored.
// CHECK-LABEL: tt.func @multiple_bwd(
// CHECK-NOT: arith.minimumf
// CHECK: tt.return
tt.func @multiple(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %d = arith.addf %e, %one : f32
  %y = arith.divf %e, %d : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
