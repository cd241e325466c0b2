// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-defer-reductions,canonicalize,cse))' %s | FileCheck %s

// The tiles are added up, and their rows after the loop.
// CHECK-LABEL: tt.func @rows(
// CHECK-SAME: %{{.*}}, %{{.*}}: i32, %[[INIT:.*]]: tensor<64xf32>)
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %cst{{.*}}) -> (tensor<16x64xf32>)
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[BEFORE]], %[[X]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: %[[R:.*]] = "tt.reduce"(%[[SUM]]) <{axis = 0 : i32}>
// CHECK: %[[TOTAL:.*]] = arith.addf %[[INIT]], %[[R]]
// CHECK: tt.return %[[TOTAL]]
tt.func @rows(%p: tensor<16x64x!tt.ptr<f32>>, %n: i32, %init: tensor<64xf32>) -> tensor<64xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<16x64xi32>
    %pi = tt.addptr %p, %at : tensor<16x64x!tt.ptr<f32>>, tensor<16x64xi32>
    %x = tt.load %pi : tensor<16x64x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16x64xf32>) -> tensor<64xf32>
    %next = arith.addf %acc, %s : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  tt.return %r : tensor<64xf32>
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

// Behind all loops of a nest, over two axes.
// CHECK-LABEL: tt.func @nested(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: tt.reduce
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: tt.reduce
// CHECK: tt.reduce
tt.func @nested(%p: tensor<4x8x32x!tt.ptr<f32>>, %n: i32) -> tensor<32xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero) -> (tensor<32xf32>) : i32 {
    %q = scf.for %j = %c0 to %i step %c1 iter_args(%acc = %outer) -> (tensor<32xf32>) : i32 {
      %at = tt.splat %j : i32 -> tensor<4x8x32xi32>
      %pi = tt.addptr %p, %at : tensor<4x8x32x!tt.ptr<f32>>, tensor<4x8x32xi32>
      %x = tt.load %pi : tensor<4x8x32x!tt.ptr<f32>>
      %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<4x8x32xf32>) -> tensor<8x32xf32>
      %t = "tt.reduce"(%s) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<8x32xf32>) -> tensor<32xf32>
      %next = arith.addf %acc, %t : tensor<32xf32>
      scf.yield %next : tensor<32xf32>
    }
    scf.yield %q : tensor<32xf32>
  }
  tt.return %r : tensor<32xf32>
}

// Four warps have no registers for a second tile of this size.
// CHECK-LABEL: tt.func @large(
// CHECK: scf.for
// CHECK: tt.reduce
// CHECK: scf.yield
tt.func @large(%p: tensor<128x128x!tt.ptr<f32>>, %n: i32) -> tensor<128xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<128x128xi32>
    %pi = tt.addptr %p, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %x = tt.load %pi : tensor<128x128x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128x128xf32>) -> tensor<128xf32>
    %next = arith.addf %acc, %s : tensor<128xf32>
    scf.yield %next : tensor<128xf32>
  }
  tt.return %r : tensor<128xf32>
}

// No sum, one that is used in the iteration, one in half precision, and one
// number.
// CHECK-LABEL: tt.func @others(
// CHECK: scf.for
// CHECK-COUNT-4: tt.reduce"
// CHECK: scf.yield
// CHECK-NOT: tt.reduce
// CHECK: tt.return
tt.func @others(%p: tensor<64x8x!tt.ptr<f32>>, %l: tensor<64x!tt.ptr<f32>>, %q: tensor<8x!tt.ptr<f32>>, %n: i32) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, f32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %half = arith.constant dense<0.0> : tensor<8xf16>
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %zero, %acc = %zero, %h = %half, %o = %one) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, f32) : i32 {
    %at = tt.splat %i : i32 -> tensor<64x8xi32>
    %pi = tt.addptr %p, %at : tensor<64x8x!tt.ptr<f32>>, tensor<64x8xi32>
    %x = tt.load %pi : tensor<64x8x!tt.ptr<f32>>
    %line = tt.load %l : tensor<64x!tt.ptr<f32>>
    %y = arith.truncf %x : tensor<64x8xf32> to tensor<64x8xf16>
    %most = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x8xf32>) -> tensor<8xf32>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x8xf32>) -> tensor<8xf32>
    %t = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %c = arith.addf %a, %b : f16
      tt.reduce.return %c : f16
    }) : (tensor<64x8xf16>) -> tensor<8xf16>
    %u = "tt.reduce"(%line) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64xf32>) -> f32
    tt.store %q, %s : tensor<8x!tt.ptr<f32>>
    %next = arith.addf %m, %most : tensor<8xf32>
    %sum = arith.addf %acc, %s : tensor<8xf32>
    %rounded = arith.addf %h, %t : tensor<8xf16>
    %number = arith.addf %o, %u : f32
    scf.yield %next, %sum, %rounded, %number : tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, f32
  }
  tt.return %r#0, %r#1, %r#2, %r#3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, f32
}

// What is added up is itself carried.
// CHECK-LABEL: tt.func @carried(
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[BEFORE:.*]] = %cst{{.*}}) -> (tensor<16x64xf32>, tensor<16x64xf32>)
// CHECK: arith.addf %[[BEFORE]], %[[X]]
// CHECK: "tt.reduce"(%[[LOOP]]#1) <{axis = 0 : i32}>
tt.func @carried(%p: tensor<16x64x!tt.ptr<f32>>, %n: i32, %first: tensor<16x64xf32>, %init: tensor<64xf32>) -> (tensor<64xf32>, tensor<16x64xf32>) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first, %acc = %init) -> (tensor<16x64xf32>, tensor<64xf32>) : i32 {
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16x64xf32>) -> tensor<64xf32>
    %next = arith.addf %acc, %s : tensor<64xf32>
    %at = tt.splat %i : i32 -> tensor<16x64xi32>
    %pi = tt.addptr %p, %at : tensor<16x64x!tt.ptr<f32>>, tensor<16x64xi32>
    %y = tt.load %pi : tensor<16x64x!tt.ptr<f32>>
    scf.yield %y, %next : tensor<16x64xf32>, tensor<64xf32>
  }
  tt.return %r#1, %r#0 : tensor<64xf32>, tensor<16x64xf32>
}

// A sum of all lanes stays in its loop, in whichever way it becomes a scalar.
// CHECK-LABEL: tt.func @scalar(
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: "tt.reduce"
// CHECK: tt.unsplat
// CHECK: scf.yield
tt.func @scalar(%p: tensor<1x64x!tt.ptr<f32>>, %n: i32, %init: f32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (f32) : i32 {
    %at = tt.splat %i : i32 -> tensor<1x64xi32>
    %pi = tt.addptr %p, %at : tensor<1x64x!tt.ptr<f32>>, tensor<1x64xi32>
    %x = tt.load %pi : tensor<1x64x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<1x64xf32>) -> tensor<1xf32>
    %number = tt.unsplat %s : tensor<1xf32>
    %next = arith.addf %acc, %number : f32
    scf.yield %next : f32
  }
  tt.return %r : f32
}
