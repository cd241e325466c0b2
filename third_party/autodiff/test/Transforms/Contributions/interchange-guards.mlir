// RUN: %interchange %s | FileCheck %s

// Programs whose number times four is n or more run the loop no times: those
// that have an iteration are the first ⌈n / 4⌉.
// CHECK-LABEL: tt.func @guarded_bwd_interchanged0(
// CHECK: %[[LAST:.*]] = arith.addi %arg4, %c-1_i32
// CHECK: %[[AT:.*]] = arith.maxsi %[[LAST]], %c-4_i32
// CHECK: %[[SHIFTED:.*]] = arith.addi %[[AT]], %c4_i32
// CHECK: %[[RUNNING:.*]] = arith.divsi %[[SHIFTED]], %c4_i32
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[RUNNING]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[END]], %c0_i32
// CHECK: scf.if %[[ANY]] -> (f32)
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]] step
tt.func @guarded(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c4 : i32
  %runs = arith.cmpi slt, %first, %n : i32
  %end = arith.select %runs, %m, %c0 : i32
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %c0 to %end step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}
