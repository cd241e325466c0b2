// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-choose-residuals -canonicalize -cse | FileCheck %s

// y = z², rounded: the cotangent and the gradient are bfloat16, and so is what the
// cotangent is multiplied by.
// CHECK: autodiff.buffer 0 <saved "factor0" : bf16
// CHECK-LABEL: tt.func @square_fwd(
// CHECK: %[[Z:.*]] = "tt.reduce"
// CHECK: %[[TWICE:.*]] = arith.addf %[[Z]], %[[Z]]
// CHECK: %[[HALF:.*]] = arith.truncf %[[TWICE]] : tensor<64xf32> to tensor<64xbf16>
// CHECK: tt.store %{{.*}}, %[[HALF]]
// CHECK-LABEL: tt.func @square_bwd(
// CHECK-NOT: "tt.reduce"
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[F:.*]] = tt.load {{.*}} : tensor<64x!tt.ptr<bf16>>
// CHECK: %[[WIDE:.*]] = arith.extf %[[F]]
// CHECK: arith.mulf %[[T]], %[[WIDE]]
tt.func @square(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xh = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xh : tensor<64x64xbf16> to tensor<64x64xf32>
  %z = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %y = arith.mulf %z, %z : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// A gradient in float32 has more digits.
// CHECK: autodiff.buffer 0 <saved "saved0" : f32
// CHECK-LABEL: tt.func @digits_fwd(
tt.func @digits(%px: !tt.ptr<f32>, %py: !tt.ptr<bf16>) {
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
  %y = arith.mulf %z, %z : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// A cotangent that is zero stays zero, whatever the factor is (a pole).
// CHECK-LABEL: tt.func @pole_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[F:.*]] = tt.load {{.*}} : tensor<64x!tt.ptr<bf16>>
// CHECK: %[[WIDE:.*]] = arith.extf %[[F]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[T]], %[[WIDE]]
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO:.*]] :
// CHECK: arith.select %[[NONE]], %[[ZERO]], %[[PRODUCT]]
tt.func @pole(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xh = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xh : tensor<64x64xbf16> to tensor<64x64xf32>
  %z = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %y = math.log %z : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// Half precision has not the range of what it is computed with.
// CHECK: autodiff.buffer 0 <saved "saved0" : f32
// CHECK-LABEL: tt.func @narrow_fwd(
tt.func @narrow(%px: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
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
  %y = arith.mulf %z, %z : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// A factor for each of two cotangents takes as much as the sum itself.
// CHECK: autodiff.plan
// CHECK: <saved "saved0"
// CHECK-NOT: <saved "factor
tt.func @two(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>, %pv: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xh = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xh : tensor<64x64xbf16> to tensor<64x64xf32>
  %z = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %y = arith.mulf %z, %z : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  %vs = tt.splat %pv : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %vp = tt.addptr %vs, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %e = math.sin %z : tensor<64xf32>
  %eh = arith.truncf %e : tensor<64xf32> to tensor<64xbf16>
  tt.store %vp, %eh : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// Where a sum over lanes comes between, a cotangent is not multiplied by one
// number: the sum is saved as it is.
// CHECK: autodiff.buffer 0 <saved "saved0" : f32
// CHECK-LABEL: tt.func @lanes_fwd(
// CHECK-NOT: <saved "factor
tt.func @lanes(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xh = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xh : tensor<64x64xbf16> to tensor<64x64xf32>
  %z = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %q = arith.mulf %z, %z : tensor<64xf32>
  %s = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %w = tt.splat %s : f32 -> tensor<64xf32>
  %y = arith.mulf %z, %w : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %h = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %h : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// What says where a cotangent is, is no factor of it.
// CHECK-LABEL: tt.func @masked_fwd(
// CHECK-NOT: factor
// CHECK-LABEL: tt.func @masked_bwd(
// CHECK: autodiff.upstream {{.*}} mask
tt.func @masked(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
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
  %xx = arith.mulf %x, %x : tensor<64x64xf32>
  %w = "tt.reduce"(%xx) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u = math.exp %z : tensor<64xf32>
  %v = math.exp %w : tensor<64xf32>
  %positive = arith.cmpf ogt, %u, %v : tensor<64xf32>
  %xi = tt.splat %px : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %xip = tt.addptr %xi, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %first = tt.load %xip : tensor<64x!tt.ptr<f32>>
  %y = arith.addf %first, %first : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %yp, %y, %positive : tensor<64x!tt.ptr<f32>>
  tt.return
}
