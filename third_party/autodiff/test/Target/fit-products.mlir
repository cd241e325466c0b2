// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-fit-products,canonicalize,cse))' %s | FileCheck %s
// RUN: sed s/sm_90/sm_120/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-fit-products,canonicalize,cse))' | FileCheck %s --check-prefix=SM120
// RUN: sed s/sm_90/cpu/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-fit-products,canonicalize,cse))' | FileCheck %s --check-prefix=CPU

module attributes {autodiff.target = "sm_90"} {

// Few multiply-adds are made in float32, without the matrix unit.
// CHECK-LABEL: tt.func @few(
// CHECK-DAG: %[[A:.*]] = arith.extf %arg0 : tensor<16x4xbf16> to tensor<16x4xf32>
// CHECK-DAG: %[[B:.*]] = arith.extf %arg1 : tensor<4x16xbf16> to tensor<4x16xf32>
// CHECK: %[[D:.*]] = tt.dot %[[A]], %[[B]], %arg2 : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
// CHECK: tt.return %[[D]]
// CPU-LABEL: tt.func @few(
// CPU: tt.dot %arg0, %arg1, %arg2, inputPrecision = tf32 : tensor<16x4xbf16>
tt.func @few(%a: tensor<16x4xbf16>, %b: tensor<4x16xbf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x4xbf16> * tensor<4x16xbf16> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// Where there are more, there are zeros between the elements that are summed.
// CHECK-LABEL: tt.func @many(
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<{{.*}}xf16>
// CHECK: %[[N:.*]] = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[N]], %{{.*}} : tensor<2xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<128x8x2xi1>, tensor<128x8x2xf16>
// CHECK: %[[A:.*]] = tt.reshape %{{.*}} : tensor<128x8x2xf16> -> tensor<128x16xf16>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x2x128xi1>, tensor<8x2x128xf16>
// CHECK: %[[B:.*]] = tt.reshape %{{.*}} : tensor<8x2x128xf16> -> tensor<16x128xf16>
// CHECK: tt.dot %[[A]], %[[B]], %arg2, inputPrecision = tf32 : tensor<128x16xf16> * tensor<16x128xf16> -> tensor<128x128xf32>
tt.func @many(%a: tensor<128x8xf16>, %b: tensor<8x128xf16>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<128x8xf16> * tensor<8x128xf16> -> tensor<128x128xf32>
  tt.return %d : tensor<128x128xf32>
}

// What float32 does not hold is multiplied by the matrix unit.
// CHECK-LABEL: tt.func @doubles(
// CHECK: tt.reshape %{{.*}} : tensor<16x2x8xf64> -> tensor<16x16xf64>
// CHECK: tt.reshape %{{.*}} : tensor<2x8x16xf64> -> tensor<16x16xf64>
// CHECK: tt.dot %{{.*}} : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
// SM120-LABEL: tt.func @doubles(
// SM120: tt.dot %{{.*}} : tensor<16x4xf64> * tensor<4x16xf64> -> tensor<16x16xf64>
// CPU-LABEL: tt.func @doubles(
// CPU: tt.dot %arg0, %arg1, %arg2
tt.func @doubles(%a: tensor<16x2xf64>, %b: tensor<2x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c : tensor<16x2xf64> * tensor<2x16xf64> -> tensor<16x16xf64>
  tt.return %d : tensor<16x16xf64>
}

// A batch of them, and a sum in half precision.
// CHECK-LABEL: tt.func @batch(
// CHECK: %[[C:.*]] = arith.extf %arg2 : tensor<2x16x16xf16> to tensor<2x16x16xf32>
// CHECK: %[[D:.*]] = tt.dot %{{.*}}, %{{.*}}, %[[C]] : tensor<2x16x1xf32> * tensor<2x1x16xf32> -> tensor<2x16x16xf32>
// CHECK: arith.truncf %[[D]] : tensor<2x16x16xf32> to tensor<2x16x16xf16>
tt.func @batch(%a: tensor<2x16x1xf16>, %b: tensor<2x1x16xf16>, %c: tensor<2x16x16xf16>) -> tensor<2x16x16xf16> attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c : tensor<2x16x1xf16> * tensor<2x1x16xf16> -> tensor<2x16x16xf16>
  tt.return %d : tensor<2x16x16xf16>
}

// What is rounded to several bfloat16 is longer than what is rounded to TF32.
// CHECK-LABEL: tt.func @precisions(
// CHECK: tt.dot %arg0, %arg1, %{{.*}}, inputPrecision = tf32 : tensor<16x8xf32>
// CHECK: tt.dot %arg0, %arg1, %{{[a-z0-9]*}} : tensor<16x8xf32>
// CHECK: tt.dot %arg2, %arg3, %{{[a-z0-9]*}} : tensor<16x4xf32>
// CHECK: tt.dot %arg2, %arg3, %{{[a-z0-9]*}} : tensor<16x4xf32>
tt.func @precisions(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %e: tensor<16x4xf32>, %f: tensor<4x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {autodiff.role = "backward"} {
  %0 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x8xf32> * tensor<8x16xf32> -> tensor<16x16xf32>
  %1 = tt.dot %a, %b, %0, inputPrecision = bf16x3 : tensor<16x8xf32> * tensor<8x16xf32> -> tensor<16x16xf32>
  %2 = tt.dot %e, %f, %1, inputPrecision = tf32x3 : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
  %3 = tt.dot %e, %f, %2 : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
  tt.return %3 : tensor<16x16xf32>
}

// Rows and columns may be few.
// CHECK-LABEL: tt.func @rows(
// CHECK: tt.dot %arg0, %arg1, %arg2 : tensor<1x16xbf16> * tensor<16x1xbf16> -> tensor<1x1xf32>
tt.func @rows(%a: tensor<1x16xbf16>, %b: tensor<16x1xbf16>, %c: tensor<1x1xf32>) -> tensor<1x1xf32> attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c : tensor<1x16xbf16> * tensor<16x1xbf16> -> tensor<1x1xf32>
  tt.return %d : tensor<1x1xf32>
}

// The user's kernel stays as it is.
// CHECK-LABEL: tt.func @primal(
// CHECK: tt.dot %arg0, %arg1, %arg2 : tensor<16x4xbf16>
tt.func @primal(%a: tensor<16x4xbf16>, %b: tensor<4x16xbf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %b, %c : tensor<16x4xbf16> * tensor<4x16xbf16> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// Triton would make a product in TF32 of this sum, or fail.
// CHECK-LABEL: tt.func @sum(
// CHECK: %[[A:.*]] = arith.extf %arg0 : tensor<16x4xbf16> to tensor<16x4xf32>
// CHECK: %[[B:.*]] = arith.extf %arg1 : tensor<4x32xbf16> to tensor<4x32xf32>
// CHECK: %[[D:.*]] = tt.dot %[[A]], %[[B]], %{{[a-z0-9_]*}} : tensor<16x4xf32> * tensor<4x32xf32> -> tensor<16x32xf32>
// CHECK: arith.truncf %[[D]] : tensor<16x32xf32> to tensor<16x32xbf16>
tt.func @sum(%a: tensor<16x4xbf16>, %b: tensor<4x32xbf16>) -> tensor<16x32xbf16> attributes {autodiff.role = "backward"} {
  %0 = tt.expand_dims %a {axis = 2 : i32} : tensor<16x4xbf16> -> tensor<16x4x1xbf16>
  %1 = tt.expand_dims %b {axis = 0 : i32} : tensor<4x32xbf16> -> tensor<1x4x32xbf16>
  %2 = tt.broadcast %0 : tensor<16x4x1xbf16> -> tensor<16x4x32xbf16>
  %3 = tt.broadcast %1 : tensor<1x4x32xbf16> -> tensor<16x4x32xbf16>
  %4 = arith.mulf %2, %3 : tensor<16x4x32xbf16>
  %5 = "tt.reduce"(%4) <{axis = 1 : i32}> ({
  ^bb0(%x: bf16, %y: bf16):
    %z = arith.addf %x, %y : bf16
    tt.reduce.return %z : bf16
  }) : (tensor<16x4x32xbf16>) -> tensor<16x32xbf16>
  tt.return %5 : tensor<16x32xbf16>
}

// Of this one, too, and it is none.
// CHECK-LABEL: tt.func @rows_of_sums(
// CHECK-DAG: %[[A:.*]] = tt.broadcast %{{.*}} : tensor<16x16x1xf32> -> tensor<16x16x16xf32>
// CHECK-DAG: %[[B:.*]] = tt.broadcast %{{.*}} : tensor<1x16x16xf32> -> tensor<16x16x16xf32>
// CHECK: arith.mulf %[[B]], %[[A]]
// CHECK: "tt.reduce"
tt.func @rows_of_sums(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {autodiff.role = "backward"} {
  %0 = tt.expand_dims %a {axis = 2 : i32} : tensor<16x16xf32> -> tensor<16x16x1xf32>
  %1 = tt.expand_dims %b {axis = 0 : i32} : tensor<16x16xf32> -> tensor<1x16x16xf32>
  %2 = tt.broadcast %0 : tensor<16x16x1xf32> -> tensor<16x16x16xf32>
  %3 = tt.broadcast %1 : tensor<1x16x16xf32> -> tensor<16x16x16xf32>
  %4 = arith.mulf %2, %3 : tensor<16x16x16xf32>
  %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<16x16x16xf32>) -> tensor<16x16xf32>
  tt.return %5 : tensor<16x16xf32>
}

// The factors have another order for all that is made of them.
// CHECK-LABEL: tt.func @factors_in_use(
// CHECK: %[[P:.*]] = arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: math.exp %[[P]]
// CHECK: "tt.reduce"(%[[P]])
tt.func @factors_in_use(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16x16xf32>) attributes {autodiff.role = "backward"} {
  %0 = tt.expand_dims %a {axis = 2 : i32} : tensor<16x16xf32> -> tensor<16x16x1xf32>
  %1 = tt.expand_dims %b {axis = 0 : i32} : tensor<16x16xf32> -> tensor<1x16x16xf32>
  %2 = tt.broadcast %0 : tensor<16x16x1xf32> -> tensor<16x16x16xf32>
  %3 = tt.broadcast %1 : tensor<1x16x16xf32> -> tensor<16x16x16xf32>
  %4 = arith.mulf %2, %3 : tensor<16x16x16xf32>
  %6 = math.exp %4 : tensor<16x16x16xf32>
  %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<16x16x16xf32>) -> tensor<16x16xf32>
  tt.return %5, %6 : tensor<16x16xf32>, tensor<16x16x16xf32>
}

}
