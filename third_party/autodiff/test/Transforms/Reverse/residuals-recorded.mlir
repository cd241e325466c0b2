// RUN: %differentiate %s | FileCheck %s

// What the backward reads of what was recorded of memory, no forward can compute
// a factor of the cotangent with.
// CHECK-LABEL: tt.func @recorded_fwd(
// CHECK-NOT: autodiff.pop
// CHECK: tt.return
tt.func @recorded(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<bf16>) {
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
  %ws = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %wp = tt.addptr %ws, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %wp, %z : tensor<64x!tt.ptr<f32>>
  %last = arith.constant dense<63> : tensor<64xi32>
  %back = arith.subi %last, %i : tensor<64xi32>
  %wb = tt.addptr %ws, %back : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %w = tt.load %wb : tensor<64x!tt.ptr<f32>>
  %u = arith.addf %z, %w : tensor<64xf32>
  %y = arith.mulf %u, %u : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}
