// RUN: %gather -split-input-file %s | FileCheck %s

// The index is only loaded, and used, in rows that a flag does not leave out:
// the branch becomes a mask, of the load of the index, too.
// CHECK-LABEL: tt.func @picked_bwd(
// CHECK: %[[FLAG:.*]] = tt.load {{.*}} : !tt.ptr<i1>
// CHECK: %[[COUNTS:.*]] = arith.xori %[[FLAG]], %true
// CHECK: %[[T:.*]] = tt.load %{{.*}}, %[[COUNTS]], %{{.*}} : !tt.ptr<i64>
// CHECK: %[[COVERED:.*]] = arith.cmpi ult, %[[T]],
// CHECK: %[[INSIDE:.*]] = arith.andi %[[COUNTS]], %[[COVERED]]
// CHECK: arith.select %[[INSIDE]]
// CHECK: %[[HIT:.*]] = arith.cmpi eq
// CHECK: arith.select %[[HIT]]
// CHECK: autodiff.accumulate %{{.*}} : tensor<16x!tt.ptr<f32>>
// CHECK-NOT: autodiff.accumulate
// CHECK-LABEL: tt.func @picked_bwd_remainder(
// CHECK: autodiff.accumulate %{{.*}} remainder
tt.func @picked(%px: !tt.ptr<f32>, %pf: !tt.ptr<i1>, %pt: !tt.ptr<i64>, %py: !tt.ptr<f32>) {
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %c16 : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %tile = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %tile, %range : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %xx = arith.mulf %x, %x : tensor<16xf32>
  %sum = "tt.reduce"(%xx) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tt.reduce.return %ab : f32
  }) : (tensor<16xf32>) -> f32
  %qf = tt.addptr %pf, %row : !tt.ptr<i1>, i32
  %flag = tt.load %qf : !tt.ptr<i1>
  %picked = scf.if %flag -> f32 {
    scf.yield %zero : f32
  } else {
    %qt = tt.addptr %pt, %row : !tt.ptr<i64>, i32
    %t = tt.load %qt : !tt.ptr<i64>
    %qp = tt.addptr %base, %t : !tt.ptr<f32>, i64
    %p = tt.load %qp : !tt.ptr<f32>
    %half = arith.mulf %p, %sum : f32
    scf.yield %half : f32
  }
  %y = arith.subf %sum, %picked : f32
  %qy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The first of the programs that share a row picks an element of it: each of
// them could, and adds it if it is one of its own.
// CHECK-LABEL: tt.func @shared_bwd(
// CHECK: %[[T:.*]] = tt.load %{{.*}} : !tt.ptr<i64>
// CHECK: autodiff.size <max(1 * 16 * grid1, 0)>
// CHECK: %[[COVERED:.*]] = arith.cmpi ult, %[[T]],
// CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : tensor<16xi32>
// CHECK: autodiff.accumulate %{{.*}} : tensor<16x!tt.ptr<f32>>
// CHECK-NOT: autodiff.accumulate
// CHECK-LABEL: tt.func @shared_bwd_remainder(
// CHECK: autodiff.accumulate %{{.*}} remainder
tt.func @shared(%px: !tt.ptr<f32>, %pt: !tt.ptr<i64>, %py: !tt.ptr<f32>, %pz: !tt.ptr<f32>, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %row = tt.get_program_id x : i32
  %chunk = tt.get_program_id y : i32
  %start = arith.muli %row, %stride : i32
  %base = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %first = arith.muli %chunk, %c16 : i32
  %firsts = tt.splat %first : i32 -> tensor<16xi32>
  %columns = arith.addi %firsts, %range : tensor<16xi32>
  %tile = tt.splat %base : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %tile, %columns : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %xx = arith.mulf %x, %x : tensor<16xf32>
  %tiley = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %rowy = tt.splat %start : i32 -> tensor<16xi32>
  %placey = arith.addi %rowy, %columns : tensor<16xi32>
  %qy = tt.addptr %tiley, %placey : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %qy, %xx : tensor<16x!tt.ptr<f32>>
  %isfirst = arith.cmpi eq, %chunk, %c0 : i32
  scf.if %isfirst {
    %qt = tt.addptr %pt, %row : !tt.ptr<i64>, i32
    %t = tt.load %qt : !tt.ptr<i64>
    %qp = tt.addptr %base, %t : !tt.ptr<f32>, i64
    %p = tt.load %qp : !tt.ptr<f32>
    %qz = tt.addptr %pz, %row : !tt.ptr<f32>, i32
    tt.store %qz, %p : !tt.ptr<f32>
  }
  tt.return
}
