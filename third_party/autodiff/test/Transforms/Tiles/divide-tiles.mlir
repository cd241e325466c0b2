// RUN: triton-autodiff-opt --autodiff-divide-tiles %s | FileCheck %s

// 262144 floats are gone over in 16 pieces: what is stored, and the sum of all
// of them, at once; then what takes the sum.
// CHECK-LABEL: tt.func @two_stages(
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f32)
// CHECK: tt.load %{{.*}} : tensor<16384x!tt.ptr<f32>>
// CHECK: tt.store %{{.*}} : tensor<16384x!tt.ptr<f32>>
// CHECK: scf.yield
// CHECK: %[[MEAN:.*]] = arith.divf %[[SUM]]
// CHECK: scf.for
// CHECK: tt.load %{{.*}} : tensor<16384x!tt.ptr<f32>>
// CHECK: tt.store %{{.*}} : tensor<16384x!tt.ptr<f32>>
// CHECK-NOT: autodiff.divided
// CHECK: tt.return
tt.func @two_stages(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %r: !tt.ptr<f32>, %n: f32) attributes {autodiff.role = "backward"} {
  %range = tt.make_range {end = 262144 : i32, start = 0 : i32} : tensor<262144xi32>
  %from = tt.splat %p : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %source = tt.addptr %from, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  %x = tt.load %source : tensor<262144x!tt.ptr<f32>>
  %y = math.exp %x : tensor<262144xf32>
  %to = tt.splat %q : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %target = tt.addptr %to, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  tt.store %target, %y : tensor<262144x!tt.ptr<f32>>
  %sum = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<262144xf32>) -> f32
  %mean = arith.divf %sum, %n : f32
  %means = tt.splat %mean : f32 -> tensor<262144xf32>
  %z = arith.divf %y, %means : tensor<262144xf32>
  %other = tt.splat %r : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %last = tt.addptr %other, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  tt.store %last, %z : tensor<262144x!tt.ptr<f32>>
  tt.return
}

// A maximum has to be known before anything else: the kernel stays whole.
// CHECK-LABEL: tt.func @maximum(
// CHECK-NOT: scf.for
// CHECK-NOT: autodiff.divided
tt.func @maximum(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %range = tt.make_range {end = 262144 : i32, start = 0 : i32} : tensor<262144xi32>
  %from = tt.splat %p : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %source = tt.addptr %from, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  %x = tt.load %source : tensor<262144x!tt.ptr<f32>>
  %max = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<262144xf32>) -> f32
  %splat = tt.splat %max : f32 -> tensor<262144xf32>
  %z = arith.subf %x, %splat : tensor<262144xf32>
  %to = tt.splat %q : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %target = tt.addptr %to, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  tt.store %target, %z : tensor<262144x!tt.ptr<f32>>
  tt.return
}

// A piece would be loaded after an earlier one is stored in its place.
// CHECK-LABEL: tt.func @in_place(
// CHECK-NOT: scf.for
// CHECK-NOT: autodiff.divided
tt.func @in_place(%p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %range = tt.make_range {end = 262144 : i32, start = 0 : i32} : tensor<262144xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<262144x!tt.ptr<f32>>
  %here = tt.addptr %base, %range : tensor<262144x!tt.ptr<f32>>, tensor<262144xi32>
  %x = tt.load %here : tensor<262144x!tt.ptr<f32>>
  %y = math.exp %x : tensor<262144xf32>
  tt.store %here, %y : tensor<262144x!tt.ptr<f32>>
  tt.return
}

// Each product sums over another axis of the 128×256 tile of float32, which is
// in shared memory twice: 256 KiB. With halves of the columns, one product stores
// its part, the other goes on from the half before. What that is added to is
// added afterwards.
// CHECK-LABEL: tt.func @products(
// CHECK-SAME: %[[A:.*]]: tensor<128x128xf32>, %[[C:.*]]: tensor<128x128xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK: %[[B:.*]] = tt.load %{{.*}} : tensor<128x128x!tt.ptr<f32>>
// CHECK: %[[PRODUCT:.*]] = tt.dot %[[A]], %[[B]], %{{.*}} : tensor<128x128xf32> * tensor<128x128xf32> -> tensor<128x128xf32>
// CHECK: %[[T:.*]] = tt.trans %[[B]]
// CHECK: %[[NEXT:.*]] = tt.dot %[[PRODUCT]], %[[T]], %[[BEFORE]] : tensor<128x128xf32> * tensor<128x128xf32> -> tensor<128x128xf32>
// CHECK: tt.store %{{.*}}, %[[PRODUCT]] : tensor<128x128x!tt.ptr<f32>>
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[ADDED:.*]] = arith.addf %[[C]], %[[SUM]]
// CHECK: tt.store %{{.*}}, %[[ADDED]] : tensor<128x128x!tt.ptr<f32>>
tt.func @products(%a: tensor<128x128xf32>, %c: tensor<128x128xf32>, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %r: tensor<128x128x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %stride = arith.constant dense<256> : tensor<128x1xi32>
  %rows = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %start = arith.muli %row, %stride : tensor<128x1xi32>
  %starts = tt.broadcast %start : tensor<128x1xi32> -> tensor<128x256xi32>
  %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %columns = tt.broadcast %column : tensor<1x256xi32> -> tensor<128x256xi32>
  %offsets = arith.addi %starts, %columns : tensor<128x256xi32>
  %from = tt.splat %p : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
  %source = tt.addptr %from, %offsets : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
  %b = tt.load %source : tensor<128x256x!tt.ptr<f32>>
  %product = tt.dot %a, %b, %zero : tensor<128x128xf32> * tensor<128x256xf32> -> tensor<128x256xf32>
  %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x256xf32> -> tensor<256x128xf32>
  %sum = tt.dot %product, %t, %c : tensor<128x256xf32> * tensor<256x128xf32> -> tensor<128x128xf32>
  %to = tt.splat %q : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
  %target = tt.addptr %to, %offsets : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
  tt.store %target, %product : tensor<128x256x!tt.ptr<f32>>
  tt.store %r, %sum : tensor<128x128x!tt.ptr<f32>>
  tt.return
}

