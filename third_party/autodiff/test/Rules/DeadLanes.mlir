// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// A selection after an exponential: where it is not taken, the exponential may
// be infinite. The selection is made once more, of the factor.
// CHECK-LABEL: tt.func @selected_bwd(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[S:.*]] = arith.select %arg2, %[[T]], %{{.*}}
// CHECK: %[[Z:.*]] = arith.select %arg2, %[[Y]], %{{.*}}
// CHECK: %[[D:.*]] = arith.mulf %[[S]], %[[Z]]
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @selected(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %y = arith.select %c, %e, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So is the mask of a store. Where a padding makes the cotangent zero, that is
// asked already.
// CHECK-LABEL: tt.func @stored_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0, %arg2, %{{.*}} :
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 mask %arg2
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[X]]
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO:.*]] :
// CHECK: %[[S:.*]] = arith.select %[[Z]], %[[ZERO]], %[[P]]
// CHECK-NOT: arith.select
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %other = arith.constant 0xFF800000 : f32
  %x = tt.load %px, %c, %other : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  tt.store %py, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Finite factors cost nothing.
// CHECK-LABEL: tt.func @finite_bwd(
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @finite(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>,
                %c: i1) {
  %other = arith.constant 0.0 : f32
  %x = tt.load %px, %c, %other : !tt.ptr<f32>
  %w = tt.load %pw, %c : !tt.ptr<f32>
  %y = arith.mulf %x, %w : f32
  tt.store %py, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Also of a mask that compares a number with zero.
// CHECK-LABEL: tt.func @compared_bwd(
// CHECK: %[[C:.*]] = arith.cmpf olt
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[Z:.*]] = arith.select %[[C]], %[[Y]], %{{.*}}
// CHECK: %[[D:.*]] = arith.mulf %{{.*}}, %[[Z]]
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @compared(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %c = arith.cmpf olt, %x, %zero : f32
  %e = math.exp %x : f32
  %y = arith.select %c, %e, %zero : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Rows that nobody stores are dead in products and sums of their cotangents,
// too: what a softmax is there, 0/0, must not reach sums over rows.
// CHECK-LABEL: tt.func @softmax_bwd(
// CHECK: %[[LIVE:.*]] = tt.broadcast %{{.*}} : tensor<16x1xi1>
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[KEPT:.*]] = arith.select %[[LIVE]], %[[E]], %{{.*}} : tensor<16x8xi1>
// CHECK: %[[T:.*]] = arith.mulf %{{.*}}, %[[KEPT]]
// CHECK: tt.reduce"(%[[T]]) <{axis = 0 : i32}>
tt.func @softmax(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %row = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %end = tt.splat %n : i32 -> tensor<16x1xi32>
  %live = arith.cmpi slt, %row, %end : tensor<16x1xi32>
  %mask = tt.broadcast %live : tensor<16x1xi1> -> tensor<16x8xi1>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<16x8x!tt.ptr<f32>>
  %column = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %1 = tt.splat %pw : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %2 = tt.addptr %1, %column : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %w = tt.load %2 : tensor<8x!tt.ptr<f32>>
  %w1 = tt.expand_dims %w {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %w2 = tt.broadcast %w1 : tensor<1x8xf32> -> tensor<16x8xf32>
  %z = arith.addf %x, %w2 : tensor<16x8xf32>
  %e = math.exp %z : tensor<16x8xf32>
  %l = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x8xf32>) -> tensor<16xf32>
  %l1 = tt.expand_dims %l {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %l2 = tt.broadcast %l1 : tensor<16x1xf32> -> tensor<16x8xf32>
  %y = arith.divf %e, %l2 : tensor<16x8xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>>
  tt.store %3, %y, %mask : tensor<16x8x!tt.ptr<f32>>
  tt.return
}

// -----

// What a branch leaves out is known outside of it, by its condition.
// CHECK-LABEL: tt.func @branch_bwd(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[CT:.*]] = scf.if %arg2 -> (f32) {
// CHECK: %[[ELSE:.*]] = arith.xori %arg2, %true
// CHECK: %[[THEN:.*]] = arith.andi %arg3, %arg2
// CHECK: %[[LIVE:.*]] = arith.ori %[[ELSE]], %[[THEN]]
// CHECK: %[[Z:.*]] = arith.select %[[LIVE]], %[[Y]], %{{.*}}
// CHECK: %[[D:.*]] = arith.mulf %[[CT]], %[[Z]]
// CHECK: autodiff.accumulate %arg0, %[[D]]
tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %d: i1) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %e = math.exp %x : f32
  %y = scf.if %c -> f32 {
    %0 = arith.select %d, %e, %zero : f32
    scf.yield %0 : f32
  } else {
    scf.yield %e : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Lanes of halves go where the halves go.
// CHECK-LABEL: tt.func @halves_bwd(
// CHECK: %[[C:.*]] = tt.splat %arg2
// CHECK: %[[D:.*]] = tt.splat %arg3
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[LIVE:.*]] = tt.join %[[C]], %[[D]] : tensor<4xi1>
// CHECK: arith.select %[[LIVE]], %[[Y]], %{{.*}}
tt.func @halves(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %d: i1) {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %c4 = tt.splat %c : i1 -> tensor<4xi1>
  %d4 = tt.splat %d : i1 -> tensor<4xi1>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x2x!tt.ptr<f32>>
  %e = math.exp %x : tensor<4x2xf32>
  %a, %b = tt.split %e : tensor<4x2xf32> -> tensor<4xf32>
  %1 = arith.select %c4, %a, %zero : tensor<4xi1>, tensor<4xf32>
  %2 = arith.select %d4, %b, %zero : tensor<4xi1>, tensor<4xf32>
  %y = arith.addf %1, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Which elements a gather takes is not known: the exponential is left out where
// its cotangent is zero.
// CHECK-LABEL: tt.func @gathered_bwd(
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[T:.*]] = "tt.reduce"
// CHECK: %[[F:.*]] = arith.minimumf %[[Y]]
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[F]]
// CHECK: %[[N:.*]] = arith.cmpf une, %[[T]]
// CHECK: arith.select %[[N]], %[[P]]
tt.func @gathered(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %e = math.exp %x : tensor<4xf32>
  %1 = tt.splat %pi : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %i = tt.load %1 : tensor<4x!tt.ptr<i32>>
  %y = tt.gather %e[%i] {axis = 0 : i32} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %2, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// What a loop overwrites leads to nothing but in its last iteration.
// CHECK-LABEL: tt.func @overwritten_bwd(
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}})
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]]
// CHECK: %[[N:.*]] = arith.cmpf une, %[[T]]
// CHECK: arith.select %[[N]], %[[P]]
tt.func @overwritten(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%last = %zero) -> f32 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %e = math.exp %x : f32
    scf.yield %e : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What is handed on from iteration to iteration is live where it is stored in
