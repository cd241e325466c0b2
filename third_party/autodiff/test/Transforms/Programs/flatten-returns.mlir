// RUN: triton-autodiff-opt -autodiff-flatten-returns -split-input-file %s | FileCheck %s

// A program that returns runs its loop no times, stores nothing, and loads what
// says how long its sequence is.
// CHECK: autodiff.assume <max(element(arg4, pid1), 0)>
// CHECK-LABEL: tt.func public @returns(
// CHECK: %[[N:.*]] = tt.load %{{.*}} : !tt.ptr<i32>
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[FIRST:.*]], %[[N]]
// CHECK-NOT: scf.if
// CHECK: %[[HAS:.*]] = tt.load %{{.*}} : !tt.ptr<i32>
// CHECK: tt.load %{{.*}}, %[[RUNS]], %{{.*}} : !tt.ptr<f32>
// CHECK: %[[END:.*]] = arith.select %[[RUNS]], %[[HAS]], %c0_i32
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[END]] step %c1_i32
// CHECK: %[[MASK:.*]] = tt.splat %[[RUNS]] : i1 -> tensor<4xi1>
// CHECK: tt.store %{{.*}}, %{{.*}}, %[[MASK]]
// What a mask leaves out anyway needs no other one.
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK: tt.store %{{.*}}, %{{.*}}, %[[INSIDE]]
tt.func public @returns(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %lengths: !tt.ptr<i32>, %other: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %block = tt.get_program_id x : i32
  %sequence = tt.get_program_id y : i32
  %ql = tt.addptr %lengths, %sequence : !tt.ptr<i32>, i32
  %n = tt.load %ql : !tt.ptr<i32>
  %first = arith.muli %block, %c4 : i32
  %returns = arith.cmpi sge, %first, %n : i32
  scf.if %returns {
  } else {
    %qo = tt.addptr %other, %sequence : !tt.ptr<i32>, i32
    %has = tt.load %qo : !tt.ptr<i32>
    %scale = tt.load %px : !tt.ptr<f32>
    %sum = scf.for %j = %c0 to %has step %c1 iter_args(%acc = %zero) -> (tensor<4xf32>) : i32 {
      %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %scaled = arith.mulf %x, %scale : f32
      %xs = tt.splat %scaled : f32 -> tensor<4xf32>
      %next = arith.addf %acc, %xs : tensor<4xf32>
      scf.yield %next : tensor<4xf32>
    }
    %range = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %from = tt.splat %first : i32 -> tensor<4xi32>
    %rows = arith.addi %from, %range : tensor<4xi32>
    %py4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %qy = tt.addptr %py4, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %qy, %sum : tensor<4x!tt.ptr<f32>>
    %n4 = tt.splat %n : i32 -> tensor<4xi32>
    %inside = arith.cmpi slt, %rows, %n4 : tensor<4xi32>
    %pz4 = tt.splat %pz : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %qz = tt.addptr %pz4, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %qz, %sum, %inside : tensor<4x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// What a division divides by is positive then, which the launch has to see.
// CHECK: autodiff.assume <arg3 - 1>
// CHECK-LABEL: tt.func public @divides(
// CHECK-NOT: scf.if
// CHECK: arith.divsi %{{.*}}, %arg3 : i32
tt.func public @divides(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %shared: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %head = tt.get_program_id x : i32
  %runs = arith.cmpi slt, %head, %n : i32
  scf.if %runs {
    %group = arith.divsi %head, %shared : i32
    %row = arith.muli %group, %c4 : i32
    %q = tt.addptr %px, %row : !tt.ptr<f32>, i32
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
      %qx = tt.addptr %q, %j : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %qy = tt.addptr %py, %head : !tt.ptr<f32>, i32
    tt.store %qy, %sum : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Nothing is gained where every program loads elements of its own.
// CHECK-LABEL: tt.func public @alone(
// CHECK: scf.if
tt.func public @alone(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %runs = arith.cmpi slt, %row, %n : i32
  scf.if %runs {
    %start = arith.muli %row, %m : i32
    %p = tt.addptr %px, %start : !tt.ptr<f32>, i32
    %sum = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
      %q = tt.addptr %p, %j : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
    tt.store %qy, %sum : !tt.ptr<f32>
  }
  tt.return
}

// -----

// An atomic operation does what it does, and nothing in its place.
// CHECK-LABEL: tt.func public @atomic(
// CHECK: scf.if
tt.func public @atomic(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %row = tt.get_program_id x : i32
  %runs = arith.cmpi slt, %row, %n : i32
  scf.if %runs {
    %sum = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
      %q = tt.addptr %px, %j : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
    %old = tt.atomic_rmw fadd, acq_rel, gpu, %qy, %sum, %true : (!tt.ptr<f32>, f32, i1) -> f32
  }
  tt.return
}

// -----

// A row that does not count: it has no target, and a loss of zero. The target's
// place comes from memory, and a loop goes along the row.
// CHECK-LABEL: tt.func public @chosen(
// CHECK: %[[COUNTS:.*]] = arith.cmpi ne, %{{.*}}, %c-100_i32
// CHECK-NOT: scf.if
// CHECK: %[[PICKED:.*]] = tt.load %{{.*}}, %[[COUNTS]], %{{.*}} : !tt.ptr<f32>
// CHECK: %[[END:.*]] = arith.select %[[COUNTS]], %arg3, %c0_i32
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0_i32 to %[[END]] step %c1_i32
// CHECK: %[[LOSS:.*]] = arith.subf %[[SUM]], %[[PICKED]]
// CHECK: %[[CHOSEN:.*]] = arith.select %[[COUNTS]], %[[LOSS]], %{{.*}} : f32
// CHECK: tt.store %{{.*}}, %[[CHOSEN]] : !tt.ptr<f32>
tt.func public @chosen(%px: !tt.ptr<f32>, %pt: !tt.ptr<i32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ignored = arith.constant -100 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %qt = tt.addptr %pt, %row : !tt.ptr<i32>, i32
  %t = tt.load %qt : !tt.ptr<i32>
  %start = arith.muli %row, %n : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %returns = arith.cmpi eq, %t, %ignored : i32
  %loss = scf.if %returns -> (f32) {
    scf.yield %zero : f32
  } else {
    %qp = tt.addptr %base, %t : !tt.ptr<f32>, i32
    %picked = tt.load %qp : !tt.ptr<f32>
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
      %qx = tt.addptr %base, %j : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %difference = arith.subf %sum, %picked : f32
    scf.yield %difference : f32
  }
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %loss : !tt.ptr<f32>
  tt.return
}

// -----

// What is not the case is said by comparisons of its own.
// CHECK-LABEL: tt.func public @returns_by_floats(
// CHECK: %[[KEPT:.*]] = tt.load %{{.*}} : !tt.ptr<f32>
// CHECK-NOT: scf.if
// CHECK-DAG: %[[COUNTS:.*]] = arith.cmpf une, %[[KEPT]], %cst
// CHECK-DAG: %[[STARTS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: %[[RUNS:.*]] = arith.andi %[[COUNTS]], %[[STARTS]]
// CHECK: arith.select %[[RUNS]], %{{.*}}, %c0_i32
tt.func public @returns_by_floats(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %other: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %qk = tt.addptr %pk, %row : !tt.ptr<f32>, i32
  %kept = tt.load %qk : !tt.ptr<f32>
  %skips = arith.cmpf oeq, %kept, %none : f32
  %beyond = arith.cmpi sge, %row, %n : i32
  %returns = arith.ori %skips, %beyond : i1
  scf.if %returns {
  } else {
    %qo = tt.addptr %other, %row : !tt.ptr<i32>, i32
    %has = tt.load %qo : !tt.ptr<i32>
    %sum = scf.for %j = %c0 to %has step %c1 iter_args(%acc = %none) -> (f32) : i32 {
      %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
      %x = tt.load %qx : !tt.ptr<f32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
    tt.store %qy, %sum : !tt.ptr<f32>
  }
  tt.return
}
