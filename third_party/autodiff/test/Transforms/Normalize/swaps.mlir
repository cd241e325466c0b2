// RUN: triton-autodiff-opt %s -split-input-file -autodiff-raise-swaps -canonicalize | FileCheck %s --check-prefix=RAISE
// RUN: triton-autodiff-opt %s -split-input-file -autodiff-raise-swaps -autodiff-lower-swaps -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=LOWER

// The exclusive or with that of both elements swaps the two; their bits
// were those of floats.
// RAISE-LABEL: tt.func @swap(
// RAISE-NEXT: %[[S:.*]] = autodiff.swap %arg0 axis = 1 : tensor<4x2xf32>
// RAISE-NEXT: tt.return %[[S]]

// LOWER-LABEL: tt.func @swap(
// LOWER: %[[BITS:.*]] = tt.bitcast %arg0 : tensor<4x2xf32> -> tensor<4x2xi32>
// LOWER: %[[BOTH:.*]] = "tt.reduce"(%[[BITS]]) <{axis = 1 : i32}>
// LOWER: arith.xori
// LOWER: %[[E:.*]] = tt.expand_dims %[[BOTH]] {axis = 1 : i32}
// LOWER: %[[R:.*]] = tt.broadcast %[[E]] : tensor<4x1xi32> -> tensor<4x2xi32>
// LOWER: %[[OTHER:.*]] = arith.xori %[[BITS]], %[[R]]
// LOWER: tt.bitcast %[[OTHER]] : tensor<4x2xi32> -> tensor<4x2xf32>
tt.func @swap(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %bits = tt.bitcast %x : tensor<4x2xf32> -> tensor<4x2xi32>
  %both = "tt.reduce"(%bits) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  %e = tt.expand_dims %both {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %r = tt.broadcast %e : tensor<4x1xi32> -> tensor<4x2xi32>
  %other = arith.xori %bits, %r : tensor<4x2xi32>
  %y = tt.bitcast %other : tensor<4x2xi32> -> tensor<4x2xf32>
  tt.return %y : tensor<4x2xf32>
}

// -----

// Moves of bits between the casts are moves of floats. (Reversing 4 elements.)
// RAISE-LABEL: tt.func @flip(
// RAISE: %[[H:.*]] = tt.reshape %arg0 : tensor<4xf16> -> tensor<2x2xf16>
// RAISE: %[[S0:.*]] = autodiff.swap %[[H]] axis = 0 : tensor<2x2xf16>
// RAISE: %[[S1:.*]] = autodiff.swap %[[S0]] axis = 1 : tensor<2x2xf16>
// RAISE: %[[Y:.*]] = tt.reshape %[[S1]] : tensor<2x2xf16> -> tensor<4xf16>
// RAISE: tt.return %[[Y]]
tt.func @flip(%x: tensor<4xf16>) -> tensor<4xf16> {
  %bits = tt.bitcast %x : tensor<4xf16> -> tensor<4xi16>
  %h = tt.reshape %bits : tensor<4xi16> -> tensor<2x2xi16>
  %both0 = "tt.reduce"(%h) <{axis = 0 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<2x2xi16>) -> tensor<2xi16>
  %e0 = tt.expand_dims %both0 {axis = 0 : i32} : tensor<2xi16> -> tensor<1x2xi16>
  %r0 = tt.broadcast %e0 : tensor<1x2xi16> -> tensor<2x2xi16>
  %s0 = arith.xori %h, %r0 : tensor<2x2xi16>
  %both1 = "tt.reduce"(%s0) <{axis = 1 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<2x2xi16>) -> tensor<2xi16>
  %e1 = tt.expand_dims %both1 {axis = 1 : i32} : tensor<2xi16> -> tensor<2x1xi16>
  %r1 = tt.broadcast %e1 : tensor<2x1xi16> -> tensor<2x2xi16>
  %s1 = arith.xori %s0, %r1 : tensor<2x2xi16>
  %flat = tt.reshape %s1 : tensor<2x2xi16> -> tensor<4xi16>
  %y = tt.bitcast %flat : tensor<4xi16> -> tensor<4xf16>
  tt.return %y : tensor<4xf16>
}

// -----

// Two elements in all.
// RAISE-LABEL: tt.func @pair(
// RAISE-NEXT: autodiff.swap %arg0 axis = 0 : tensor<2xi32>
// LOWER-LABEL: tt.func @pair(
// LOWER: tt.splat
// LOWER: arith.xori
tt.func @pair(%x: tensor<2xi32>) -> tensor<2xi32> {
  %both = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<2xi32>) -> i32
  %r = tt.splat %both : i32 -> tensor<2xi32>
  %y = arith.xori %r, %x : tensor<2xi32>
  tt.return %y : tensor<2xi32>
}

// -----

// Of four elements it is no swap, and neither is the exclusive or with
// that of other elements.
// RAISE-LABEL: tt.func @others(
// RAISE-NOT: autodiff.swap
tt.func @others(%x: tensor<4xi32>, %v: tensor<2xi32>, %w: tensor<2xi32>) -> (tensor<4xi32>, tensor<2xi32>) {
  %all = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4xi32>) -> i32
  %r = tt.splat %all : i32 -> tensor<4xi32>
  %y = arith.xori %x, %r : tensor<4xi32>
  %both = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<2xi32>) -> i32
  %t = tt.splat %both : i32 -> tensor<2xi32>
  %z = arith.xori %w, %t : tensor<2xi32>
  tt.return %y, %z : tensor<4xi32>, tensor<2xi32>
}

// -----

// Equal elements have nothing to swap.
// RAISE-LABEL: tt.func @equal(
// RAISE-NEXT: tt.return %arg0 : f32
tt.func @equal(%x: f32) -> f32 {
  %bits = tt.bitcast %x : f32 -> i32
  %tile = tt.splat %bits : i32 -> tensor<2xi32>
  %both = "tt.reduce"(%tile) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<2xi32>) -> i32
  %other = arith.xori %bits, %both : i32
  %y = tt.bitcast %other : i32 -> f32
  tt.return %y : f32
}

// -----

// RAISE-LABEL: tt.func @equal_rows(
// RAISE-DAG: %[[T:.*]] = arith.constant dense<0> : tensor<4xi32>
// RAISE: tt.return %[[T]]
tt.func @equal_rows(%x: tensor<4x1xi32>) -> tensor<4xi32> {
  %tile = tt.broadcast %x : tensor<4x1xi32> -> tensor<4x2xi32>
  %both = "tt.reduce"(%tile) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  tt.return %both : tensor<4xi32>
}
