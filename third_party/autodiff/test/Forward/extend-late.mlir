// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-extend-late),canonicalize)' %s | FileCheck %s

// What is transposed for a product, or masked, is as narrow as it was loaded:
// the extension has met the rounding.
// CHECK-LABEL: tt.func @operand(
// CHECK-SAME: %[[X:.*]]: tensor<16x32xbf16>
// CHECK-NOT: extf
// CHECK: %[[T:.*]] = tt.trans %[[X]] {order = array<i32: 1, 0>} : tensor<16x32xbf16> -> tensor<32x16xbf16>
// CHECK: arith.select %{{.*}}, %[[T]], %{{.*}} : tensor<32x16xi1>, tensor<32x16xbf16>
// CHECK-NOT: truncf
tt.func @operand(%x: tensor<16x32xbf16>, %mask: tensor<32x16xi1>) -> tensor<32x16xbf16> {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %wide = arith.extf %x : tensor<16x32xbf16> to tensor<16x32xf32>
  %t = tt.trans %wide {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
  %some = arith.select %mask, %t, %zero : tensor<32x16xi1>, tensor<32x16xf32>
  %narrow = arith.truncf %some : tensor<32x16xf32> to tensor<32x16xbf16>
  tt.return %narrow : tensor<32x16xbf16>
}

// A number that the narrow type has not, and a tile of another type, stay.
// CHECK-LABEL: tt.func @not_exact(
// CHECK: extf
// CHECK: arith.select {{.*}} tensor<16xf32>
// CHECK: arith.select {{.*}} tensor<16xf32>
// CHECK-NEXT: tt.return
tt.func @not_exact(%x: tensor<16xf16>, %y: tensor<16xbf16>, %mask: tensor<16xi1>) -> (tensor<16xf32>, tensor<16xf32>) {
  %tenth = arith.constant dense<0.1> : tensor<16xf32>
  %wide = arith.extf %x : tensor<16xf16> to tensor<16xf32>
  %other = arith.extf %y : tensor<16xbf16> to tensor<16xf32>
  %a = arith.select %mask, %wide, %tenth : tensor<16xi1>, tensor<16xf32>
  %b = arith.select %mask, %wide, %other : tensor<16xi1>, tensor<16xf32>
  tt.return %a, %b : tensor<16xf32>, tensor<16xf32>
}

// Elements that are repeated are extended before.
// CHECK-LABEL: tt.func @repeated(
// CHECK: %[[WIDE:.*]] = arith.extf
// CHECK: tt.broadcast %[[WIDE]]
tt.func @repeated(%x: tensor<1x16xf16>) -> tensor<8x16xf32> {
  %wide = arith.extf %x : tensor<1x16xf16> to tensor<1x16xf32>
  %all = tt.broadcast %wide : tensor<1x16xf32> -> tensor<8x16xf32>
  tt.return %all : tensor<8x16xf32>
}
