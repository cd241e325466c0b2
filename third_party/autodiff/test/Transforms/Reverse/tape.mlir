// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-place-tapes -canonicalize -cse | FileCheck %s

// The factor's adjoint needs the carried product from every iteration: n
// entries per program, stored at the iteration's number by the recomputed loop
// and loaded at it by the reversed one, with a barrier between. A slot is
// iteration · programs + program, program = (z · ny + y) · nx + x. The sum beside
// it is linear: nobody pops its tape, so it gets none, and is not summed again.
// CHECK: autodiff.buffer 0 <tape "tape0" : f32, max(arg3, 0) * (grid2 * (grid1 * (grid0 *
// CHECK-LABEL: tt.func @product_bwd(
// CHECK-SAME: %arg4: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>, tt.divisibility = 16 : i32}) attributes
// CHECK: scf.for %[[I:[^ ,:)]+]] = {{.*}} iter_args(%[[A:[^ ,:)]+]] = %{{[0-9]+}})
// CHECK-DAG: %[[NZ:.*]] = tt.get_num_programs z
// CHECK-DAG: %[[LNZ:.*]] = arith.extsi %[[NZ]]
// CHECK-DAG: %[[Z:.*]] = tt.get_program_id z
// CHECK-DAG: %[[LZ:.*]] = arith.extsi %[[Z]]
// CHECK-DAG: %[[NY:.*]] = tt.get_num_programs y
// CHECK-DAG: %[[LNY:.*]] = arith.extsi %[[NY]]
// CHECK-DAG: %[[Y:.*]] = tt.get_program_id y
// CHECK-DAG: %[[LY:.*]] = arith.extsi %[[Y]]
// CHECK-DAG: %[[NX:.*]] = tt.get_num_programs x
// CHECK-DAG: %[[LNX:.*]] = arith.extsi %[[NX]]
// CHECK-DAG: %[[X:.*]] = tt.get_program_id x
// CHECK-DAG: %[[LX:.*]] = arith.extsi %[[X]]
// CHECK-DAG: %[[ZY:.*]] = arith.muli %[[LZ]], %[[LNY]]
// CHECK-DAG: %[[ZYY:.*]] = arith.addi %[[ZY]], %[[LY]]
// CHECK-DAG: %[[ZYX:.*]] = arith.muli %[[ZYY]], %[[LNX]]
// CHECK-DAG: %[[PROGRAM:.*]] = arith.addi %[[ZYX]], %[[LX]]
// CHECK-DAG: %[[NZY:.*]] = arith.muli %[[LNZ]], %[[LNY]]
// CHECK-DAG: %[[PROGRAMS:.*]] = arith.muli %[[NZY]], %[[LNX]]
// CHECK-DAG: %[[E:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK-DAG: %[[R:.*]] = arith.muli %[[E]], %[[PROGRAMS]]
// CHECK-DAG: %[[SLOT:.*]] = arith.addi %[[R]], %[[PROGRAM]]
// CHECK: %[[P:.*]] = tt.addptr %arg4, %[[SLOT]]
// CHECK: tt.store %[[P]], %[[A]]
// CHECK-NOT: tt.store
// CHECK: gpu.barrier
// CHECK: scf.for %[[J:[^ ,:)]+]] =
// CHECK: %[[K:.*]] = arith.subi %{{.*}}, %[[J]] :
// CHECK-DAG: %[[F:.*]] = arith.extsi %[[K]] : i32 to i64
// CHECK: %[[S:.*]] = arith.muli %[[F]],
// CHECK: %[[BACK:.*]] = arith.addi %[[S]],
// CHECK: %[[Q:.*]] = tt.addptr %arg4, %[[BACK]]
// CHECK: %[[OLD:.*]] = tt.load %[[Q]]
// CHECK: arith.mulf {{.*}}, %[[OLD]]
// CHECK-NOT: autodiff.p{{[uo]}}
// CHECK: tt.return
tt.func @product(%ph: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h0 = tt.load %ph : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %h:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h0, %s = %h0) -> (f32, f32) : i32 {
    %b = arith.mulf %a, %w : f32
    %t = arith.addf %s, %a : f32
    scf.yield %b, %t : f32, f32
  }
  %y = arith.addf %h#0, %h#1 : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
