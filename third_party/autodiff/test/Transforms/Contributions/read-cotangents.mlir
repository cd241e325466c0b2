// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse -canonicalize -cse \
// RUN:   -autodiff-read-cotangents | FileCheck %s
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-reverse -canonicalize -cse \
// RUN:   -autodiff-read-cotangents=repeated=1 | FileCheck %s --check-prefix=REPEATED

// Each program stores to an address of its own, given the check: the upstream
// gradient is read from the caller's tensor.
// CHECK: autodiff.check <cotangent 1> <distinct
// CHECK-LABEL: tt.func @copy_bwd(
// CHECK-SAME: %arg2: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 1>}
// CHECK-NOT: autodiff.upstream
// CHECK: %[[P:.*]] = tt.addptr %arg2,
// CHECK: tt.load %[[P]]
// REPEATED-LABEL: tt.func @copy_bwd(
// REPEATED: autodiff.upstream
tt.func @copy(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %x : !tt.ptr<f32>
  tt.return
}

// -----

// Two stores, apart by a distance that the launch knows: distinct, if the check
// holds.
// CHECK: autodiff.check <cotangent 1> <distinct {{.*}}<arg2 x [<1 x 2>]>
// CHECK-LABEL: tt.func @twice_bwd(
// CHECK-NOT: autodiff.upstream
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %i: i32) {
  %x = tt.load %px : !tt.ptr<f32>
  %qy = tt.addptr %py, %i : !tt.ptr<f32>, i32
  %xx = arith.mulf %x, %x : f32
  tt.store %qy, %xx : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// What the first store left there has no gradient: the upstream gradient is
// taken, not read.
// CHECK-LABEL: tt.func @hidden_bwd(
// CHECK: autodiff.upstream
tt.func @hidden(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %i: i32, %n: i32) {
  %x = tt.load %px : !tt.ptr<f32>
  %qy = tt.addptr %py, %i : !tt.ptr<f32>, i32
  %xx = arith.mulf %x, %x : f32
  tt.store %qy, %xx : !tt.ptr<f32>
  %pid = tt.get_program_id x : i32
  %py2 = tt.addptr %py, %pid : !tt.ptr<f32>, i32
  tt.store %py2, %x : !tt.ptr<f32>
  tt.return
}

// -----

// What is loaded before all of it is overwritten has a gradient of its own.
// CHECK: autodiff.check <cotangent 0> <bijective
// CHECK-LABEL: tt.func @overwritten_bwd(
// CHECK-NOT: autodiff.upstream
// CHECK: %[[DY:.*]] = tt.load
// CHECK: %[[DX:.*]] = arith.mulf %[[DY]], %arg1
// CHECK: autodiff.accumulate %{{.*}}, %[[DX]]
// REPEATED-LABEL: tt.func @overwritten_bwd(
tt.func @overwritten(%px: !tt.ptr<f32>, %a: f32) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %y = arith.mulf %x, %a : f32
  tt.store %qx, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Elements that a mask leaves out keep what they have, and its gradient.
// CHECK-LABEL: tt.func @some_bwd(
// CHECK: autodiff.upstream
tt.func @some(%px: !tt.ptr<f32>, %a: f32, %c: i1) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %y = arith.mulf %x, %a : f32
  tt.store %qx, %y, %c : !tt.ptr<f32>
  tt.return
}

// -----

// Halves of a tile, which one mask bounds: the index counts them.
// CHECK: autodiff.check <cotangent 1> <distinct {{.*}}<1 x [<8 x grid0>, <1 x 4>, <4 x 2>] below arg2>
// CHECK-LABEL: tt.func @halves_bwd(
// CHECK-NOT: autodiff.upstream
tt.func @halves(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %x = tt.load %px : !tt.ptr<f32>
  %id = tt.get_program_id x : i32
  %c8 = arith.constant 8 : i32
  %c4 = arith.constant dense<4> : tensor<4xi32>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %start = arith.muli %id, %c8 : i32
  %starts = tt.splat %start : i32 -> tensor<4xi32>
  %left = arith.addi %starts, %range : tensor<4xi32>
  %right = arith.addi %left, %c4 : tensor<4xi32>
  %limit = tt.splat %n : i32 -> tensor<4xi32>
  %inleft = arith.cmpi slt, %left, %limit : tensor<4xi32>
  %inright = arith.cmpi slt, %right, %limit : tensor<4xi32>
  %py4 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %qleft = tt.addptr %py4, %left : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %qright = tt.addptr %py4, %right : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %y = tt.splat %x : f32 -> tensor<4xf32>
  tt.store %qleft, %y, %inleft : tensor<4x!tt.ptr<f32>>
  tt.store %qright, %y, %inright : tensor<4x!tt.ptr<f32>>
  tt.return
}
