// RUN: %merge -split-input-file %s | FileCheck %s

// The elements are read in two loops. The loop of the backward that comes last
// adds both contributions up; nothing is left in the other one.
// CHECK-LABEL: tt.func @moments_bwd(
// CHECK: autodiff.accumulate
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @moments(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %n : i32
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %o = arith.addi %row, %j : i32
    %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %squares = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %o = arith.addi %row, %j : i32
    %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %d = arith.subf %x, %sum : f32
    %dd = arith.mulf %d, %d : f32
    %next = arith.addf %acc, %dd : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %squares : !tt.ptr<f32>
  tt.return
}

// -----

// Loops of different lengths each contribute for themselves.
// CHECK-LABEL: tt.func @lengths_bwd(
// CHECK-COUNT-2: autodiff.accumulate
tt.func @lengths(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %all = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %sum) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xx = arith.mulf %x, %x : f32
    %next = arith.addf %acc, %xx : f32
    scf.yield %next : f32
  }
  tt.store %py, %all : !tt.ptr<f32>
  tt.return
}

// -----

// Two loads outside of loops, which a store keeps apart.
// CHECK-LABEL: tt.func @twice_bwd(
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: autodiff.accumulate %{{.*}}, %[[SUM]]
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %qz = tt.addptr %pz, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  tt.store %qy, %x : !tt.ptr<f32>
  %again = tt.load %qx : !tt.ptr<f32>
  %z = math.exp %again : f32
  tt.store %qz, %z : !tt.ptr<f32>
  tt.return
}

// -----

// Elsewhere is elsewhere.
// CHECK-LABEL: tt.func @neighbours_bwd(
// CHECK-COUNT-2: autodiff.accumulate
tt.func @neighbours(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1 : i32
  %id = tt.get_program_id x : i32
  %next = arith.addi %id, %one : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %rx = tt.addptr %px, %next : !tt.ptr<f32>, i32
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %r = tt.load %rx : !tt.ptr<f32>
  %y = arith.mulf %x, %r : f32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Nests of loops, like loops. The outer one is a sum, too, which the inner one
// goes on with.
// CHECK-LABEL: tt.func @nests_bwd(
// CHECK: autodiff.accumulate
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @nests(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%all = %zero) -> (f32) : i32 {
    %part = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %all) -> (f32) : i32 {
      %r = arith.muli %i, %n : i32
      %o = arith.addi %r, %j : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    scf.yield %part : f32
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %r = arith.muli %i, %n : i32
      %o = arith.addi %r, %j : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %y = arith.mulf %x, %sum : f32
      %qy = tt.addptr %py, %o : !tt.ptr<f32>, i32
      tt.store %qy, %y : !tt.ptr<f32>
    }
  }
  tt.return
}

// -----

// Nests that go over the same elements in another order are not alike.
// CHECK-LABEL: tt.func @swapped_bwd(
// CHECK-COUNT-2: autodiff.accumulate
tt.func @swapped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%all = %zero) -> (f32) : i32 {
    %part = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %all) -> (f32) : i32 {
      %r = arith.muli %i, %n : i32
      %o = arith.addi %r, %j : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    scf.yield %part : f32
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %r = arith.muli %j, %n : i32
      %o = arith.addi %r, %i : i32
      %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %y = arith.mulf %x, %sum : f32
      %qy = tt.addptr %py, %o : !tt.ptr<f32>, i32
      tt.store %qy, %y : !tt.ptr<f32>
    }
  }
  tt.return
}
