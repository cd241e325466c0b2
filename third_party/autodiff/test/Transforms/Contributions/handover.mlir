// RUN: %interchange %s | FileCheck %s

// A product with an epilogue. The cotangent of the sum takes two loads for each
// program and iteration: the kernel that stays leaves it in scratch memory,
// once for both kernels that need it.
// CHECK: autodiff.buffer {{[0-9]}} <handover
// CHECK-NOT: <handover
// CHECK-LABEL: tt.func @product_bwd(
// CHECK-SAME: %arg5: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer
// CHECK-NOT: <handover
// CHECK: %[[C:.*]] = arith.mulf
// CHECK: %[[SLOT:.*]] = tt.addptr %arg5,
// CHECK: tt.store %[[SLOT]], %[[C]]
// CHECK-NOT: scf.for
// CHECK-LABEL: tt.func @product_bwd_interchanged0(
// CHECK: scf.for
// CHECK: %[[SLOT:.*]] = tt.addptr %arg5,
// CHECK: %[[C:.*]] = tt.load %[[SLOT]]
// CHECK: arith.mulf %[[C]],
// CHECK: autodiff.accumulate {{.*}} {argument = 0
// CHECK-LABEL: tt.func @product_bwd_interchanged1(
// CHECK: %[[SLOT:.*]] = tt.addptr %arg5,
// CHECK: %[[C:.*]] = tt.load %[[SLOT]]
// CHECK: autodiff.accumulate {{.*}} {argument = 1
tt.func @product(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %row = tt.get_program_id x : i32
  %column = tt.get_program_id y : i32
  %ra = arith.muli %row, %n : i32
  %rb = arith.muli %column, %n : i32
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %ja = arith.addi %ra, %j : i32
    %qa = tt.addptr %pa, %ja : !tt.ptr<f32>, i32
    %a = tt.load %qa : !tt.ptr<f32>
    %jb = arith.addi %rb, %j : i32
    %qb = tt.addptr %pb, %jb : !tt.ptr<f32>, i32
    %b = tt.load %qb : !tt.ptr<f32>
    %ab = arith.mulf %a, %b : f32
    %next = arith.addf %acc, %ab : f32
    scf.yield %next : f32
  }
  %y = math.exp %sum : f32
  %width = tt.get_num_programs y : i32
  %ry = arith.muli %row, %width : i32
  %o = arith.addi %ry, %column : i32
  %qy = tt.addptr %py, %o : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}