// The same in a loop, whose sum is carried over both loops.
// CHECK-LABEL: tt.func @in_loop(
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK: %[[PIECES:.*]] = scf.for
// CHECK: tt.load %{{.*}} : tensor<128x128x!tt.ptr<f32>>
// CHECK: tt.store %{{.*}} : tensor<128x128x!tt.ptr<f32>>
// CHECK: scf.yield
// CHECK: %[[NEXT:.*]] = arith.addf %[[CARRIED]], %[[PIECES]]
// CHECK: scf.yield %[[NEXT]]
tt.func @in_loop(%a: tensor<128x128xf32>, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %r: tensor<128x128x!tt.ptr<f32>>, %first: i32, %n: i32) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %one = arith.constant 1 : i32
  %rows = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %columns = tt.broadcast %column : tensor<1x256xi32> -> tensor<128x256xi32>
  %all = scf.for %i = %first to %n step %one iter_args(%before = %zeros) -> (tensor<128x128xf32>) : i32 {
    %stride = tt.splat %i : i32 -> tensor<128x1xi32>
    %start = arith.muli %row, %stride : tensor<128x1xi32>
    %starts = tt.broadcast %start : tensor<128x1xi32> -> tensor<128x256xi32>
    %offsets = arith.addi %starts, %columns : tensor<128x256xi32>
    %from = tt.splat %p : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %source = tt.addptr %from, %offsets : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    %b = tt.load %source : tensor<128x256x!tt.ptr<f32>>
    %product = tt.dot %a, %b, %zero : tensor<128x128xf32> * tensor<128x256xf32> -> tensor<128x256xf32>
    %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x256xf32> -> tensor<256x128xf32>
    %sum = tt.dot %product, %t, %before : tensor<128x256xf32> * tensor<256x128xf32> -> tensor<128x128xf32>
    %to = tt.splat %q : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %target = tt.addptr %to, %offsets : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
    tt.store %target, %product : tensor<128x256x!tt.ptr<f32>>
    scf.yield %sum : tensor<128x128xf32>
  }
  tt.store %r, %all : tensor<128x128x!tt.ptr<f32>>
  tt.return
}

// Sums in half precision would be rounded after every piece: rows or columns of
// the result are divided.
// CHECK-LABEL: tt.func @half(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: tt.dot {{.*}} : tensor<{{.*}}x256xf16> * tensor<256x{{.*}}xf16>
// CHECK: tt.return
tt.func @half(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %b: tensor<256x256xf16>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<256x256xf16>
  %stride = arith.constant dense<256> : tensor<256x1xi32>
  %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %start = arith.muli %row, %stride : tensor<256x1xi32>
  %starts = tt.broadcast %start : tensor<256x1xi32> -> tensor<256x256xi32>
  %column = tt.expand_dims %range {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %columns = tt.broadcast %column : tensor<1x256xi32> -> tensor<256x256xi32>
  %offsets = arith.addi %starts, %columns : tensor<256x256xi32>
  %from = tt.splat %p : !tt.ptr<f16> -> tensor<256x256x!tt.ptr<f16>>
  %source = tt.addptr %from, %offsets : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi32>
  %a = tt.load %source : tensor<256x256x!tt.ptr<f16>>
  %product = tt.dot %a, %b, %zero : tensor<256x256xf16> * tensor<256x256xf16> -> tensor<256x256xf16>
  %to = tt.splat %q : !tt.ptr<f16> -> tensor<256x256x!tt.ptr<f16>>
  %target = tt.addptr %to, %offsets : tensor<256x256x!tt.ptr<f16>>, tensor<256x256xi32>
  tt.store %target, %product : tensor<256x256x!tt.ptr<f16>>
  tt.return
}
