// RUN: triton-autodiff-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: @addptr_zero
// CHECK-NEXT: tt.return %arg0, %arg1
tt.func @addptr_zero(%p: !tt.ptr<f32>, %t: tensor<4x!tt.ptr<f32>>) -> (!tt.ptr<f32>, tensor<4x!tt.ptr<f32>>) {
  %c = arith.constant 0 : i32
  %z = arith.constant dense<0> : tensor<4xi64>
  %0 = tt.addptr %p, %c : !tt.ptr<f32>, i32
  %1 = tt.addptr %t, %z : tensor<4x!tt.ptr<f32>>, tensor<4xi64>
  tt.return %0, %1 : !tt.ptr<f32>, tensor<4x!tt.ptr<f32>>
}

// -----

// CHECK-LABEL: @constants
// CHECK-DAG: %[[F:.*]] = arith.constant dense<2.000000e+00> : tensor<4x8xf32>
// CHECK-DAG: %[[I:.*]] = arith.constant dense<3> : tensor<1xi32>
// CHECK-DAG: %[[T:.*]] = arith.constant dense<true> : tensor<8x4xi1>
// CHECK: tt.return %[[F]], %[[I]], %[[T]]
tt.func @constants() -> (tensor<4x8xf32>, tensor<1xi32>, tensor<8x4xi1>) {
  %f = arith.constant 2.0 : f32
  %t = arith.constant true
  %0 = tt.splat %f : f32 -> tensor<8xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %2 = tt.broadcast %1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = tt.make_range {end = 4 : i32, start = 3 : i32} : tensor<1xi32>
  %4 = tt.splat %t : i1 -> tensor<4x8xi1>
  %5 = tt.trans %4 {order = array<i32: 1, 0>} : tensor<4x8xi1> -> tensor<8x4xi1>
  tt.return %2, %3, %5 : tensor<4x8xf32>, tensor<1xi32>, tensor<8x4xi1>
}

// -----