// the end: no more is asked.
// CHECK-LABEL: tt.func @carried_bwd(
// CHECK: autodiff.upstream
// CHECK: %[[Y:.*]] = math.exp
// CHECK: %[[Z:.*]] = arith.select %arg3, %[[Y]]
// CHECK-NOT: arith.cmpf
// CHECK: tt.return
tt.func @carried(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %e = math.exp %x : f32
    %next = arith.addf %sum, %e : f32
    scf.yield %next : f32
  }
  tt.store %py, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// A running product: its derivatives are left out behind the last lane that is
// stored, for the scan that solves for the adjoint goes through these.
// CHECK-LABEL: tt.func @running_bwd(
// CHECK: %[[LIVE:.*]] = arith.cmpi slt, %{{.*}} : tensor<8xi32>
// CHECK: arith.select %[[LIVE]], %{{.*}} : tensor<8xi1>, tensor<8xf32>
// CHECK: "tt.scan"
tt.func @running(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %end = tt.splat %n : i32 -> tensor<8xi32>
  %mask = arith.cmpi slt, %range, %end : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    tt.scan.return %p : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %y, %mask : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// What another store may overwrite has a cotangent only where it was not.
// CHECK-LABEL: tt.func @hidden_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[NONZERO:.*]] = arith.cmpf une, %[[T]], %{{.*}} : f32
// CHECK: arith.select %[[NONZERO]], %{{.*}} : f32
// CHECK: autodiff.accumulate
tt.func @hidden(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pi: !tt.ptr<i32>,
                %v: f32) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  tt.store %py, %y : !tt.ptr<f32>
  %i = tt.load %pi : !tt.ptr<i32>
  %other = tt.addptr %py, %i : !tt.ptr<f32>, i32
  tt.store %other, %v : !tt.ptr<f32>
  tt.return
}

// -----

