// RUN: triton-autodiff-opt %s -split-input-file -autodiff-lower-descriptors -canonicalize -cse | FileCheck %s

// Out of bounds, on either side, is NaN where the descriptor says so.
// CHECK-LABEL: @load
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f16>, %[[M:.*]]: i32, %[[N:.*]]: i32, %[[S:.*]]: i64, %[[I:.*]]: i32, %[[J:.*]]: i32)
// CHECK-DAG: %[[NAN:.*]] = arith.constant dense<0x7E00> : tensor<2x4xf16>
// CHECK-DAG: tt.splat %[[S]] : i64 -> tensor<2xi64>
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: %[[MASK:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<2x4xi1>
// CHECK: tt.load %{{.*}}, %[[MASK]], %[[NAN]] cacheModifier = cg
// CHECK-NOT: desc
tt.func @load(%x: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32) -> tensor<2x4xf16> {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] {padding = 2 : i32} : <f16>, <2x4xf16>
  %v = tt.descriptor_load %d[%i, %j] cacheModifier = cg : !tt.tensordesc<2x4xf16> -> tensor<2x4xf16>
  tt.return %v : tensor<2x4xf16>
}

// -----

// A tile may lack leading dimensions of the block.
// CHECK-LABEL: @store
// CHECK: tt.reshape %{{.*}} : tensor<4xf32> -> tensor<1x4xf32>
// CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x!tt.ptr<f32>>
tt.func @store(%x: !tt.ptr<f32>, %v: tensor<4xf32>, %n: i32, %s: i64) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%n, %n], [%s, %one] : <f32>, <tensor<1x4xf32>>
  tt.descriptor_store %d[%n, %n], %v : !tt.tensordesc<tensor<1x4xf32>>, tensor<4xf32>
  tt.return
}

// -----

// Rows that do not exist read zero, and nothing is written to them.
// CHECK-LABEL: @rows
// CHECK: arith.extsi %arg1 : tensor<8xi32> to tensor<8xi64>
// CHECK: %[[V:.*]] = tt.load %[[P:.*]], %[[MASK:.*]], %{{.*}} : tensor<8x4x!tt.ptr<f32>>
// CHECK: tt.store %[[P]], %[[V]], %[[MASK]]
tt.func @rows(%x: !tt.ptr<f32>, %r: tensor<8xi32>, %n: i32, %s: i64) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%n, %n], [%s, %one] : <f32>, <tensor<1x4xf32>>
  %v = tt.descriptor_gather %d[%r, %n] : (!tt.tensordesc<tensor<1x4xf32>>, tensor<8xi32>, i32) -> tensor<8x4xf32>
  tt.descriptor_scatter %d[%r, %n], %v : !tt.tensordesc<tensor<1x4xf32>>, tensor<8xi32>, i32, tensor<8x4xf32>
  tt.return
}

// -----

// CHECK-LABEL: @reduce
// CHECK: tt.atomic_rmw fadd, relaxed, gpu
// CHECK: tt.atomic_rmw umax, relaxed, gpu
tt.func @reduce(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>, %v: tensor<4xf32>, %u: tensor<4xi32>, %n: i32) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %x, [%n], [%one] : <f32>, <4xf32>
  tt.descriptor_reduce add, %d[%n], %v : !tt.tensordesc<4xf32>, tensor<4xf32>
  %e = tt.make_tensor_descriptor %y, [%n], [%one] : <i32>, <4xui32>
  tt.descriptor_reduce max, %e[%n], %u : !tt.tensordesc<4xui32>, tensor<4xi32>
  tt.return
}

// -----

// An argument: sizes and strides are those that follow it, rows are contiguous.
// CHECK-LABEL: @argument
// CHECK-SAME: (%[[BASE:.*]]: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[NAN:.*]]: i1, %[[M:.*]]: i32, %[[N:.*]]: i32, %[[S:.*]]: i64 {tt.divisibility = 4 : i32}, %{{.*}}: i64)
// CHECK: tt.splat %[[BASE]]
// CHECK: tt.splat %[[S]] : i64 -> tensor<2xi64>
// CHECK: %[[PAD:.*]] = arith.select %[[NAN]], %{{.*}}, %{{.*}} : f32
// CHECK: %[[OTHER:.*]] = tt.splat %[[PAD]]
// CHECK: tt.load %{{.*}}, %{{.*}}, %[[OTHER]]
tt.func public @argument(%d: !tt.tensordesc<2x4xf32>, %m: i32, %n: i32, %s: i64, %t: i64) {
  %zero = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%zero, %zero] : !tt.tensordesc<2x4xf32> -> tensor<2x4xf32>
  tt.descriptor_store %d[%m, %n], %v : !tt.tensordesc<2x4xf32>, tensor<2x4xf32>
  tt.return
}

