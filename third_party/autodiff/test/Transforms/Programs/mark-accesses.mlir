// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mark-accesses | FileCheck %s

// What is loaded from one argument at two places, and stored to another one.
// Equal accesses are noted once.
// CHECK: autodiff.accessed <0 [<0 [<1 x [<1 x pid0 of program>]>] exact = true>, <arg2 [<1 x [<1 x pid0 of program>]>] exact = true>]>
// CHECK-NEXT: autodiff.accessed <1 [<0 [<1 x [<1 x pid0 of program>]>] exact = true>]>
// CHECK-LABEL: tt.func @behind(
tt.func @behind(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %id = tt.get_program_id x : i32
  %p = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %q = tt.addptr %p, %n : !tt.ptr<f32>, i32
  %a = tt.load %p : !tt.ptr<f32>
  %b = tt.load %q : !tt.ptr<f32>
  %c = arith.mulf %a, %b : f32
  %r = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %old = tt.load %r : !tt.ptr<f32>
  %d = arith.addf %c, %old : f32
  tt.store %r, %d : !tt.ptr<f32>
  tt.return
}

// -----

// Elements that are found in memory, and those of one of two arguments: nobody
// knows where.
// CHECK: autodiff.accessed <0 [<0 [] exact = true>]>
// CHECK-NEXT: autodiff.accessed {{<1 \[\?\]>}}
// CHECK-NEXT: autodiff.accessed {{<2 \[\?\]>}}
// CHECK-LABEL: tt.func @somewhere(
tt.func @somewhere(%pi: !tt.ptr<i32>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.load %pi : !tt.ptr<i32>
  %zero = arith.constant 0 : i32
  %asked = arith.cmpi sgt, %i, %zero : i32
  %p = arith.select %asked, %px, %py : !tt.ptr<f32>
  %a = tt.load %p : !tt.ptr<f32>
  %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
  tt.store %q, %a : !tt.ptr<f32>
  tt.return
}
