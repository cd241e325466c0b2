// RUN: %interchange -split-input-file %s | FileCheck %s

// The gradient of w is summed over rows, that of x has a row and a column. Its
// loop only stores it, so the kernel that sums stores it on its way, from what
// it has read for the sum; what the row sums up to is handed over.
// CHECK-LABEL: tt.func @scaled_bwd(
// CHECK: scf.for
// CHECK: tt.store
// CHECK-NOT: scf.for
// CHECK-NOT: autodiff.accumulate
// CHECK-LABEL: tt.func @scaled_bwd_interchanged0(
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
// CHECK-LABEL: tt.func @kept_bwd_interchanged0(
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

// -----

// Rows share z: that what they touch of it depends on the row, by how often the
// loop runs, does not make an address theirs. So it is summed by a kernel of its
// own, and stored by none on the way.
// CHECK-LABEL: tt.func @ranges_bwd_interchanged0(
// CHECK-NOT: argument = 1
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK-NOT: argument = 1
// CHECK-LABEL: tt.func @ranges_bwd_interchanged1(
// CHECK: autodiff.accumulate {{.*}} {argument = 1
tt.func @ranges(%px: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4xf32>
  %id = tt.get_program_id x : i32
  %row = arith.divsi %id, %c3 : i32
  %column = arith.remsi %id, %c3 : i32
  %end = arith.addi %row, %c1 : i32
  %lanes = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %n4 = tt.splat %n : i32 -> tensor<4xi32>
  %px4 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %pz4 = tt.splat %pz : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %sum = scf.for %j = %c0 to %end step %c1 iter_args(%acc = %zeros) -> (tensor<4xf32>) : i32 {
    %jm = arith.muli %j, %m : i32
    %from = tt.splat %jm : i32 -> tensor<4xi32>
    %places = arith.addi %from, %lanes : tensor<4xi32>
    %qx = tt.addptr %px4, %places : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %qx : tensor<4x!tt.ptr<f32>>
    %cm = arith.muli %column, %m : i32
    %shift = tt.splat %cm : i32 -> tensor<4xi32>
    %others = arith.addi %places, %shift : tensor<4xi32>
    %inside = arith.cmpi slt, %others, %n4 : tensor<4xi32>
    %qz = tt.addptr %pz4, %others : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %z = tt.load %qz, %inside, %zeros : tensor<4x!tt.ptr<f32>>
    %xz = arith.mulf %x, %z : tensor<4xf32>
    %xx = arith.mulf %xz, %xz : tensor<4xf32>
    %next = arith.addf %acc, %xx : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %py4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %rm = arith.muli %row, %m : i32
  %cn = arith.muli %column, %n : i32
  %start = arith.addi %rm, %cn : i32
  %first = tt.splat %start : i32 -> tensor<4xi32>
  %out = arith.addi %first, %lanes : tensor<4xi32>
  %qy = tt.addptr %py4, %out : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %qy, %sum : tensor<4x!tt.ptr<f32>>
  tt.return
}
