// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,autodiff-drop-references)' \
// RUN:   | FileCheck %s

// e^(g - r) · e^(r - h), summed over the axis that r runs along, does not depend
// on r.
// CHECK-LABEL: tt.func @decay
// CHECK: %[[R:.*]] = tt.load {{.*}} : tensor<16x!tt.ptr<f32>>
// CHECK: %[[FIXED:.*]] = autodiff.stop_gradient %[[R]]
// CHECK-NOT: stop_gradient
// CHECK: tt.expand_dims %[[FIXED]]
// CHECK: tt.dot
tt.func @decay(%g0: !tt.ptr<f32>, %h0: !tt.ptr<f32>, %r0: !tt.ptr<f32>, %y0: !tt.ptr<f32>) {
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %ph = tt.splat %h0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %pr = tt.splat %r0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %g = tt.load %pg : tensor<16x16x!tt.ptr<f32>>
  %h = tt.load %ph : tensor<16x16x!tt.ptr<f32>>
  %r = tt.load %pr : tensor<16x!tt.ptr<f32>>
  %er = tt.expand_dims %r {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  %rows = tt.broadcast %er : tensor<1x16xf32> -> tensor<16x16xf32>
  %a = arith.subf %g, %rows : tensor<16x16xf32>
  %ea = math.exp2 %a : tensor<16x16xf32>
  %b = arith.subf %rows, %h : tensor<16x16xf32>
  %eb = math.exp2 %b : tensor<16x16xf32>
  %t = tt.trans %eb {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %y = tt.dot %ea, %t, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %py, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A row that is gathered: it has no axis of its own but the one that is summed.
// CHECK-LABEL: tt.func @gathered
// CHECK: %[[R:.*]] = tt.gather
// CHECK: autodiff.stop_gradient %[[R]]
tt.func @gathered(%g0: !tt.ptr<f32>, %y0: !tt.ptr<f32>) {
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %first = arith.constant dense<0> : tensor<1x16xi32>
  %g = tt.load %pg : tensor<16x16x!tt.ptr<f32>>
  %r = tt.gather %g[%first] {axis = 0 : i32} : (tensor<16x16xf32>, tensor<1x16xi32>) -> tensor<1x16xf32>
  %rows = tt.broadcast %r : tensor<1x16xf32> -> tensor<16x16xf32>
  %a = arith.subf %g, %rows : tensor<16x16xf32>
  %ea = math.exp %a : tensor<16x16xf32>
  %b = arith.subf %zero, %a : tensor<16x16xf32>
  %eb = math.exp %b : tensor<16x16xf32>
  %t = tt.trans %eb {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %y = tt.dot %ea, %t, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %py, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Along the rows of a product, the factors are of different rows: e^(rᵢ - rⱼ).
// CHECK-LABEL: tt.func @other_axis
// CHECK-NOT: stop_gradient
tt.func @other_axis(%g0: !tt.ptr<f32>, %r0: !tt.ptr<f32>, %y0: !tt.ptr<f32>) {
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %pr = tt.splat %r0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %g = tt.load %pg : tensor<16x16x!tt.ptr<f32>>
  %r = tt.load %pr : tensor<16x!tt.ptr<f32>>
  %er = tt.expand_dims %r {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %columns = tt.broadcast %er : tensor<16x1xf32> -> tensor<16x16xf32>
  %a = arith.subf %g, %columns : tensor<16x16xf32>
  %ea = math.exp %a : tensor<16x16xf32>
  %b = arith.subf %columns, %g : tensor<16x16xf32>
  %eb = math.exp %b : tensor<16x16xf32>
  %t = tt.trans %eb {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %y = tt.dot %ea, %t, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.store %py, %y : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// One of the factors is stored, too.
// CHECK-LABEL: tt.func @seen
// CHECK-NOT: stop_gradient
tt.func @seen(%g0: !tt.ptr<f32>, %r0: !tt.ptr<f32>, %y0: !tt.ptr<f32>, %z0: !tt.ptr<f32>) {
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pr = tt.splat %r0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pz = tt.splat %z0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %g = tt.load %pg : tensor<16x!tt.ptr<f32>>
  %r = tt.load %pr : tensor<16x!tt.ptr<f32>>
  %a = arith.subf %g, %r : tensor<16xf32>
  %ea = math.exp %a : tensor<16xf32>
  %b = arith.subf %r, %g : tensor<16xf32>
  %eb = math.exp %b : tensor<16xf32>
  %y = arith.mulf %ea, %eb : tensor<16xf32>
  tt.store %py, %y : tensor<16x!tt.ptr<f32>>
  tt.store %pz, %eb : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// In a branch, what a row is multiplied with is no reference: it stays.
// CHECK-LABEL: tt.func @branch
// CHECK-NOT: stop_gradient
tt.func @branch(%g0: !tt.ptr<f32>, %r0: !tt.ptr<f32>, %y0: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pr = tt.splat %r0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %y = scf.if %c -> (tensor<16xf32>) {
    %g = tt.load %pg : tensor<16x!tt.ptr<f32>>
    %r = tt.load %pr : tensor<16x!tt.ptr<f32>>
    %a = arith.subf %g, %r : tensor<16xf32>
    %ea = math.exp %a : tensor<16xf32>
    scf.yield %ea : tensor<16xf32>
  } else {
    scf.yield %zero : tensor<16xf32>
  }
  tt.store %py, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Each iteration has a reference of its own: that a shift of all of them cancels
// does not make one of them free.
// CHECK-LABEL: tt.func @iterations
// CHECK-NOT: stop_gradient
tt.func @iterations(%g0: !tt.ptr<f32>, %r0: !tt.ptr<f32>, %y0: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %pg = tt.splat %g0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pr = tt.splat %r0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %py = tt.splat %y0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    %at = tt.splat %i : i32 -> tensor<16xi32>
    %pgi = tt.addptr %pg, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %pri = tt.addptr %pr, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %g = tt.load %pgi : tensor<16x!tt.ptr<f32>>
    %r = tt.load %pri : tensor<16x!tt.ptr<f32>>
    %d = arith.subf %g, %r : tensor<16xf32>
    %e = math.exp %d : tensor<16xf32>
    %eg = arith.mulf %e, %g : tensor<16xf32>
    %a1 = arith.addf %a, %e : tensor<16xf32>
    %b1 = arith.addf %b, %eg : tensor<16xf32>
    scf.yield %a1, %b1 : tensor<16xf32>, tensor<16xf32>
  }
  %y = arith.divf %sums#1, %sums#0 : tensor<16xf32>
  tt.store %py, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// What a loop results in is one, too, whatever is asked of the loop afterwards:
// here, what it stores.
// CHECK-LABEL: tt.func @carried
// CHECK-NOT: stop_gradient
tt.func @carried(%x0: !tt.ptr<f32>, %y0: !tt.ptr<f32>, %z0: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %x = tt.load %x0 : !tt.ptr<f32>
  %h = arith.mulf %x, %half : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %h) -> (f32, f32) : i32 {
    %q = tt.addptr %y0, %i : !tt.ptr<f32>, i32
    tt.store %q, %a : !tt.ptr<f32>
    scf.yield %b, %a : f32, f32
  }
  %m = arith.subf %zero, %r#1 : f32
  %e = math.exp %m : f32
  %s = arith.addf %e, %one : f32
  %y = arith.divf %one, %s : f32
  tt.store %z0, %y : !tt.ptr<f32>
  tt.return
}
