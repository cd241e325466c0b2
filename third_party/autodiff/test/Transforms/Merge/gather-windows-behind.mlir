// RUN: %windows -split-input-file %s | FileCheck %s

// y[u] = (x[u] + x[u - 1]) a[u] b[u] c[u] d[u]: what both contributions of a
// position are takes five loads. It is stored once, by a kernel before.
// CHECK: autodiff.buffer 0 <handover "common0" {{.*}}grid0 * 16
// CHECK-LABEL: tt.func @scaled_bwd(
// CHECK-SAME: %[[COMMON:[a-z0-9]+]]: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>
// CHECK: %[[ALL:.*]] = tt.splat %[[COMMON]]
// CHECK-NEXT: %[[AT:.*]] = tt.addptr %[[ALL]], %{{.*}}
// CHECK-NEXT: tt.store %[[AT]], %{{.*}} :
// CHECK-NOT: argument = 0
// CHECK-COUNT-4: autodiff.accumulate {{.*}} {argument = 2
// CHECK-NOT: argument = 0
// CHECK: tt.return

// CHECK-LABEL: tt.func @scaled_bwd_windows0(
// CHECK-SAME: %[[COMMON:[a-z0-9]+]]: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>
// CHECK-NOT: tt.load
// CHECK: %[[ALL:.*]] = tt.splat %[[COMMON]]
// CHECK: %[[NEXT:.*]] = tt.addptr %[[ALL]]
// CHECK: %[[G:.*]] = tt.load %[[NEXT]], %{{.*}} : tensor<16x!tt.ptr<f32>>
// CHECK: %[[TAKEN:.*]] = arith.select %{{.*}}, %[[G]]
// CHECK: %[[OWN:.*]] = tt.addptr %[[ALL]]
// CHECK: %[[H:.*]] = tt.load %[[OWN]] : tensor<16x!tt.ptr<f32>>
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[H]]
// CHECK: %[[SUM:.*]] = arith.addf %[[TAKEN]], %[[KEPT]]
// CHECK: autodiff.accumulate %{{.*}}, %[[SUM]] {{.*}} whole <{{.*}}within {{.*}}<1 * (grid0 * 16) at_most 2147483647>]
// CHECK-NEXT: tt.return
tt.func @scaled(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %one = arith.constant dense<1> : tensor<16xi32>
  %zero = arith.constant dense<0> : tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %u = arith.addi %start, %lanes : tensor<16xi32>
  %v = arith.subi %u, %one : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %inside = arith.cmpi slt, %u, %end : tensor<16xi32>
  %after = arith.cmpi sge, %v, %zero : tensor<16xi32>
  %both = arith.andi %inside, %after : tensor<16xi1>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %as = tt.splat %pa : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %xs, %v : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qa = tt.addptr %as, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qb = tt.addptr %qa, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qc = tt.addptr %qb, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qd = tt.addptr %qc, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx, %inside, %none : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qv, %both, %none : tensor<16x!tt.ptr<f32>>
  %a = tt.load %qa, %inside, %none : tensor<16x!tt.ptr<f32>>
  %b = tt.load %qb, %inside, %none : tensor<16x!tt.ptr<f32>>
  %c = tt.load %qc, %inside, %none : tensor<16x!tt.ptr<f32>>
  %d = tt.load %qd, %inside, %none : tensor<16x!tt.ptr<f32>>
  %sum = arith.addf %x, %w : tensor<16xf32>
  %ya = arith.mulf %sum, %a : tensor<16xf32>
  %yb = arith.mulf %ya, %b : tensor<16xf32>
  %yc = arith.mulf %yb, %c : tensor<16xf32>
  %y = arith.mulf %yc, %d : tensor<16xf32>
  tt.store %qy, %y, %inside : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// What is taken out of memory can be taken once.
// CHECK-LABEL: tt.func @taken_bwd(
// CHECK: autodiff.upstream
// CHECK-COUNT-2: autodiff.accumulate {{.*}} {argument = 0
// CHECK: tt.return
// CHECK-NOT: _windows0
tt.func @taken(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %pj: !tt.ptr<i32>, %pa: !tt.ptr<f32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %one = arith.constant dense<1> : tensor<16xi32>
  %zero = arith.constant dense<0> : tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %u = arith.addi %start, %lanes : tensor<16xi32>
  %v = arith.subi %u, %one : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %inside = arith.cmpi slt, %u, %end : tensor<16xi32>
  %after = arith.cmpi sge, %v, %zero : tensor<16xi32>
  %both = arith.andi %inside, %after : tensor<16xi1>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %as = tt.splat %pa : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %xs, %v : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qa = tt.addptr %as, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qb = tt.addptr %qa, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qc = tt.addptr %qb, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qd = tt.addptr %qc, %end : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx, %inside, %none : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qv, %both, %none : tensor<16x!tt.ptr<f32>>
  %a = tt.load %qa, %inside, %none : tensor<16x!tt.ptr<f32>>
  %b = tt.load %qb, %inside, %none : tensor<16x!tt.ptr<f32>>
  %c = tt.load %qc, %inside, %none : tensor<16x!tt.ptr<f32>>
  %d = tt.load %qd, %inside, %none : tensor<16x!tt.ptr<f32>>
  %sum = arith.addf %x, %w : tensor<16xf32>
  %ya = arith.mulf %sum, %a : tensor<16xf32>
  %yb = arith.mulf %ya, %b : tensor<16xf32>
  %yc = arith.mulf %yb, %c : tensor<16xf32>
  %y = arith.mulf %yc, %d : tensor<16xf32>
  tt.store %qy, %y, %inside : tensor<16x!tt.ptr<f32>>
  %js = tt.splat %pj : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %j = tt.load %js : tensor<16x!tt.ptr<i32>>
  %zs = tt.splat %pz : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qz = tt.addptr %zs, %j : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %qz, %a : tensor<16x!tt.ptr<f32>>
  tt.return
}
