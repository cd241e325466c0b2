// RUN: triton-autodiff-opt %s -cse | FileCheck %s

// Equal reads are one read as long as nothing writes in between.
// CHECK-LABEL: @loads
// CHECK: %[[A:.*]] = tt.load
// CHECK-NOT: tt.load
// CHECK: arith.addf %[[A]], %[[A]]
// CHECK: tt.store
// CHECK: tt.load
// CHECK: tt.store
tt.func @loads(%p: !tt.ptr<f32>) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.load %p : !tt.ptr<f32>
  %2 = arith.addf %0, %1 : f32
  tt.store %p, %2 : !tt.ptr<f32>
  %3 = tt.load %p : !tt.ptr<f32>
  tt.store %p, %3 : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: @volatile
// CHECK-COUNT-2: tt.load
tt.func @volatile(%p: !tt.ptr<f32>) -> f32 {
  %0 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %1 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %2 = arith.addf %0, %1 : f32
  tt.return %2 : f32
}

// CHECK-LABEL: @pure
// CHECK-COUNT-1: tt.get_program_id x
// CHECK-COUNT-1: "tt.reduce"
// CHECK-COUNT-1: tt.dot
// CHECK-NOT: tt.dot
// CHECK: tt.return
tt.func @pure(%a: tensor<16x16xf32>) -> (i32, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = tt.get_program_id x : i32
  %1 = tt.get_program_id x : i32
  %2 = arith.addi %0, %1 : i32
  %3 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %4 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %5 = tt.dot %a, %a, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %6 = tt.dot %a, %a, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %2, %3, %4, %5, %6 : i32, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}

// Each atomic happens.
// CHECK-LABEL: @atomics
// CHECK-COUNT-2: tt.atomic_rmw
tt.func @atomics(%p: !tt.ptr<f32>, %x: f32) {
  %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  %1 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  tt.return
}
