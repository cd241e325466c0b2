// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-defer-reductions,canonicalize,cse))' %s | FileCheck %s

// The tiles are added up, and their lanes after the loop.
// CHECK-LABEL: tt.func @scalar(
// CHECK-SAME: %{{.*}}, %{{.*}}: i32, %[[INIT:.*]]: f32)
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %cst{{.*}}) -> (tensor<1024xf32>)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[BEFORE]], %[[X]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: %[[R:.*]] = "tt.reduce"(%[[SUM]]) <{axis = 0 : i32}>
// CHECK: %[[TOTAL:.*]] = arith.addf %[[INIT]], %[[R]]
// CHECK: tt.return %[[TOTAL]]
tt.func @scalar(%p: tensor<1024x!tt.ptr<f32>>, %n: i32, %init: f32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (f32) : i32 {
    %at = tt.splat %i : i32 -> tensor<1024xi32>
    %pi = tt.addptr %p, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %pi : tensor<1024x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<1024xf32>) -> f32
    %next = arith.addf %acc, %s : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}

// One term of several, in another shape.
// CHECK-LABEL: tt.func @among(
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} -> (tensor<32x1xf32>, tensor<32x32xf32>)
// CHECK-NOT: tt.reduce
// CHECK: scf.yield
// CHECK: %[[R:.*]] = "tt.reduce"(%[[LOOP]]#1) <{axis = 1 : i32}>
// CHECK: %[[COLUMN:.*]] = tt.expand_dims %[[R]] {axis = 1 : i32}
// CHECK: arith.addf %[[LOOP]]#0, %[[COLUMN]]
tt.func @among(%p: tensor<32x32x!tt.ptr<f32>>, %y: tensor<32x1xf32>, %n: i32) -> tensor<32x1xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %y) -> (tensor<32x1xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<32x32xi32>
    %pi = tt.addptr %p, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    %x = tt.load %pi : tensor<32x32x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x32xf32>) -> tensor<32xf32>
    %column = tt.expand_dims %s {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>
    %both = arith.addf %column, %y : tensor<32x1xf32>
    %next = arith.addf %acc, %both : tensor<32x1xf32>
    scf.yield %next : tensor<32x1xf32>
  }
  tt.return %r : tensor<32x1xf32>
}

// Behind all loops of a nest, over both axes.
// CHECK-LABEL: tt.func @nested(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: tt.reduce
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: tt.reduce
// CHECK: tt.reduce
tt.func @nested(%p: tensor<16x32x!tt.ptr<f32>>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero) -> (f32) : i32 {
    %q = scf.for %j = %c0 to %i step %c1 iter_args(%acc = %outer) -> (f32) : i32 {
      %at = tt.splat %j : i32 -> tensor<16x32xi32>
      %pi = tt.addptr %p, %at : tensor<16x32x!tt.ptr<f32>>, tensor<16x32xi32>
      %x = tt.load %pi : tensor<16x32x!tt.ptr<f32>>
      %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<16x32xf32>) -> tensor<32xf32>
      %t = "tt.reduce"(%s) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<32xf32>) -> f32
      %next = arith.addf %acc, %t : f32
      scf.yield %next : f32
    }
    scf.yield %q : f32
  }
  tt.return %r : f32
}

// Four warps have no registers for a second tile of this size.
// CHECK-LABEL: tt.func @large(
// CHECK: scf.for
// CHECK: tt.reduce
// CHECK: scf.yield
tt.func @large(%p: tensor<16384x!tt.ptr<f32>>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %at = tt.splat %i : i32 -> tensor<16384xi32>
    %pi = tt.addptr %p, %at : tensor<16384x!tt.ptr<f32>>, tensor<16384xi32>
    %x = tt.load %pi : tensor<16384x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16384xf32>) -> f32
    %next = arith.addf %acc, %s : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}

// No sum, one that is used in the iteration, and one in half precision.
// CHECK-LABEL: tt.func @others(
// CHECK: scf.for
// CHECK-COUNT-3: tt.reduce"
// CHECK: scf.yield
// CHECK-NOT: tt.reduce
// CHECK: tt.return
tt.func @others(%p: tensor<64x!tt.ptr<f32>>, %q: !tt.ptr<f32>, %n: i32) -> (f32, f32, f16) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.0 : f16
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero, %acc = %zero, %h = %half) -> (f32, f32, f16) : i32 {
    %at = tt.splat %i : i32 -> tensor<64xi32>
    %pi = tt.addptr %p, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %pi : tensor<64x!tt.ptr<f32>>
    %y = arith.truncf %x : tensor<64xf32> to tensor<64xf16>
    %most = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64xf32>) -> f32
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64xf32>) -> f32
    %t = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %c = arith.addf %a, %b : f16
      tt.reduce.return %c : f16
    }) : (tensor<64xf16>) -> f16
    %pq = tt.addptr %q, %i : !tt.ptr<f32>, i32
    tt.store %pq, %s : !tt.ptr<f32>
    %next = arith.addf %m, %most : f32
    %sum = arith.addf %acc, %s : f32
    %rounded = arith.addf %h, %t : f16
    scf.yield %next, %sum, %rounded : f32, f32, f16
  }
  tt.return %r#0, %r#1, %r#2 : f32, f32, f16
}
