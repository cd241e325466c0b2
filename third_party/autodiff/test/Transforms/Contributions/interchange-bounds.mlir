// RUN: %interchange -split-input-file %s | FileCheck %s

// Program p runs iterations 2p to n: of those that have iteration j, the last
// one is ⌊j / 2⌋.
// CHECK-LABEL: tt.func @start_bwd_interchanged0(
// CHECK: %[[N:.*]] = autodiff.programs
// CHECK: %[[J:.*]] = arith.remsi %[[N]]
// CHECK: %[[M:.*]] = arith.maxsi %[[J]], %c-2_i32
// CHECK: %[[S:.*]] = arith.addi %[[M]], %c2_i32
// CHECK: %[[Q:.*]] = arith.divsi %[[S]], %c2_i32
// CHECK: arith.minsi
// CHECK: %[[END:.*]] = arith.select
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[END]], %c0_i32
// CHECK: scf.if %[[ANY]] -> (f32)
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]]
tt.func @start(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %c2 : i32
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %start to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
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

// -----

// An end that moves with the program: those that have iteration j are the
// later ones, and the number of iterations is the most that any program has.
// CHECK: autodiff.launch @end_bwd_interchanged0 grid [{{.*}}maxpids(pid0 + 1)
// CHECK-LABEL: tt.func @end_bwd_interchanged0(
// CHECK: %[[PART:.*]] = arith.divsi
// CHECK: %[[FIRST:.*]] = arith.maxsi {{.*}}, %c0_i32
// CHECK: arith.cmpi slt, %[[FIRST]], %[[PROGRAMS:.*]] :
// CHECK: %[[START:.*]] = arith.addi %[[FIRST]], %[[PART]]
// CHECK: scf.for %{{.*}} = %[[START]] to %[[PROGRAMS]]
tt.func @end(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %end = arith.addi %id, %c1 : i32
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

// -----

// A start between multiples of the step, or below zero: iterations have no
// number that is the same in all programs.
// CHECK-LABEL: tt.func @between_bwd(
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK-NOT: interchanged
tt.func @between(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %y = scf.for %j = %id to %n step %c2 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// CHECK-LABEL: tt.func @below_bwd(
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK-NOT: interchanged
tt.func @below(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %start = arith.subi %id, %c3 : i32
  %y = scf.for %j = %start to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A number that is put together of two is one digit of the programs, also where
// it says how far they go: those from j on have iteration j.
// CHECK: autodiff.plan
// CHECK-LABEL: tt.func @sums_of_digits_bwd_interchanged0(
// CHECK: %[[N:.*]] = autodiff.programs
// CHECK: %[[J:.*]] = arith.remsi %[[N]]
// CHECK: %[[FIRST:.*]] = arith.maxsi %{{.*}}, %c0_i32
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[FIRST]], %{{.*}}
// CHECK: scf.if %[[ANY]] -> (f32)
tt.func @sums_of_digits(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %group = arith.divsi %id, %c2 : i32
  %first = arith.muli %group, %c2 : i32
  %place = arith.remsi %id, %c2 : i32
  %number = arith.addi %first, %place : i32
  %end = arith.addi %number, %c1 : i32
  %qw = tt.addptr %pw, %number : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %c0 to %end step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %number : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A loop from one place in memory to another one, that all programs of a row
// run: iterations count from there. There is no mask, so that zeros are stored
// behind shorter segments, and ranges have to be all of the tensor.
// CHECK: autodiff.launch @from_memory_bwd_interchanged0 grid [{{.*}}maxpids(element(arg3, pid0 + 1) - element(arg3, pid0))
// CHECK-LABEL: tt.func @from_memory_bwd_interchanged0(
// CHECK: autodiff.accumulate {{.*}} moves = true{{.*}} whole = true
tt.func @from_memory(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %starts: !tt.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %column = tt.get_program_id y : i32
  %qs = tt.addptr %starts, %row : !tt.ptr<i32>, i32
  %start = tt.load %qs : !tt.ptr<i32>
  %qe = tt.addptr %qs, %c1 : !tt.ptr<i32>, i32
  %end = tt.load %qe : !tt.ptr<i32>
  %at = arith.muli %row, %c8 : i32
  %own = arith.addi %at, %column : i32
  %qw = tt.addptr %pw, %own : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %y = scf.for %j = %start to %end step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %qx = tt.addptr %px, %j : !tt.ptr<f32>, i32
    %x = tt.load %qx : !tt.ptr<f32>
    %xw = arith.mulf %x, %w : f32
    %next = arith.addf %acc, %xw : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %own : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A start that is rounded down to a multiple of the step, as of a window: the
// programs that have iteration 4j are those with 3p − n ≤ 4j + 3.
// CHECK-LABEL: tt.func @rounded_bwd_interchanged0(
// CHECK: %[[J:.*]] = arith.remsi
// CHECK: %[[INDEX:.*]] = arith.muli %[[J]], %c4_i32
// CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[INDEX]], %c4_i32
// CHECK: %[[ROUNDED:.*]] = arith.muli %[[QUOTIENT]], %c4_i32
// CHECK: %[[LAST:.*]] = arith.addi %[[ROUNDED]], %c3_i32
// CHECK: %[[LESS:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK: %[[M:.*]] = arith.maxsi %[[LESS]], %c-3_i32
// CHECK: %[[S:.*]] = arith.addi %[[M]], %c3_i32
// CHECK: arith.divsi %[[S]], %c3_i32
tt.func @rounded(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %id = tt.get_program_id x : i32
  %far = arith.muli %id, %c3 : i32
  %from = arith.subi %far, %n : i32
  %positive = arith.maxsi %from, %c0 : i32
  %quotient = arith.divsi %positive, %c4 : i32
  %start = arith.muli %quotient, %c4 : i32
  %range = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %qw = tt.addptr %pw, %id : !tt.ptr<f32>, i32
  %w = tt.load %qw : !tt.ptr<f32>
  %ws = tt.splat %w : f32 -> tensor<4xf32>
  %base = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %y = scf.for %j = %start to %end step %c4 iter_args(%acc = %zero) -> (tensor<4xf32>) : i32 {
    %at = tt.splat %j : i32 -> tensor<4xi32>
    %lanes = arith.addi %at, %range : tensor<4xi32>
    %qx = tt.addptr %base, %lanes : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %qx : tensor<4x!tt.ptr<f32>>
    %xw = arith.mulf %x, %ws : tensor<4xf32>
    %next = arith.addf %acc, %xw : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %row = arith.muli %id, %c4 : i32
  %rows = tt.splat %row : i32 -> tensor<4xi32>
  %places = arith.addi %rows, %range : tensor<4xi32>
  %outs = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qy = tt.addptr %outs, %places : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %qy, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop that counts blocks: the programs that have block j are those with
// ⌈(3p + n) / 4⌉ > j, for 4j + 3 < 3p + n + 3.
// CHECK-LABEL: tt.func @blocks_bwd_interchanged0(
// CHECK: %[[J:.*]] = arith.remsi
// CHECK: %[[SCALED:.*]] = arith.muli %[[J]], %c4_i32
// CHECK: %[[LAST:.*]] = arith.addi %[[SCALED]], %c3_i32
// CHECK: %[[LESS:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK: arith.maxsi %[[LESS]], %c-3_i32
// CHECK: scf.if
tt.func @blocks(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %far = arith.muli %id, %c3 : i32
  %to = arith.addi %far, %n : i32
  %more = arith.addi %to, %c3 : i32
  %end = arith.divsi %more, %c4 : i32
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

// -----

// The larger one of two ends, of which one is the same for all programs: below
// it, all of them have the iteration.
// CHECK-LABEL: tt.func @either_bwd_interchanged0(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[ALL:.*]] = arith.cmpi slt, %{{.*}}, %[[N]] : i32
// CHECK: arith.select %[[ALL]], %c0_i32, %{{.*}}
tt.func @either(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %own = arith.addi %id, %c1 : i32
  %end = arith.maxsi %own, %n : i32
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
