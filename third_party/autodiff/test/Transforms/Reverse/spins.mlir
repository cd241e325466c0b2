// RUN: %differentiate %s -split-input-file | FileCheck %s

// The forward waits, and saves what it has read. No other kernel waits.
// CHECK-LABEL: tt.func @packed_fwd(
// CHECK: scf.while
// CHECK: scf.yield
// CHECK: %[[POSITION:.+]] = tt.load
// CHECK: tt.store {{.+}}, %[[POSITION]]
// CHECK: tt.atomic_rmw exch, acq_rel
// CHECK-LABEL: tt.func @packed_bwd(
// CHECK-NOT: scf.while
// CHECK-NOT: isVolatile
// CHECK-NOT: acq_rel
// CHECK: tt.return
tt.func @packed(%flag: !tt.ptr<i32>, %count: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %id = tt.get_program_id x : i32
  %qf = tt.addptr %flag, %id : !tt.ptr<i32>, i32
  scf.while : () -> () {
    %f = tt.load %qf {isVolatile = true} : !tt.ptr<i32>
    %wait = arith.cmpi eq, %f, %c0 : i32
    scf.condition(%wait)
  } do {
    scf.yield
  }
  %qc = tt.addptr %count, %id : !tt.ptr<i32>, i32
  %before = tt.load %qc : !tt.ptr<i32>
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %s = math.sin %x : f32
  %qy = tt.addptr %py, %before : !tt.ptr<f32>, i32
  tt.store %qy, %s : !tt.ptr<f32>
  %next = tt.addptr %qc, %c1 : !tt.ptr<i32>, i32
  %after = arith.addi %before, %c1 : i32
  tt.store %next, %after : !tt.ptr<i32>
  %nextf = tt.addptr %qf, %c1 : !tt.ptr<i32>, i32
  %0 = tt.atomic_rmw exch, acq_rel, gpu, %nextf, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// -----

// A kernel that counts the iterations of another loop does not wait.
// CHECK-LABEL: tt.func @counted_count(
// CHECK-NOT: scf.while
// CHECK: tt.atomic_rmw max
// CHECK-NOT: scf.while
// CHECK: tt.return
tt.func @counted(%flag: !tt.ptr<i32>, %pn: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %id = tt.get_program_id x : i32
  %qf = tt.addptr %flag, %id : !tt.ptr<i32>, i32
  scf.while : () -> () {
    %f = tt.atomic_cas acq_rel, gpu, %qf, %c1, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
    %wait = arith.cmpi eq, %f, %c0 : i32
    scf.condition(%wait)
  } do {
    scf.yield
  }
  %n = tt.load %pn : !tt.ptr<i32>
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 : i32 {
    %s = math.sin %a : f32
    scf.yield %s : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %h : !tt.ptr<f32>
  %nextf = tt.addptr %qf, %c1 : !tt.ptr<i32>, i32
  %0 = tt.atomic_rmw exch, acq_rel, gpu, %nextf, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}
