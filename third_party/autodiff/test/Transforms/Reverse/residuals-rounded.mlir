// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-tape -autodiff-simplify \
// RUN:   -autodiff-residuals -canonicalize -cse | FileCheck %s

// The adjoint of a maximum looks for elements that are equal to it. The output
// holds a rounded one, which may equal none.
// CHECK-LABEL: tt.func @rounded_bwd(
// CHECK-NOT: tt.load %arg1
// CHECK: arith.cmpf oeq
tt.func @rounded(%px: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %e = math.exp %x : tensor<4xf32>
  %y = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  %r = arith.truncf %y : f32 to f16
  tt.store %py, %r : !tt.ptr<f16>
  tt.return
}

// -----

// The adjoint of a scan reads its neighbours, masked off or not.
// CHECK-LABEL: tt.func @masked_bwd(
// CHECK: tt.load %{{.*}} : tensor<4x!tt.ptr<f32>>
// CHECK-NOT: tt.load
// CHECK: autodiff.upstream
// CHECK-NOT: tt.load
// CHECK: tt.return
tt.func @masked(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i1) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %mask = tt.splat %m : i1 -> tensor<4xi1>
  tt.store %1, %y, %mask : tensor<4x!tt.ptr<f32>>
  tt.return
}
