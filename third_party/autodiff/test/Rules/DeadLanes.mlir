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
// CHECK: arith.select %arg2, %[[P]], %{{.*}}
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
