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

// Rows that nobody stores are dead in products and sums of their cotangents,
// too: what a softmax is there, 0/0, must not reach sums over rows.
// CHECK-LABEL: tt.func @softmax_bwd(
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[LIVE:.*]] = arith.ori
// CHECK: %[[KEPT:.*]] = arith.select %[[LIVE]], %[[E]], %{{.*}} : tensor<16x8xi1>
// CHECK: %[[T:.*]] = arith.mulf %{{.*}}, %[[KEPT]]
// CHECK: tt.reduce"(%[[T]]) <{axis = 0 : i32}>
tt.func @softmax(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %end = tt.splat %n : i32 -> tensor<16x1xi32>
  %live = arith.cmpi slt, %row, %end : tensor<16x1xi32>
  %mask = tt.broadcast %live : tensor<16x1xi1> -> tensor<16x8xi1>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<16x8x!tt.ptr<f32>>
  %column = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %1 = tt.splat %pw : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %2 = tt.addptr %1, %column : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %w = tt.load %2 : tensor<8x!tt.ptr<f32>>
  %w1 = tt.expand_dims %w {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %w2 = tt.broadcast %w1 : tensor<1x8xf32> -> tensor<16x8xf32>
  %z = arith.addf %x, %w2 : tensor<16x8xf32>
  %e = math.exp %z : tensor<16x8xf32>
  %l = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x8xf32>) -> tensor<16xf32>
  %l1 = tt.expand_dims %l {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %l2 = tt.broadcast %l1 : tensor<16x1xf32> -> tensor<16x8xf32>
  %y = arith.divf %e, %l2 : tensor<16x8xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>>
  tt.store %3, %y, %mask : tensor<16x8x!tt.ptr<f32>>
  tt.return
}

// -----

// A branch hands on where the cotangent is zero.
// CHECK-LABEL: tt.func @branch_bwd(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[LIVE:.*]] = arith.select %arg2, %arg3, %true : i1
// CHECK: %[[CT:.*]] = scf.if %arg2 -> (f32) {
// CHECK: arith.select %arg3, %[[T]], %{{.*}} : f32
// CHECK: } else {
// CHECK: scf.yield %[[T]] : f32
// CHECK: %[[P:.*]] = arith.mulf %[[CT]], %[[Y]]
// CHECK: %[[D:.*]] = arith.select %[[LIVE]], %[[P]], %{{.*}}
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %d: i1) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %y = scf.if %c -> f32 {
    %0 = arith.select %d, %e, %zero : f32
    scf.yield %0 : f32
  } else {
    scf.yield %e : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Lanes of halves go where the halves go.
// CHECK-LABEL: tt.func @halves_bwd(
// CHECK: %[[C:.*]] = tt.splat %arg2
// CHECK: %[[D:.*]] = tt.splat %arg3
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[LIVE:.*]] = tt.join %[[C]], %[[D]] : tensor<4xi1>
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[Y]]
// CHECK: arith.select %[[LIVE]], %[[P]], %{{.*}}
tt.func @halves(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %d: i1) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %c4 = tt.splat %c : i1 -> tensor<4xi1>
  %d4 = tt.splat %d : i1 -> tensor<4xi1>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x2x!tt.ptr<f32>>
  %e = math.exp %x : tensor<4x2xf32>
  %a, %b = tt.split %e : tensor<4x2xf32> -> tensor<4xf32>
  %1 = arith.select %c4, %a, %zero : tensor<4xi1>, tensor<4xf32>
  %2 = arith.select %d4, %b, %zero : tensor<4xi1>, tensor<4xf32>
  %y = arith.addf %1, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}
