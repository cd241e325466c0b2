// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// The cotangent of a product of half precision: in half precision, or, where it
// may leave the range of that, in float32, rounded to TF32 by the product.

// The caller may give any number of float32.
// CHECK-LABEL: tt.func @stored_bwd(
// CHECK-NOT: tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
tt.func @stored(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.store %2, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Exponentials over their sum are shares of a whole.
// CHECK-LABEL: tt.func @softmax_bwd(
// CHECK: %[[T:.*]] = arith.truncf %{{.*}} : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: tt.dot %[[T]], %{{.*}} : tensor<16x16xf16> * tensor<16x16xf16>
// CHECK: tt.dot %{{.*}}, %[[T]], %{{.*}} : tensor<16x16xf16> * tensor<16x16xf16>
tt.func @softmax(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %2 = tt.splat %py : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %x = math.exp %d : tensor<16x16xf32>
  %n = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %sum = arith.addf %l, %r : f32
    tt.reduce.return %sum : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %e = tt.expand_dims %n {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %w = tt.broadcast %e : tensor<16x1xf32> -> tensor<16x16xf32>
  %y = arith.divf %x, %w : tensor<16x16xf32>
  %h = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xf16>
  tt.store %2, %h : tensor<16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// What the launch divides by is no number of the data, and a logistic function
// is at most one.
// CHECK-LABEL: tt.func @given_bwd(
// CHECK: %[[T:.*]] = arith.truncf %{{.*}} : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: tt.dot %[[T]], %{{.*}} : tensor<16x16xf16> * tensor<16x16xf16>
// CHECK: tt.dot %{{.*}}, %[[T]], %{{.*}} : tensor<16x16xf16> * tensor<16x16xf16>
tt.func @given(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f16>, %scale: f32) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %2 = tt.splat %py : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %one = arith.constant dense<1.0> : tensor<16x16xf32>
  %x = tt.splat %scale : f32 -> tensor<16x16xf32>
  %z = arith.divf %d, %x : tensor<16x16xf32>
  %n = arith.negf %z : tensor<16x16xf32>
  %e = math.exp %n : tensor<16x16xf32>
  %u = arith.addf %e, %one : tensor<16x16xf32>
  %y = arith.divf %z, %u : tensor<16x16xf32>
  %h = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xf16>
  tt.store %2, %h : tensor<16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// A standard deviation may be small.
// CHECK-LABEL: tt.func @norm_bwd(
// CHECK-NOT: tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
tt.func @norm(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %2 = tt.splat %py : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %x = arith.mulf %d, %d : tensor<16x16xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %sum = arith.addf %l, %r : f32
    tt.reduce.return %sum : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %n = math.rsqrt %s : tensor<16xf32>
  %e = tt.expand_dims %n {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %w = tt.broadcast %e : tensor<16x1xf32> -> tensor<16x16xf32>
  %y = arith.mulf %d, %w : tensor<16x16xf32>
  %h = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xf16>
  tt.store %2, %h : tensor<16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// It divides in a later iteration, what another one has made.
// CHECK-LABEL: tt.func @later_bwd(
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
tt.func @later(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f16>, %m: i32, %q: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tt.splat %pa : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %1 = tt.splat %pb : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %2 = tt.splat %py : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
  %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
  %d = tt.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %y = scf.for %i = %lower to %m step %step iter_args(%c = %d) -> (tensor<16x16xf32>) : i32 {
    %p = tt.addptr %q, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    %w = tt.splat %v : f32 -> tensor<16x16xf32>
    %o = arith.divf %c, %w : tensor<16x16xf32>
    scf.yield %o : tensor<16x16xf32>
  }
  %h = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xf16>
  tt.store %2, %h : tensor<16x16x!tt.ptr<f16>>
  tt.return
}
// -----

// A loop adds up what is stored behind it.
// CHECK-LABEL: tt.func @accumulated_bwd(
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>
tt.func @accumulated(%pa: !tt.ptr<f16>, %pb: !tt.ptr<f16>, %py: !tt.ptr<f32>, %m: i32) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %y = scf.for %i = %lower to %m step %step iter_args(%c = %zero) -> (tensor<16x16xf32>) : i32 {
    %p = tt.addptr %pa, %i : !tt.ptr<f16>, i32
    %q = tt.addptr %pb, %i : !tt.ptr<f16>, i32
    %0 = tt.splat %p : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %1 = tt.splat %q : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %a = tt.load %0 : tensor<16x16x!tt.ptr<f16>>
    %b = tt.load %1 : tensor<16x16x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.store %2, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