// -----

// What is known of it in a launch: rows as long as the block, zeros around.
// CHECK-LABEL: @known
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.0{{.*}}> : tensor<2x4xf32>
// CHECK-DAG: %[[END:.*]] = arith.constant dense<4> : tensor<4xi64>
// CHECK: arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK: tt.load %{{.*}}, %{{.*}}, %[[ZEROS]]
tt.func public @known(%d: !tt.tensordesc<2x4xf32> {autodiff.known = 0 : i64}, %m: i32, %n: i32 {autodiff.known = 4 : i64}, %s: i64, %t: i64) {
  %zero = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%zero, %zero] : !tt.tensordesc<2x4xf32> -> tensor<2x4xf32>
  tt.descriptor_store %d[%m, %zero], %v : !tt.tensordesc<2x4xf32>, tensor<2x4xf32>
  tt.return
}

// -----

// Both have as many rows, so lanes are inside of both or of none.
// CHECK-LABEL: @same
// CHECK-SAME: %{{.*}}: !tt.ptr<f32> {{.*}}, %{{.*}}: i1, %[[N:.*]]: i32, %{{.*}}: i64, %{{.*}}: !tt.ptr<f32> {{.*}}, %{{.*}}: i1, %{{[a-z0-9]*}}: i32, %{{.*}}: i64
// CHECK: %[[END:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: tt.load %{{.*}}, %[[INSIDE:[a-z0-9]*]],
// CHECK: tt.store %{{.*}}, %{{.*}}, %[[INSIDE]]
tt.func public @same(%d: !tt.tensordesc<4xf32>, %n: i32 {autodiff.same = 2 : i64}, %s: i64, %e: !tt.tensordesc<4xf32>, %m: i32 {autodiff.same = 2 : i64}, %t: i64) {
  %zero = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%zero] : !tt.tensordesc<4xf32> -> tensor<4xf32>
  tt.descriptor_store %e[%zero], %v : !tt.tensordesc<4xf32>, tensor<4xf32>
  tt.return
}

// -----

// Branches choose descriptors, loops carry them, functions take them.
// CHECK-LABEL: @control
// CHECK: %[[SIZE:.*]] = arith.select %{{.*}}, %arg2, %arg3 : i32
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %arg2, %[[B:.*]] = %[[SIZE]]) -> (i32, i32)
// CHECK: tt.load
// CHECK: tt.store
// CHECK: scf.yield %[[B]], %[[A]]
tt.func public @control(%x: !tt.ptr<f32>, %c: i1, %m: i32, %n: i32) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %four = arith.constant 4 : i32
  %d = tt.make_tensor_descriptor %x, [%m], [%one] : <f32>, <4xf32>
  %e = tt.make_tensor_descriptor %x, [%n], [%one] : <f32>, <4xf32>
  %f = scf.if %c -> !tt.tensordesc<4xf32> {
    scf.yield %d : !tt.tensordesc<4xf32>
  } else {
    scf.yield %e : !tt.tensordesc<4xf32>
  }
  %r:2 = scf.for %i = %zero to %n step %four iter_args(%a = %d, %b = %f) -> (!tt.tensordesc<4xf32>, !tt.tensordesc<4xf32>) : i32 {
    tt.call @double(%a, %i) : (!tt.tensordesc<4xf32>, i32) -> ()
    scf.yield %b, %a : !tt.tensordesc<4xf32>, !tt.tensordesc<4xf32>
  }
  tt.return
}
tt.func private @double(%d: !tt.tensordesc<4xf32>, %i: i32) {
  %v = tt.descriptor_load %d[%i] : !tt.tensordesc<4xf32> -> tensor<4xf32>
  %w = arith.addf %v, %v : tensor<4xf32>
  tt.descriptor_store %d[%i], %w : !tt.tensordesc<4xf32>, tensor<4xf32>
  tt.return
}
