// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// The branch of a combine function is a selection between both sides. Each side
// sees ones where it is not taken: its poles stay out of the other one's way.
// (It is of two elements, for it is not associative.)
// CHECK-LABEL: tt.func @branch_bwd(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[X]], %{{.*}} : tensor<2xf32>
// CHECK: %[[OTHERWISE:.*]] = arith.xori %[[LARGE]], %{{.*}} : tensor<2xi1>
// CHECK: arith.select %[[OTHERWISE]], %[[X]], %cst{{.*}} : tensor<2xi1>, tensor<2xf32>
tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = scf.if %c -> f32 {
      scf.yield %b : f32
    } else {
      %l = math.log %a : f32
      %m = arith.mulf %l, %b : f32
      scf.yield %m : f32
    }
    tt.reduce.return %s : f32
  }) : (tensor<2xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
