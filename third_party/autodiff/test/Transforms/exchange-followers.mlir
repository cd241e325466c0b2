// RUN: %exchange -split-input-file %s | FileCheck %s

// The gradient of w is summed over rows, that of x has a row and a column. Its
// loop only stores it, so the kernel that sums stores it on its way, from what
// it has read for the sum; what the row sums up to is handed over.
// CHECK-LABEL: tt.func @scaled_bwd(
// CHECK: scf.for
// CHECK: tt.store
// CHECK-NOT: scf.for
// CHECK-NOT: autodiff.accumulate
// CHECK-LABEL: tt.func @scaled_bwd_exchanged0(
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to
// CHECK: autodiff.accumulate %{{.*}}, %{{[^ ]+}} {argument = 0
// CHECK: scf.yield
// CHECK: autodiff.accumulate {{.*}} partial
// CHECK-SAME: argument = 1
tt.func @scaled(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %qx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qy = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %p = tt.addptr %qx, %j : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %scale = math.exp %sum : f32
  scf.for %j = %c0 to %n step %c1 : i32 {
    %p = tt.addptr %qx, %j : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %p1 = tt.addptr %pw, %j : !tt.ptr<f32>, i32
    %w = tt.load %p1 : !tt.ptr<f32>
    %0 = arith.mulf %x, %w : f32
    %1 = arith.mulf %0, %scale : f32
    %p2 = tt.addptr %qy, %j : !tt.ptr<f32>, i32
    tt.store %p2, %1 : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Here the loop also sums over columns, and has to read x and w for that.
// CHECK-LABEL: tt.func @kept_bwd(
// CHECK: scf.for
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK: autodiff.accumulate {{.*}} {argument = 2
// CHECK-LABEL: tt.func @kept_bwd_exchanged0(
// CHECK-NOT: argument = 0
// CHECK: autodiff.accumulate {{.*}} partial
// CHECK-SAME: argument = 1
tt.func @kept(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %pv: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %n : i32
  %qx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %qy = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %qv = tt.addptr %pv, %row : !tt.ptr<f32>, i32
  %v = tt.load %qv : !tt.ptr<f32>
  scf.for %j = %c0 to %n step %c1 : i32 {
    %p = tt.addptr %qx, %j : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %p1 = tt.addptr %pw, %j : !tt.ptr<f32>, i32
    %w = tt.load %p1 : !tt.ptr<f32>
    %0 = arith.mulf %x, %w : f32
    %1 = arith.mulf %0, %v : f32
    %p2 = tt.addptr %qy, %j : !tt.ptr<f32>, i32
    tt.store %p2, %1 : !tt.ptr<f32>
  }
  tt.return
}
