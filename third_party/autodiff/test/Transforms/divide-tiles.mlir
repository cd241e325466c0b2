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
