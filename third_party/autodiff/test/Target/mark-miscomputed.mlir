// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-mark-miscomputed))' %s | FileCheck %s

// What Triton has made of a sum over four elements, it gets wrong.
// CHECK: tt.func @sum({{.*}} attributes {autodiff.ordered}
// CHECK: tt.dot {{.*}} {autodiff.miscomputed}
tt.func @sum(%a: tensor<16x4xf32>, %b: tensor<4x16xf32>, %c: tensor<16x16xf32>) {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
  tt.return
}

// Over eight it does not, nor in float32.
// CHECK: tt.func @products(
// CHECK-NOT: autodiff
tt.func @products(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %e: tensor<16x4xf32>, %f: tensor<4x16xf32>, %c: tensor<16x16xf32>) {
  %0 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x8xf32> * tensor<8x16xf32> -> tensor<16x16xf32>
  %1 = tt.dot %e, %f, %0 : tensor<16x4xf32> * tensor<4x16xf32> -> tensor<16x16xf32>
  tt.return
}

// Where an operand comes of bytes, a thread takes four neighbours along the sum.
// CHECK: tt.func @bytes({{.*}} attributes {autodiff.ordered}
// CHECK: tt.dot {{.*}} {autodiff.miscomputed}
// CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf16>
tt.func @bytes(%p: tensor<16x16x!tt.ptr<i8>>, %q: tensor<16x32x!tt.ptr<i8>>, %b: tensor<16x16xf16>, %d: tensor<32x16xf16>, %c: tensor<16x16xf32>) {
  %x = tt.load %p : tensor<16x16x!tt.ptr<i8>>
  %a = arith.sitofp %x : tensor<16x16xi8> to tensor<16x16xf16>
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %y = tt.load %q : tensor<16x32x!tt.ptr<i8>>
  %e = arith.sitofp %y : tensor<16x32xi8> to tensor<16x32xf16>
  %1 = tt.dot %e, %d, %0 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  tt.return
}
