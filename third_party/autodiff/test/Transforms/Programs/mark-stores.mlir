// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mark-stores | FileCheck %s

// Each program, and each lane, has an element and a value of its own. All that is
// checked may be all of the tensor.
// CHECK: autodiff.stored <1 "{{.*}}" <0 [<8 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>]>] exact = true>
// CHECK-SAME: deciders {{\[\[}}#autodiff.digit<8 x pid0 of program>, #autodiff.digit<1 x ? of axis 0>{{\]\]}} check <bijective 1
// CHECK-LABEL: tt.func @apart(
tt.func @apart(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c8 = arith.constant 8 : i32
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %c8 : i32
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %start : i32 -> tensor<8xi32>
  %i = arith.addi %0, %range : tensor<8xi32>
  %1 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %2 = tt.addptr %1, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %2 : tensor<8x!tt.ptr<f32>>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %4 = tt.addptr %3, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %4, %x : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// All programs store to one element: what they have read themselves.
// CHECK: autodiff.stored <1 "{{.*}}" <0 [] exact = true>
// CHECK-SAME: deciders {{\[\[}}#autodiff.digit<1 x pid0 of program>{{\]\]}}
// CHECK-LABEL: tt.func @one(
tt.func @one(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %id = tt.get_program_id x : i32
  %p = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// What is the same for all programs, nothing decides.
// CHECK: deciders []
// CHECK-LABEL: tt.func @alike(
tt.func @alike(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// What is read from memory that is stored to, too, may be anything.
// CHECK: autodiff.stored <
// CHECK-NOT: deciders
// CHECK-LABEL: tt.func @changed(
tt.func @changed(%py: !tt.ptr<f32>, %one: f32) {
  %y = tt.load %py : !tt.ptr<f32>
  %next = arith.addf %y, %one : f32
  tt.store %py, %next : !tt.ptr<f32>
  tt.return
}

// -----

// Lanes come together in a sum: the row is what counts.
// CHECK: deciders {{\[\[}}#autodiff.digit<1 x pid1 of program>{{\]\]}}
// CHECK-LABEL: tt.func @rows(
tt.func @rows(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c8 = arith.constant 8 : i32
  %row = tt.get_program_id y : i32
  %start = arith.muli %row, %c8 : i32
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %start : i32 -> tensor<8xi32>
  %i = arith.addi %0, %range : tensor<8xi32>
  %1 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %2 = tt.addptr %1, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %2 : tensor<8x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  %p = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %p, %sum : !tt.ptr<f32>
  tt.return
}

// -----

// A mask that is no bound is a choice of bounds: i < 0, or -i < 0. So is the end
// of a loop that programs bound: k - program < 0.
// CHECK: guards {{\[\[\[}}#autodiff.constraint<[<1 x ? of axis 0>] below 0>], [#autodiff.constraint<[<-1 x ? of axis 0>] below 0>{{\]\]}}{{.*}}of loop 0
// CHECK-LABEL: tt.func @but_one(
tt.func @but_one(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant dense<0> : tensor<8xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %mask = arith.cmpi ne, %range, %zero : tensor<8xi32>
  %0 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.splat %x : f32 -> tensor<8xf32>
  scf.for %k = %c0 to %pid step %c1 : i32 {
    tt.store %1, %y, %mask : tensor<8x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Nobody knows where it goes: memory says so.
// CHECK-NOT: autodiff.stored
// CHECK-LABEL: tt.func @scattered(
tt.func @scattered(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %i = tt.load %pi : !tt.ptr<i32>
  %p = tt.addptr %py, %i : !tt.ptr<f32>, i32
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// -----

// Only a launch of ours has places; where they are is not known here.
// CHECK-NOT: autodiff.stored
// CHECK-LABEL: tt.func @place(
tt.func @place(%p: !tt.ptr<f32>, %x: f32) {
  %n = autodiff.programs [#autodiff.expr<grid0>] : i32
  %q = tt.addptr %p, %n : !tt.ptr<f32>, i32
  tt.store %q, %x : !tt.ptr<f32>
  tt.return
}

// -----

// The inner loop begins at the outer one's number, which begins at a program's:
// both are counted from there.
// CHECK: autodiff.stored <1
// CHECK-SAME: deciders {{\[\[}}#autodiff.digit<1 x pid0 of program>, #autodiff.digit<grid0 x ? of loop 0>], [#autodiff.digit<arg2 x pid1 of program>]]
// CHECK-LABEL: tt.func @inner_starts(
tt.func @inner_starts(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.000000e+00 : f32
  %id = tt.get_program_id x : i32
  %shift = tt.get_program_id y : i32
  %programs = tt.get_num_programs x : i32
  scf.for %row = %id to %n step %programs : i32 {
    %from = arith.addi %row, %shift : i32
    %end = arith.addi %from, %c3 : i32
    %sum = scf.for %i = %from to %end step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
      %x = tt.load %p : !tt.ptr<f32>
      %t = arith.addf %s, %x : f32
      scf.yield %t : f32
    }
    %here = arith.muli %shift, %n : i32
    %place = arith.addi %row, %here : i32
    %q = tt.addptr %py, %place : !tt.ptr<f32>, i32
    tt.store %q, %sum : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Both stores have one function, x(i) · x(j), of two places that may swap.
// CHECK: autodiff.stored <1
// CHECK-SAME: deciders {{\[\[}}#autodiff.digit<2 x pid1 of program>, #autodiff.digit<1 x ? of axis 1>], [#autodiff.digit<4 x pid0 of program>, #autodiff.digit<1 x ? of axis 0>]] function 0 : i64 exchange [1, 0]
// CHECK: autodiff.stored <1
// CHECK-SAME: deciders {{\[\[}}#autodiff.digit<2 x pid1 of program>, #autodiff.digit<1 x ? of axis 0>], [#autodiff.digit<4 x pid0 of program>, #autodiff.digit<1 x ? of axis 1>]] function 0 : i64 exchange [1, 0]
// CHECK-LABEL: tt.func @mirrored(
tt.func @mirrored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %p = tt.get_program_id x : i32
  %q = tt.get_program_id y : i32
  %m = arith.muli %p, %c4 : i32
  %k = arith.muli %q, %c2 : i32
  %four = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %two = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
  %ms = tt.splat %m : i32 -> tensor<4xi32>
  %ks = tt.splat %k : i32 -> tensor<2xi32>
  %i = arith.addi %ms, %four : tensor<4xi32>
  %j = arith.addi %ks, %two : tensor<2xi32>
  %x4 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x2 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %pi = tt.addptr %x4, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %pj = tt.addptr %x2, %j : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
  %xi = tt.load %pi : tensor<4x!tt.ptr<f32>>
  %xj = tt.load %pj : tensor<2x!tt.ptr<f32>>
  %a = tt.expand_dims %xi {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %b = tt.expand_dims %xj {axis = 0 : i32} : tensor<2xf32> -> tensor<1x2xf32>
  %as = tt.broadcast %a : tensor<4x1xf32> -> tensor<4x2xf32>
  %bs = tt.broadcast %b : tensor<1x2xf32> -> tensor<4x2xf32>
  %y = arith.mulf %as, %bs : tensor<4x2xf32>
  %ic = tt.expand_dims %i {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %jr = tt.expand_dims %j {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  %ib = tt.broadcast %ic : tensor<4x1xi32> -> tensor<4x2xi32>
  %jb = tt.broadcast %jr : tensor<1x2xi32> -> tensor<4x2xi32>
  %ns = tt.splat %n : i32 -> tensor<4x2xi32>
  %row = arith.muli %ib, %ns : tensor<4x2xi32>
  %at = arith.addi %row, %jb : tensor<4x2xi32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>>
  %py1 = tt.addptr %ys, %at : tensor<4x2x!tt.ptr<f32>>, tensor<4x2xi32>
  tt.store %py1, %y : tensor<4x2x!tt.ptr<f32>>
  %column = arith.muli %jb, %ns : tensor<4x2xi32>
  %mirror = arith.addi %column, %ib : tensor<4x2xi32>
  %py2 = tt.addptr %ys, %mirror : tensor<4x2x!tt.ptr<f32>>, tensor<4x2xi32>
  %py2t = tt.trans %py2 {order = array<i32: 1, 0>} : tensor<4x2x!tt.ptr<f32>> -> tensor<2x4x!tt.ptr<f32>>
  %yt = tt.trans %y {order = array<i32: 1, 0>} : tensor<4x2xf32> -> tensor<2x4xf32>
  tt.store %py2t, %yt : tensor<2x4x!tt.ptr<f32>>
  tt.return
}

// -----

// Some programs store to one half: nothing is checked of both.
// CHECK: autodiff.stored <1 "{{.*}}" <0 [<16 x [<1 x pid0 of program>]>, <1 x [<1 x 8 of axis 0>]>] exact = true>
// CHECK-SAME: function 0
// CHECK-NOT: check
// CHECK: autodiff.stored <1 "{{.*}}" <8 [<16 x [<1 x pid0 of program>] below 2>, <1 x [<1 x 8 of axis 0>]>] exact = true>
// CHECK-NOT: check
// CHECK-LABEL: tt.func @some(
tt.func @some(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c2 = arith.constant 2 : i32
  %pid = tt.get_program_id x : i32
  %lane = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %start = arith.muli %pid, %c16 : i32
  %p0 = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %p1 = tt.addptr %p0, %c8 : !tt.ptr<f32>, i32
  %px0 = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %sx = tt.splat %px0 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %px1 = tt.addptr %sx, %lane : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %px1 : tensor<8x!tt.ptr<f32>>
  %s0 = tt.splat %p0 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q0 = tt.addptr %s0, %lane : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %s1 = tt.splat %p1 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q1 = tt.addptr %s1, %lane : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %q0, %x : tensor<8x!tt.ptr<f32>>
  %is = arith.cmpi slt, %pid, %c2 : i32
  scf.if %is {
    tt.store %q1, %x : tensor<8x!tt.ptr<f32>>
  }
  tt.return
}
