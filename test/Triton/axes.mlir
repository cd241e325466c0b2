// RUN: triton-autodiff-opt %s -print-axes -verify-diagnostics -o /dev/null

// Every operation on tiles says along which axes it moves: for each axis of an
// operand, that of the result or what becomes of it, and the reverse; whether
// the operand's elements are the result's; and, if it has such a form, what it
// is with one more axis in front.

tt.func @moves(%scalar: f32, %row: tensor<8xf32>, %column: tensor<4x1xf32>, %tile: tensor<4x8xf32>, %pairs: tensor<4x8x2xf32>, %one: tensor<1x1xf32>) {
  // expected-remark @below {{operand 0: () -> (repeated, repeated), moved}}
  %0 = tt.splat %scalar : f32 -> tensor<4x8xf32>
  // expected-remark @below {{operand 0: (dropped, dropped) -> (), moved}}
  %1 = tt.unsplat %one : tensor<1x1xf32>
  // expected-remark @below {{operand 0: (1) -> (new, 0), moved}}
  // expected-remark @below {{behind another axis: {axis = 1 : i32}}}
  %2 = tt.expand_dims %row {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  // expected-remark @below {{operand 0: (0, dropped) -> (0, repeated), moved}}
  // expected-remark @below {{behind another axis: {}}}
  %3 = tt.broadcast %column : tensor<4x1xf32> -> tensor<4x8xf32>
  // expected-remark @below {{operand 0: (2, 0, 1) -> (1, 2, 0), moved}}
  // expected-remark @below {{behind another axis: {order = array<i32: 0, 2, 3, 1>}}}
  %4 = tt.trans %pairs {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  // expected-remark @below {{operand 0: (mixed, mixed) -> (mixed), moved}}
  // expected-remark @below {{behind another axis: {}}}
  %5 = tt.reshape %tile : tensor<4x8xf32> -> tensor<32xf32>
  // expected-remark @below {{operand 0: (0, 1) -> (0, 1, mixed), moved}}
  // expected-remark @below {{operand 1: (0, 1) -> (0, 1, mixed), moved}}
  %6 = tt.join %tile, %tile : tensor<4x8xf32> -> tensor<4x8x2xf32>
  // expected-remark @below {{operand 0: (0, 1, mixed) -> (0, 1), moved}}
  %7, %8 = tt.split %pairs : tensor<4x8x2xf32> -> tensor<4x8xf32>
  // expected-remark @below {{operand 0: (mixed) -> (mixed), moved}}
  // expected-remark @below {{operand 1: (mixed) -> (mixed), moved}}
  %9 = tt.cat %row, %row : tensor<8xf32> -> tensor<16xf32>
  tt.return
}

tt.func @computes(%a: tensor<2x16x32xf16>, %b: tensor<2x32x64xf16>, %c: tensor<2x16x64xf32>, %index: tensor<2x16x4xi32>, %counted: tensor<16xi32>) {
  // expected-remark @below {{operand 0: (0, 1, summed) -> (0, 1, repeated)}}
  // expected-remark @below {{operand 1: (0, summed, 2) -> (0, repeated, 2)}}
  // expected-remark @below {{operand 2: (0, 1, 2) -> (0, 1, 2)}}
  %0 = tt.dot %a, %b, %c : tensor<2x16x32xf16> * tensor<2x32x64xf16> -> tensor<2x16x64xf32>
  // expected-remark @below {{operand 0: (0, summed, 1) -> (0, 2)}}
  // expected-remark @below {{behind another axis: {axis = 2 : i32}}}
  %1 = "tt.reduce"(%c) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tt.reduce.return %s : f32
  }) : (tensor<2x16x64xf32>) -> tensor<2x64xf32>
  // expected-remark @below {{operand 0: (0, mixed, 2) -> (0, mixed, 2)}}
  // expected-remark @below {{behind another axis: {axis = 2 : i32, reverse = false}}}
  %2 = "tt.scan"(%c) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tt.scan.return %s : f32
  }) : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
  // expected-remark @below {{operand 0: (0, 1, mixed) -> (0, 1, mixed), moved}}
  // expected-remark @below {{operand 1: (0, 1, 2) -> (0, 1, 2)}}
  %3 = tt.gather %c[%index] {axis = 2 : i32} : (tensor<2x16x64xf32>, tensor<2x16x4xi32>) -> tensor<2x16x4xf32>
  // expected-remark @below {{operand 0: (summed) -> (mixed)}}
  %4 = tt.histogram %counted : tensor<16xi32> -> tensor<8xi32>
  tt.return
}

tt.func @scaled(%a: tensor<32x64xf16>, %b: tensor<64x32xf16>, %c: tensor<32x32xf32>, %s: tensor<32x2xi8>) {
  // expected-remark @below {{operand 0: (mixed, mixed) -> (mixed, mixed)}}
  // expected-remark @below {{operand 1: (mixed, mixed) -> (mixed, mixed)}}
  // expected-remark @below {{operand 2: (0, 1) -> (0, 1)}}
  // expected-remark @below {{operand 3: (mixed, mixed) -> (mixed, mixed)}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = fp16 rhs = fp16 {fastMath = false} : tensor<32x64xf16>, tensor<32x2xi8> * tensor<64x32xf16> -> tensor<32x32xf32>
  tt.return
}

// What computes each element by itself keeps all axes. A scalar beside tiles is
// there for all of their elements.
tt.func @elements(%tile: tensor<4x8xf32>, %pair: tensor<4x2xf32>, %condition: i1, %pointers: tensor<4x8x!tt.ptr<f32>>) {
  // expected-remark @below {{operand 0: (0, 1) -> (0, 1)}}
  // expected-remark @below {{operand 1: (0, 1) -> (0, 1)}}
  %0 = arith.addf %tile, %tile : tensor<4x8xf32>
  // expected-remark @below {{operand 0: () -> (repeated, repeated)}}
  // expected-remark @below {{operand 1: (0, 1) -> (0, 1)}}
  // expected-remark @below {{operand 2: (0, 1) -> (0, 1)}}
  %1 = arith.select %condition, %tile, %0 : tensor<4x8xf32>
  // expected-remark @below {{operand 0: unknown}}
  %2 = tt.load %pointers : tensor<4x8x!tt.ptr<f32>>
  // expected-remark @below {{operand 0: (0, mixed) -> (0, mixed), moved}}
  %3 = autodiff.swap %pair axis = 1 : tensor<4x2xf32>
  tt.return
}