// Two sides of a branch do not overwrite one another.
// CHECK-LABEL: tt.func @sides_bwd(
// CHECK-NOT: arith.cmpf
// CHECK: tt.return
tt.func @sides(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1, %v: f32) {
  %x = tt.load %px : !tt.ptr<f32>
  scf.if %c {
    %y = arith.mulf %x, %x : f32
    tt.store %py, %y : !tt.ptr<f32>
  } else {
    tt.store %py, %v : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What is made for a loop that may not run is masked by that; in the loop it
// needs no mask.
// CHECK-LABEL: tt.func @stored_by_a_loop_bwd(
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %arg2, %arg3 : i32
// CHECK: arith.select %[[RUNS]], %{{.*}} : f32
// CHECK: autodiff.accumulate
tt.func @stored_by_a_loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %from: i32,
                          %to: i32) {
  %one = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  scf.for %i = %from to %to step %one : i32 {
    %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %p, %y : !tt.ptr<f32>
  }
  tt.return
}

// -----

// One that runs is taken for that.
// CHECK-LABEL: tt.func @stored_by_a_loop_that_runs_bwd(
// CHECK-NOT: arith.select
// CHECK: tt.return
tt.func @stored_by_a_loop_that_runs(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %to = arith.addi %pid, %one : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  scf.for %i = %zero to %to step %one : i32 {
    %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %p, %y : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Counted without signs, -1 is the largest number: nobody knows whether it runs.
// CHECK-LABEL: tt.func @stored_by_an_unsigned_loop_bwd(
// CHECK: %[[COUNTS:.*]] = arith.cmpf une, %[[T:.*]], %{{.*}} : f32
// CHECK: arith.select %[[COUNTS]], %{{.*}} : f32
// CHECK: autodiff.accumulate
tt.func @stored_by_an_unsigned_loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %from = arith.constant -1 : i32
  %one = arith.constant 1 : i32
  %to = tt.get_program_id x : i32
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  scf.for unsigned %i = %from to %to step %one : i32 {
    %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %p, %y : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What a loop hands on, and the last iteration to nobody.
// CHECK-LABEL: tt.func @handed_on_bwd(
// CHECK: %[[LEFT:.*]] = arith.subi %arg3, %[[I:.*]] : i32
// CHECK: %[[AGAIN:.*]] = arith.cmpi sgt, %[[LEFT]], %c1_i32 : i32
// CHECK: arith.select %[[AGAIN]], %{{.*}} : f32
// CHECK: arith.select %[[AGAIN]], %{{.*}} : f32
// CHECK: autodiff.upstream
tt.func @handed_on(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pw: !tt.ptr<f32>,
                   %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %last = scf.for %i = %zero to %n step %one iter_args(%c = %x) -> f32 : i32 {
    %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
    tt.store %p, %c : !tt.ptr<f32>
    %q = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %w = tt.load %q : !tt.ptr<f32>
    %next = arith.mulf %c, %w : f32
    scf.yield %next : f32
  }
  tt.return
}

// -----

// A comparison has no derivative: the value counts where the branch stores it,
// whatever number comes of the comparison.
// CHECK-LABEL: tt.func @compared_and_stored_bwd(
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.select %arg3, %[[P]], %{{.*}} : f32
// CHECK: autodiff.accumulate
tt.func @compared_and_stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>,
                             %pz: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %y = arith.mulf %x, %x : f32
  %above = arith.cmpf ogt, %y, %zero : f32
  %number = arith.uitofp %above : i1 to f32
  tt.store %pz, %number : !tt.ptr<f32>
  scf.if %c {
    tt.store %py, %y : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Neither has a count, which a reduction returns beside the value.
// CHECK-LABEL: tt.func @counted_and_stored_bwd(
// CHECK: %[[LIVE:.*]] = tt.splat %arg3 : i1 -> tensor<4x4xi1>
// CHECK: arith.select %[[LIVE]], %{{.*}}, %{{.*}} : tensor<4x4xi1>, tensor<4x4xf32>
// CHECK: autodiff.accumulate
tt.func @counted_and_stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>,
                           %pz: !tt.ptr<f32>, %c: i1) {
  %ones = arith.constant dense<1> : tensor<4x4xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x4x!tt.ptr<f32>>
  %count, %product = "tt.reduce"(%ones, %x) <{axis = 1 : i32}> ({
  ^bb0(%n: i32, %a: f32, %m: i32, %b: f32):
    %s = arith.addi %n, %m : i32
    %p = arith.mulf %a, %b : f32
    tt.reduce.return %s, %p : i32, f32
  }) : (tensor<4x4xi32>, tensor<4x4xf32>) -> (tensor<4xi32>, tensor<4xf32>)
  %number = arith.sitofp %count : tensor<4xi32> to tensor<4xf32>
  %1 = tt.splat %pz : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %number : tensor<4x!tt.ptr<f32>>
  scf.if %c {
    %2 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    tt.store %2, %product : tensor<4x!tt.ptr<f32>>
  }
  tt.return
}
