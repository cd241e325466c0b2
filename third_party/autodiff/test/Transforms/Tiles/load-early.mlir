// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-load-early))' %s | FileCheck %s

// A load that does not depend on the sum goes to before it, with its mask and
// address; the other one, whose address does, stays.
// CHECK-LABEL: tt.func @behind_a_sum(
// CHECK: %[[X:.*]] = tt.load
// CHECK-DAG: %[[MASK:.*]] = arith.cmpi slt
// CHECK-DAG: %[[P:.*]] = tt.addptr
// CHECK: tt.load %[[P]], %[[MASK]]
// CHECK: "tt.reduce"(%[[X]])
// CHECK: tt.load
// CHECK: tt.return
tt.func @behind_a_sum(%p: tensor<16x!tt.ptr<i32>>, %n: tensor<16xi32>) -> (tensor<16xi32>, i32) attributes {autodiff.role = "backward"} {
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %x = tt.load %p : tensor<16x!tt.ptr<i32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32>) -> i32
  %mask = arith.cmpi slt, %range, %n : tensor<16xi32>
  %q = tt.addptr %p, %range : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %y = tt.load %q, %mask : tensor<16x!tt.ptr<i32>>
  %sums = tt.splat %sum : i32 -> tensor<16xi32>
  %r = tt.addptr %p, %sums : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %z = tt.load %r : tensor<16x!tt.ptr<i32>>
  %yz = arith.addi %y, %z : tensor<16xi32>
  tt.return %yz, %sum : tensor<16xi32>, i32
}

// Of two sums, it has to wait for the first.
// CHECK-LABEL: tt.func @between_sums(
// CHECK: "tt.reduce"
// CHECK: tt.load
// CHECK: "tt.reduce"
// CHECK-NOT: tt.load
tt.func @between_sums(%p: !tt.ptr<f32>, %x: tensor<16xi32>) -> (f32, i32) attributes {autodiff.role = "backward"} {
  %first = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32>) -> i32
  %square = arith.muli %x, %x : tensor<16xi32>
  %second = "tt.reduce"(%square) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32>) -> i32
  %q = tt.addptr %p, %first : !tt.ptr<f32>, i32
  %y = tt.load %q : !tt.ptr<f32>
  tt.return %y, %second : f32, i32
}

// What a store, or a loop, may have changed is loaded after it.
// CHECK-LABEL: tt.func @behind_a_store(
// CHECK: "tt.reduce"
// CHECK: tt.store
// CHECK: tt.load
tt.func @behind_a_store(%p: !tt.ptr<i32>, %x: tensor<16xi32>) -> i32 attributes {autodiff.role = "backward"} {
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32>) -> i32
  tt.store %p, %sum : !tt.ptr<i32>
  %y = tt.load %p : !tt.ptr<i32>
  tt.return %y : i32
}

// During a loop, registers would hold what is loaded.
// CHECK-LABEL: tt.func @behind_a_loop(
// CHECK: "tt.reduce"
// CHECK: scf.for
// CHECK: tt.load
tt.func @behind_a_loop(%p: !tt.ptr<i32>, %x: tensor<16xi32>, %n: i32) -> (i32, i32) attributes {autodiff.role = "backward"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32>) -> i32
  %s = scf.for %i = %zero to %n step %one iter_args(%t = %sum) -> (i32) : i32 {
    %u = arith.muli %t, %i : i32
    scf.yield %u : i32
  }
  %y = tt.load %p : !tt.ptr<i32>
  tt.return %y, %s : i32, i32
}