// CHECK-LABEL: @splats
// CHECK-DAG: %[[A:.*]] = tt.splat %arg0 : f32 -> tensor<4x8xf32>
// CHECK-DAG: %[[B:.*]] = tt.splat %arg0 : f32 -> tensor<8x4xf32>
// CHECK-DAG: %[[C:.*]] = tt.splat %arg0 : f32 -> tensor<32xf32>
// CHECK: tt.return %[[A]], %[[B]], %[[C]], %arg0
tt.func @splats(%x: f32) -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<32xf32>, f32) {
  %0 = tt.splat %x : f32 -> tensor<8xf32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %2 = tt.broadcast %1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %3 = tt.trans %2 {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %4 = tt.reshape %2 : tensor<4x8xf32> -> tensor<32xf32>
  %5 = tt.splat %x : f32 -> tensor<1xf32>
  %6 = tt.unsplat %5 : tensor<1xf32>
  tt.return %2, %3, %4, %6 : tensor<4x8xf32>, tensor<8x4xf32>, tensor<32xf32>, f32
}

// -----

// CHECK-LABEL: @identities
// CHECK-NEXT: tt.return %arg0, %arg0, %arg0, %arg0, %arg0
tt.func @identities(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tt.broadcast %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = tt.reshape %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = tt.trans %x {order = array<i32: 0, 1>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %4 = tt.trans %3 {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  %5 = tt.join %x, %x : tensor<4x8xf32> -> tensor<4x8x2xf32>
  %6, %7 = tt.split %5 : tensor<4x8x2xf32> -> tensor<4x8xf32>
  tt.return %0, %1, %2, %4, %6 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A reshape that may reorder is no identity, and its freedom is inherited.
// CHECK-LABEL: @reorder
// CHECK: %[[A:.*]] = tt.reshape %arg0 allow_reorder : tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK: %[[B:.*]] = tt.reshape %arg0 allow_reorder : tensor<4x8xf32> -> tensor<8x4xf32>
tt.func @reorder(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  %0 = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<32xf32>
  %2 = tt.reshape %1 : tensor<32xf32> -> tensor<8x4xf32>
  tt.return %0, %2 : tensor<4x8xf32>, tensor<8x4xf32>
}

// -----

// Where a reshape goes does not depend on dimensions of one element.
// CHECK-LABEL: @expanded
// CHECK: %[[R:.*]] = tt.reshape %arg0 allow_reorder : tensor<32xf32> -> tensor<4x8xf32>
// CHECK: tt.return %arg0, %[[R]]
tt.func @expanded(%x: tensor<32xf32>) -> (tensor<32xf32>, tensor<4x8xf32>) {
  %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>
  %1 = tt.reshape %0 : tensor<32x1xf32> -> tensor<32xf32>
  %2 = tt.expand_dims %0 {axis = 0 : i32} : tensor<32x1xf32> -> tensor<1x32x1xf32>
  %3 = tt.reshape %2 allow_reorder : tensor<1x32x1xf32> -> tensor<4x8xf32>
  tt.return %1, %3 : tensor<32xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @compositions
// CHECK-DAG: %[[T:.*]] = tt.trans %arg0 {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
// CHECK-DAG: %[[R:.*]] = tt.reshape %arg0 : tensor<2x4x8xf32> -> tensor<32x2xf32>
// CHECK-DAG: %[[E:.*]] = tt.expand_dims %arg1 {axis = 0 : i32} : tensor<4x1xf32> -> tensor<1x4x1xf32>
// CHECK-DAG: %[[B:.*]] = tt.broadcast %[[E]] : tensor<1x4x1xf32> -> tensor<2x4x8xf32>
// CHECK: tt.return %[[T]], %[[R]], %[[B]]
tt.func @compositions(%x: tensor<2x4x8xf32>, %y: tensor<4x1xf32>) -> (tensor<8x2x4xf32>, tensor<32x2xf32>, tensor<2x4x8xf32>) {
  %0 = tt.trans %x {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %1 = tt.trans %0 {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  %2 = tt.reshape %x : tensor<2x4x8xf32> -> tensor<64xf32>
  %3 = tt.reshape %2 : tensor<64xf32> -> tensor<32x2xf32>
  %4 = tt.broadcast %y : tensor<4x1xf32> -> tensor<4x8xf32>
  %5 = tt.expand_dims %4 {axis = 0 : i32} : tensor<4x8xf32> -> tensor<1x4x8xf32>
  %6 = tt.broadcast %5 : tensor<1x4x8xf32> -> tensor<2x4x8xf32>
  tt.return %1, %3, %6 : tensor<8x2x4xf32>, tensor<32x2xf32>, tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: @masks
// CHECK-NOT: arith.constant
// CHECK: %[[A:.*]] = tt.load %arg0 evictionPolicy = evict_last : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.store %arg0, %[[A]] : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return %[[A]], %arg1
tt.func @masks(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %true = arith.constant dense<true> : tensor<4xi1>
  %false = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.load %p, %true, %o evictionPolicy = evict_last : tensor<4x!tt.ptr<f32>>
  %1 = tt.load %p, %false, %o : tensor<4x!tt.ptr<f32>>
  tt.store %p, %0, %true : tensor<4x!tt.ptr<f32>>
  tt.store %p, %1, %false : tensor<4x!tt.ptr<f32>>
  tt.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What is not read may go, unless it is volatile or writes.
// CHECK-LABEL: @dead
// CHECK-NEXT: tt.load %arg0 {isVolatile = true}
// CHECK-NEXT: tt.atomic_rmw
// CHECK-NEXT: tt.elementwise_inline_asm "keep"
// CHECK-NEXT: tt.return
tt.func @dead(%p: !tt.ptr<f32>, %t: tensor<4xf32>, %d: !tt.tensordesc<4xf32>, %i: i32, %x: f32) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %2 = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  %3 = tt.descriptor_load %d[%i] : !tt.tensordesc<4xf32> -> tensor<4xf32>
  %4 = tt.get_program_id x : i32
  %5 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  %6 = tt.elementwise_inline_asm "drop" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %t : tensor<4xf32> -> tensor<4xf32>
  %7 = tt.elementwise_inline_asm "keep" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %t : tensor<4xf32> -> tensor<4xf32>
  %8 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

// CHECK-LABEL: @casts
// CHECK-DAG: %[[H:.*]] = arith.constant dense<1.500000e+00> : tensor<4xf8E5M2>
// CHECK-DAG: %[[M:.*]] = arith.constant 2 : i32
// CHECK: tt.return %arg0, %arg0, %[[H]], %[[M]]
tt.func @casts(%p: !tt.ptr<f32>) -> (!tt.ptr<f32>, !tt.ptr<f32>, tensor<4xf8E5M2>, i32) {
  %0 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %1 = tt.int_to_ptr %0 : i64 -> !tt.ptr<f32>
  %2 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i8>
  %3 = tt.bitcast %2 : !tt.ptr<i8> -> !tt.ptr<f32>
  %c = arith.constant dense<1.5> : tensor<4xf32>
  %4 = tt.fp_to_fp %c, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  %a = arith.constant -1 : i32
  %b = arith.constant 3 : i32
  %5 = tt.mulhiui %a, %b : i32
  tt.return %1, %3, %4, %5 : !tt.ptr<f32>, !tt.ptr<f32>, tensor<4xf8E5M2>, i32
}
