// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file | FileCheck %s

// Along the last dimension: a loop of vectors, sums in f32, in an order that
// does not depend on what is around.

// CHECK-LABEL: func.func @rows
// CHECK: %[[WHOLE:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<8x32xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<8xf16>)
// CHECK:   vector.transfer_read %[[WHOLE]]
// CHECK:   scf.for {{.*}} -> (vector<16xf32>)
// CHECK:     %[[NEXT:.*]] = vector.transfer_read %[[WHOLE]]
// CHECK:     arith.addf {{.*}}, %[[NEXT]] : vector<16xf32>
// CHECK:   %[[FIRST:.*]] = vector.extract %{{.*}}[0] : f32
// CHECK:   %[[SECOND:.*]] = vector.extract %{{.*}}[1] : f32
// CHECK:   arith.addf %[[FIRST]], %[[SECOND]] : f32
// CHECK:   arith.truncf %{{.*}} : f32 to f16
tt.func public @rows(%x: !tt.ptr<f16>, %out: tensor<8x!tt.ptr<f16>>) {
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<8x32x!tt.ptr<f16>>
  %a = tt.load %xs : tensor<8x32x!tt.ptr<f16>>
  %sum = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%p: f16, %q: f16):
    %s = arith.addf %p, %q : f16
    tt.reduce.return %s : f16
  }) : (tensor<8x32xf16>) -> tensor<8xf16>
  tt.store %out, %sum : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// Short lines: a loop of scalars.

// CHECK-LABEL: func.func @short_rows
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<8xf32>)
// CHECK:   scf.for {{.*}} -> (f32)
// CHECK:     arith.mulf %{{.*}}, %{{.*}} : f32
tt.func public @short_rows(%x: !tt.ptr<f32>, %out: tensor<8x!tt.ptr<f32>>) {
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x16x!tt.ptr<f32>>
  %a = tt.load %xs : tensor<8x16x!tt.ptr<f32>>
  %product = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.mulf %p, %q : f32
    tt.reduce.return %s : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  tt.store %out, %product : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Along another one: a tile updated in place. Maxima are integers' maxima.

// CHECK-LABEL: func.func @columns
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<32xi32>)
// CHECK: scf.for {{.*}} iter_args(%[[RUNNING:.*]] = %[[FIRST]]) -> (tensor<32xi32>)
// CHECK:   linalg.generic {{.*}} outs(%[[RUNNING]] : tensor<32xi32>)
// CHECK:     arith.maxsi
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<32xf32>)
tt.func public @columns(%x: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>) {
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>>
  %a = tt.load %xs : tensor<8x32x!tt.ptr<f32>>
  %max = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.maxnumf %p, %q : f32
    tt.reduce.return %s : f32
  }) : (tensor<8x32xf32>) -> tensor<32xf32>
  tt.store %out, %max : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK-LABEL: func.func @scan
// CHECK: scf.for {{.*}} -> (tensor<8x32xf32>)
// CHECK:   scf.for {{.*}} -> (tensor<8x32xf32>, f32)
// CHECK:     arith.mulf
// CHECK:     tensor.insert
tt.func public @scan(%x: !tt.ptr<f32>, %out: tensor<8x32x!tt.ptr<f32>>) {
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>>
  %a = tt.load %xs : tensor<8x32x!tt.ptr<f32>>
  %prod = "tt.scan"(%a) <{axis = 1 : i32, reverse = true}> ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.mulf %p, %q : f32
    tt.scan.return %s : f32
  }) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  tt.store %out, %prod : tensor<8x32x!tt.ptr<f32>>
  tt.return
}
