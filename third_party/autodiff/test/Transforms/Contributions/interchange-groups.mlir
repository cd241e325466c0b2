// RUN: %interchange -split-input-file %s | FileCheck %s

// A head has its own query; two heads share a key. A program of the interchanged
// kernel has one iteration and one pair of heads, and runs over the heads of
// the pair and the programs of each.
// CHECK: autodiff.launch @heads_bwd_interchanged0 grid [{{.*}}(maxpids(div(pid1, 2)) + 1)
// CHECK-LABEL: tt.func @heads_bwd_interchanged0(
// CHECK: autodiff.size <maxpids(rem(pid1, 2)) + 1>
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK: %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[PLACE]]
// CHECK: arith.muli %[[HEAD]],
// CHECK: autodiff.accumulate
// CHECK-SAME: argument = 1
tt.func @heads(%pq: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %head = tt.get_program_id y : i32
  %width = tt.get_num_programs x : i32
  %pair = arith.divsi %head, %c2 : i32
  %rq = arith.muli %head, %width : i32
  %oq = arith.addi %rq, %id : i32
  %qq = tt.addptr %pq, %oq : !tt.ptr<f32>, i32
  %q = tt.load %qq : !tt.ptr<f32>
  %rk = arith.muli %pair, %n : i32
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %ok = arith.addi %rk, %j : i32
    %qk = tt.addptr %pk, %ok : !tt.ptr<f32>, i32
    %k = tt.load %qk : !tt.ptr<f32>
    %qk2 = arith.mulf %q, %k : f32
    %e = math.exp %qk2 : f32
    %next = arith.addf %acc, %e : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %oq : !tt.ptr<f32>, i32
  tt.store %qy, %sum : !tt.ptr<f32>
  tt.return
}
