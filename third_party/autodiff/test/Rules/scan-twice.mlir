// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse | FileCheck %s

// A source that a running sum is not the only one to read: the contributions
// are added beside the reversed scan, not inside of its region.
// CHECK-LABEL: tt.func public @kernel
// CHECK: %[[S:.*]] = "tt.scan"(%{{.*}}) <{axis = 0 : i32, reverse = true}>
// CHECK: tt.scan.return
// CHECK-NEXT: }) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: arith.addf %{{.*}}, %[[S]] : tensor<4xf32>
tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.addptr %0, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %2 = tt.load %1 : tensor<4x!tt.ptr<f32>>
  %3 = "tt.scan"(%2) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = arith.addf %2, %3 : tensor<4xf32>
  %5 = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %6 = tt.addptr %5, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %6, %4 : tensor<4x!tt.ptr<f32>>
  tt.return
}
