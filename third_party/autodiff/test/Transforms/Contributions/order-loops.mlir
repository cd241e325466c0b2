// RUN: triton-autodiff-opt %s -split-input-file -autodiff-order-loops | FileCheck %s

// A reversed loop that only sums counts up again.
// CHECK-LABEL: tt.func @sum(
// CHECK: scf.for %[[T:.*]] = %c0_i32
// CHECK-NOT: arith.subi
// CHECK: tt.addptr %arg0, %[[T]]
// CHECK: } {autodiff.parallel}
tt.func @sum(%px: !tt.ptr<f32>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %j = arith.subi %last, %t : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  tt.return %y : f32
}

// -----

// A loop that hands a sum on to one in it sums, too.
// CHECK-LABEL: tt.func @nest(
// CHECK-NOT: arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: } {autodiff.parallel}
// CHECK: } {autodiff.parallel}
tt.func @nest(%px: !tt.ptr<f32>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 6 : i32
  %count = arith.constant 7 : i32
  %y = scf.for %t = %c0 to %count step %c1 iter_args(%all = %zero) -> (f32) : i32 {
    %i = arith.subi %last, %t : i32
    %part = scf.for %u = %c0 to %count step %c1 iter_args(%acc = %all) -> (f32) : i32 {
      %j = arith.subi %last, %u : i32
      %o = arith.muli %i, %j : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    scf.yield %part : f32
  }
  tt.return %y : f32
}

// -----

// A sum that the inner loop multiplies keeps the order of both.
// CHECK-LABEL: tt.func @product(
// CHECK-NOT: autodiff.parallel
tt.func @product(%px: !tt.ptr<f32>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 6 : i32
  %count = arith.constant 7 : i32
  %y = scf.for %t = %c0 to %count step %c1 iter_args(%all = %zero) -> (f32) : i32 {
    %i = arith.subi %last, %t : i32
    %part = scf.for %u = %c0 to %count step %c1 iter_args(%acc = %all) -> (f32) : i32 {
      %j = arith.subi %last, %u : i32
      %o = arith.muli %i, %j : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.mulf %acc, %x : f32
      scf.yield %next : f32
    }
    scf.yield %part : f32
  }
  tt.return %y : f32
}

// -----

// What a recurrence carries, and what is stored, keeps its order.
// CHECK-LABEL: tt.func @recurrence(
// CHECK: scf.for
// CHECK: arith.subi
// CHECK-NOT: autodiff.parallel
tt.func @recurrence(%px: !tt.ptr<f32>, %n: i32) -> f32 attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %one) -> (f32) : i32 {
    %j = arith.subi %last, %t : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.mulf %acc, %x : f32
    scf.yield %next : f32
  }
  tt.return %y : f32
}

// -----

// So does a sum that the loop reads: each iteration needs those after it.
// CHECK-LABEL: tt.func @running(
// CHECK: scf.for
// CHECK: arith.subi
// CHECK-NOT: autodiff.parallel
tt.func @running(%px: !tt.ptr<f32>, %n: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %j = arith.subi %last, %t : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    autodiff.accumulate %qx, %next {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    scf.yield %next : f32
  }
  tt.return
}

// -----

// CHECK-LABEL: tt.func @stores(
// CHECK: arith.subi
// CHECK-NOT: autodiff.parallel
tt.func @stores(%px: !tt.ptr<f32>, %n: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %last = arith.subi %n, %c1 : i32
  scf.for %t = %c0 to %n step %c1 : i32 {
    %j = arith.subi %last, %t : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    tt.store %qx, %one : !tt.ptr<f32>
  }
  tt.return
}

// -----

// The same loop elsewhere than in a backward is left alone.
// CHECK-LABEL: tt.func @forward(
// CHECK: arith.subi
// CHECK-NOT: autodiff.parallel
tt.func @forward(%px: !tt.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %y = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %j = arith.subi %last, %t : i32
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  tt.return %y : f32
}
