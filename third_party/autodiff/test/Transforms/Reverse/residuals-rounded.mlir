// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-place-tapes -autodiff-simplify \
// RUN:   -autodiff-choose-residuals -canonicalize -cse | FileCheck %s

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

// -----

// A weighted mean of numbers in float16, whose copy only multiplies its own
// gradient: it is read back.
// CHECK: autodiff.buffer 0 <saved "saved0" : f32, 1 * (grid2 * (grid1 * (grid0 * 1)))>
// CHECK-NOT: autodiff.buffer
// CHECK-LABEL: tt.func @mean_bwd(
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @mean(%px: !tt.ptr<f16>, %pv: !tt.ptr<f16>, %py: !tt.ptr<f16>, %gain: f32) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %xl = tt.load %xp : tensor<64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64xf16> to tensor<64xf32>
  %vs = tt.splat %pv : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %vp = tt.addptr %vs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %vl = tt.load %vp : tensor<64x64x!tt.ptr<f16>>
  %v = arith.extf %vl : tensor<64x64xf16> to tensor<64x64xf32>
  %p = math.exp %x : tensor<64xf32>
  %sum = "tt.reduce"(%p) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %pc = tt.expand_dims %p {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %ps = tt.broadcast %pc : tensor<64x1xf32> -> tensor<64x64xf32>
  %pv2 = arith.mulf %ps, %v : tensor<64x64xf32>
  %acc = "tt.reduce"(%pv2) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %sums = tt.splat %sum : f32 -> tensor<64xf32>
  %y = arith.divf %acc, %sums : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// The numbers are scaled first: there is no telling in which range they are.
// CHECK: autodiff.buffer 1 <saved "saved2" : f32, 1 * (grid2 * (grid1 * (grid0 * 64)))>
// CHECK-LABEL: tt.func @mean_of_products_bwd(
// CHECK: tt.return
tt.func @mean_of_products(%px: !tt.ptr<f16>, %pv: !tt.ptr<f16>, %py: !tt.ptr<f16>, %gain: f32) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %xl = tt.load %xp : tensor<64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64xf16> to tensor<64xf32>
  %vs = tt.splat %pv : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %vp = tt.addptr %vs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %vl = tt.load %vp : tensor<64x64x!tt.ptr<f16>>
  %v = arith.extf %vl : tensor<64x64xf16> to tensor<64x64xf32>
  %gains = tt.splat %gain : f32 -> tensor<64x64xf32>
  %u = arith.mulf %v, %gains : tensor<64x64xf32>
  %p = math.exp %x : tensor<64xf32>
  %sum = "tt.reduce"(%p) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %pc = tt.expand_dims %p {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %ps = tt.broadcast %pc : tensor<64x1xf32> -> tensor<64x64xf32>
  %pv2 = arith.mulf %ps, %u : tensor<64x64xf32>
  %acc = "tt.reduce"(%pv2) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %sums = tt.splat %sum : f32 -> tensor<64xf32>
  %y = arith.divf %acc, %sums : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// A gradient has more digits than the copy.
// CHECK: autodiff.buffer 1 <saved "saved2" : f32, 1 * (grid2 * (grid1 * (grid0 * 64)))>
// CHECK-LABEL: tt.func @mean_by_digits_bwd(
// CHECK: tt.return
tt.func @mean_by_digits(%px: !tt.ptr<f32>, %pv: !tt.ptr<f16>, %py: !tt.ptr<f16>, %gain: f32) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %xl = tt.load %xp : tensor<64x!tt.ptr<f32>>
  %x = arith.addf %xl, %xl : tensor<64xf32>
  %vs = tt.splat %pv : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %vp = tt.addptr %vs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %vl = tt.load %vp : tensor<64x64x!tt.ptr<f16>>
  %v = arith.extf %vl : tensor<64x64xf16> to tensor<64x64xf32>
  %p = math.exp %x : tensor<64xf32>
  %sum = "tt.reduce"(%p) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %pc = tt.expand_dims %p {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %ps = tt.broadcast %pc : tensor<64x1xf32> -> tensor<64x64xf32>
  %pv2 = arith.mulf %ps, %v : tensor<64x64xf32>
  %acc = "tt.reduce"(%pv2) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %sums = tt.splat %sum : f32 -> tensor<64xf32>
  %y = arith.divf %acc, %sums : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}
