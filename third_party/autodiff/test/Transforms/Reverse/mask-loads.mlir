// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-mask-loads -canonicalize -cse | FileCheck %s

// Positions behind the end are loaded, but not stored: the copy that is
// differentiated does not read them.
// CHECK-LABEL: tt.func @tail(
// CHECK: tt.load %{{[0-9]+}} {autodiff.site
// CHECK-LABEL: tt.func @tail_framed(
// CHECK: %[[END:.*]] = tt.splat %arg2
// CHECK: %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : tensor<8xi32>
// CHECK: tt.load %{{[0-9]+}}, %[[MASK]], %{{.*}} {autodiff.narrowed, autodiff.site
tt.func @tail(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %end = tt.splat %n : i32 -> tensor<8xi32>
  %mask = arith.cmpi slt, %range, %end : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %x, %mask : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// All that is read is stored.
// CHECK-LABEL: tt.func @all(
// CHECK-NOT: tt.func
tt.func @all(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %x : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A selection leaves out what a lane of data says: that is not known of memory.
// CHECK-LABEL: tt.func @data(
// CHECK-NOT: tt.func
tt.func @data(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %x = tt.load %1 : tensor<8x!tt.ptr<f32>>
  %c = arith.cmpf ogt, %x, %zero : tensor<8xf32>
  %y = arith.select %c, %x, %zero : tensor<8xi1>, tensor<8xf32>
  %2 = tt.splat %py : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %3 = tt.addptr %2, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.store %3, %y : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Program p goes through rows 0 … 8p: those behind the end are in programs that
// store none of theirs, but no other program reads them.
// CHECK-LABEL: tt.func @before(
// CHECK-LABEL: tt.func @before_framed(
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: %[[LIVE:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: tt.load %{{[0-9]+}}, %[[LIVE]], %{{.*}} {autodiff.narrowed, autodiff.site
tt.func @before(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %mask = arith.cmpi slt, %pid, %n : i32
  %end = arith.addi %pid, %c1 : i32
  %sum = scf.for %row = %c0 to %end step %c1 iter_args(%s = %zero) -> f32 : i32 {
    %p = tt.addptr %px, %row : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %y = arith.mulf %x, %x : f32
    %t = arith.addf %s, %y : f32
    scf.yield %t : f32
  }
  %q = tt.addptr %py, %pid : !tt.ptr<f32>, i32
  tt.store %q, %sum, %mask : !tt.ptr<f32>
  tt.return
}

// -----

// What a combine function computes, in a loop or not, are no lanes of tiles.
// CHECK-LABEL: tt.func @loop_in_combine_function(
// CHECK: tt.load
// CHECK: "tt.reduce"
// CHECK: scf.for
tt.func @loop_in_combine_function(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
  %s = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %p = tt.addptr %s, %i : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
  %x = tt.load %p : tensor<2x!tt.ptr<f32>>
  %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%u = %a) -> (f32) : i32 {
      %v = arith.maximumf %u, %b : f32
      scf.yield %v : f32
    }
    tt.reduce.return %t : f32
  }) : (tensor<2xf32>) -> f32
  tt.store %py, %r : !tt.ptr<f32>
  tt.return
}
