// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-lower-accumulates | FileCheck %s

// Rows of a segment, from where memory says: the check is about the ranges of
// the programs, whose bounds are how many rows are left.
// CHECK: autodiff.gradient <store 0 : {{.*}} checks [<bijective
// CHECK-SAME: <1 x [<1 x 4>] below 0 - element(arg2, pid0) + element(arg3, pid0)>
// CHECK-SAME: <1 x [<1 x pids(element(arg2, pid0))>]>
// CHECK-SAME: moves = true
// CHECK-LABEL: tt.func @segments_bwd(
tt.func @segments(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %starts: !tt.ptr<i32>, %ends: !tt.ptr<i32>) {
  %id = tt.get_program_id x : i32
  %qs = tt.addptr %starts, %id : !tt.ptr<i32>, i32
  %start = tt.load %qs : !tt.ptr<i32>
  %qe = tt.addptr %ends, %id : !tt.ptr<i32>, i32
  %end = tt.load %qe : !tt.ptr<i32>
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %from = tt.splat %start : i32 -> tensor<4xi32>
  %rows = arith.addi %from, %i : tensor<4xi32>
  %to = tt.splat %end : i32 -> tensor<4xi32>
  %inside = arith.cmpi slt, %rows, %to : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.addptr %p, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %q, %inside : tensor<4x!tt.ptr<f32>>
  %r = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %s = tt.addptr %r, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %x, %inside : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop from one place to another one: programs have as many iterations as
// their segments take.
// CHECK: autodiff.gradient <store 0 :
// CHECK-SAME: <2 x each(max(ceildiv(element(arg3, pid0) - element(arg2, pid0), 2), 0))>
// CHECK-SAME: moves = true
// CHECK-LABEL: tt.func @looped_bwd(
tt.func @looped(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %starts: !tt.ptr<i32>, %ends: !tt.ptr<i32>) {
  %c2 = arith.constant 2 : i32
  %zero = arith.constant dense<0.0> : tensor<2xf32>
  %id = tt.get_program_id x : i32
  %qs = tt.addptr %starts, %id : !tt.ptr<i32>, i32
  %start = tt.load %qs : !tt.ptr<i32>
  %qe = tt.addptr %ends, %id : !tt.ptr<i32>, i32
  %end = tt.load %qe : !tt.ptr<i32>
  %i = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
  %to = tt.splat %end : i32 -> tensor<2xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %sum = scf.for %j = %start to %end step %c2 iter_args(%acc = %zero) -> (tensor<2xf32>) : i32 {
    %from = tt.splat %j : i32 -> tensor<2xi32>
    %rows = arith.addi %from, %i : tensor<2xi32>
    %inside = arith.cmpi slt, %rows, %to : tensor<2xi32>
    %q = tt.addptr %p, %rows : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    %x = tt.load %q, %inside, %zero : tensor<2x!tt.ptr<f32>>
    %xx = arith.mulf %x, %x : tensor<2xf32>
    %next = arith.addf %acc, %xx : tensor<2xf32>
    scf.yield %next : tensor<2xf32>
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %total = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    tt.reduce.return %0 : f32
  }) : (tensor<2xf32>) -> f32
  tt.store %qy, %total : !tt.ptr<f32>
  tt.return
}

// -----

// A row of an embedding begins anywhere, but is not one of a range: indices
// repeat, and are as many as there is work. What the kernel may write to says
// nothing either.
// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @indices_bwd(
tt.func @indices(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %indices: !tt.ptr<i32>, %n: i32) {
  %id = tt.get_program_id x : i32
  %qs = tt.addptr %indices, %id : !tt.ptr<i32>, i32
  %index = tt.load %qs : !tt.ptr<i32>
  %row = arith.muli %index, %n : i32
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %from = tt.splat %row : i32 -> tensor<4xi32>
  %places = arith.addi %from, %i : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.addptr %p, %places : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %q : tensor<4x!tt.ptr<f32>>
  %first = tt.splat %id : i32 -> tensor<4xi32>
  %out = arith.addi %first, %i : tensor<4xi32>
  %r = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %s = tt.addptr %r, %out : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK: autodiff.gradient <atomic 0 :
// CHECK-LABEL: tt.func @written_bwd(
tt.func @written(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %starts: !tt.ptr<i32>) {
  %id = tt.get_program_id x : i32
  %qs = tt.addptr %starts, %id : !tt.ptr<i32>, i32
  %start = tt.load %qs : !tt.ptr<i32>
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %from = tt.splat %start : i32 -> tensor<4xi32>
  %rows = arith.addi %from, %i : tensor<4xi32>
  %p = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.addptr %p, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %x = tt.load %q : tensor<4x!tt.ptr<f32>>
  %r = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %s = tt.addptr %r, %rows : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %s, %x : tensor<4x!tt.ptr<f32>>
  tt.store %qs, %id : !tt.ptr<i32>
  tt.return
}
