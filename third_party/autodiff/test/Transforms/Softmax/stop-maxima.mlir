// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-stop-maxima))' %s | FileCheck %s

// A softmax is the same whatever it subtracts.
// CHECK-LABEL: tt.func @softmax(
// CHECK: %[[M:.*]] = "tt.reduce"
// CHECK: autodiff.stop_gradient %[[M]] {autodiff.first_order}
tt.func @softmax(%px: tensor<16x!tt.ptr<f32>>, %py: tensor<16x!tt.ptr<f32>>) {
  %x = tt.load %px : tensor<16x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %ms = tt.splat %m : f32 -> tensor<16xf32>
  %d = arith.subf %x, %ms : tensor<16xf32>
  %e = math.exp %d : tensor<16xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %ss = tt.splat %s : f32 -> tensor<16xf32>
  %y = arith.divf %e, %ss : tensor<16xf32>
  tt.store %py, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// Here the sum is stored, which is relative to the maximum.
// CHECK-LABEL: tt.func @stored_sum(
// CHECK-NOT: stop_gradient
tt.func @stored_sum(%px: tensor<16x!tt.ptr<f32>>, %ps: !tt.ptr<f32>) {
  %x = tt.load %px : tensor<16x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %ms = tt.splat %m : f32 -> tensor<16xf32>
  %d = arith.subf %x, %ms : tensor<16xf32>
  %e = math.exp %d : tensor<16xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  tt.store %ps, %s : !tt.ptr<f32>
  tt.return
}

// Two loops of one online sum: the second one begins with what the first one
// leaves. Each new maximum may be any number.
// CHECK-LABEL: tt.func @two_loops(
// CHECK: scf.for
// CHECK: %[[A:.*]] = arith.maxnumf
// CHECK: autodiff.stop_gradient %[[A]] {autodiff.first_order}
// CHECK: scf.for
// CHECK: %[[B:.*]] = arith.maxnumf
// CHECK: autodiff.stop_gradient %[[B]] {autodiff.first_order}
// CHECK: math.log
tt.func @two_loops(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %none to %n step %one iter_args(%m = %inf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    %d = arith.subf %x, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %more = arith.addi %n, %n : i32
  %t:2 = scf.for %i = %n to %more step %one iter_args(%m = %r#0, %s = %r#1) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    %d = arith.subf %x, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %log = math.log %t#1 : f32
  %y = arith.addf %t#0, %log : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// The second loop begins with the maximum, but with a sum of its own, which is
// relative to nothing.
// CHECK-LABEL: tt.func @another_sum(
// CHECK: scf.for
// CHECK-NOT: stop_gradient
// CHECK: scf.for
tt.func @another_sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 1.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %none to %n step %one iter_args(%m = %inf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    %d = arith.subf %x, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %more = arith.addi %n, %n : i32
  %t:2 = scf.for %i = %n to %more step %one iter_args(%m = %r#0, %s = %first) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    %d = arith.subf %x, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %log = math.log %t#1 : f32
  %y = arith.addf %t#0, %log : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// The second loop's numbers are relative to the first maximum, which is stopped
// nowhere.
// CHECK-LABEL: tt.func @captured(
// CHECK: scf.for
// CHECK-NOT: stop_gradient
// CHECK: scf.for
// CHECK: autodiff.stop_gradient
tt.func @captured(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %r:2 = scf.for %i = %none to %n step %one iter_args(%m = %inf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.maxnumf %m, %x : f32
    %d = arith.subf %x, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %log = math.log %r#1 : f32
  %y = arith.addf %r#0, %log : f32
  tt.store %py, %y : !tt.ptr<f32>
  %t:2 = scf.for %i = %none to %n step %one iter_args(%m = %inf, %s = %zero) -> (f32, f32) : i32 {
    %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %shifted = arith.subf %x, %r#0 : f32
    %next = arith.maxnumf %m, %shifted : f32
    %d = arith.subf %shifted, %next : f32
    %e = math.exp %d : f32
    %da = arith.subf %m, %next : f32
    %alpha = math.exp %da : f32
    %old = arith.mulf %s, %alpha : f32
    %sum = arith.addf %old, %e : f32
    scf.yield %next, %sum : f32, f32
  }
  %log2 = math.log %t#1 : f32
  %z = arith.addf %t#0, %log2 : f32
  tt.store %px, %z : !tt.ptr<f32>
  tt.return
}
