// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-mask-loads -autodiff-reverse -canonicalize -cse -autodiff-choose-residuals -canonicalize \
// RUN:   -cse | FileCheck %s

// The forward loads w without a mask, its copy where w counts: there the mask
// stands for the selection. A factor in the forward makes it once more.
// CHECK-LABEL: tt.func @scaled_fwd(
// CHECK: %[[W:.*]] = tt.load %{{[0-9]+}} {autodiff.site = 1
// CHECK: %[[FACTOR:.*]] = arith.select %{{.*}}, %[[W]], %{{.*}} : tensor<64xi1>, tensor<64xf32>
// CHECK: arith.mulf %{{.*}}, %[[FACTOR]] : tensor<64xf32>
// CHECK: tt.store %{{.*}} : tensor<64x!tt.ptr<bf16>>
// CHECK-LABEL: tt.func @scaled_bwd(
// CHECK-NOT: autodiff.narrowed
// CHECK: tt.return
tt.func @scaled(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<bf16>) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %ten = arith.constant dense<10> : tensor<64xi32>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %x = tt.load %xp : tensor<64x64x!tt.ptr<f32>>
  %z = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %s = math.sin %z : tensor<64xf32>
  %ws = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %wp = tt.addptr %ws, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %w = tt.load %wp : tensor<64x!tt.ptr<f32>>
  %counts = arith.cmpi slt, %i, %ten : tensor<64xi32>
  %v = arith.select %counts, %w, %zero : tensor<64xi1>, tensor<64xf32>
  %y = arith.mulf %s, %v : tensor<64xf32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}
