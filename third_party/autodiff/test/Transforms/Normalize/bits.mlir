// RUN: triton-autodiff-opt %s -split-input-file -autodiff-raise-bits -canonicalize -cse | FileCheck %s

// Bits of one where a mask is all ones, those of the other elsewhere.
// CHECK-LABEL: tt.func @chosen(
// CHECK-NEXT: %[[Y:.*]] = arith.select %arg2, %arg0, %arg1 : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT: tt.return %[[Y]]
tt.func @chosen(%x: tensor<4xf32>, %w: tensor<4xf32>, %c: tensor<4xi1>) -> tensor<4xf32> {
  %ones = arith.constant dense<-1> : tensor<4xi32>
  %x_bits = tt.bitcast %x : tensor<4xf32> -> tensor<4xi32>
  %w_bits = tt.bitcast %w : tensor<4xf32> -> tensor<4xi32>
  %mask = arith.extsi %c : tensor<4xi1> to tensor<4xi32>
  %not = arith.xori %mask, %ones : tensor<4xi32>
  %one = arith.andi %x_bits, %mask : tensor<4xi32>
  %other = arith.andi %w_bits, %not : tensor<4xi32>
  %chosen = arith.ori %one, %other : tensor<4xi32>
  %y = tt.bitcast %chosen : tensor<4xi32> -> tensor<4xf32>
  tt.return %y : tensor<4xf32>
}

// -----

// The one that was not chosen: what the exclusive or with both leaves.
// CHECK-LABEL: tt.func @other(
// CHECK-NEXT: %[[Y:.*]] = arith.select %arg2, %arg1, %arg0 : tensor<4xi1>, tensor<4xf16>
// CHECK-NEXT: tt.return %[[Y]]
tt.func @other(%x: tensor<4xf16>, %w: tensor<4xf16>, %c: tensor<4xi1>) -> tensor<4xf16> {
  %x_bits = tt.bitcast %x : tensor<4xf16> -> tensor<4xi16>
  %w_bits = tt.bitcast %w : tensor<4xf16> -> tensor<4xi16>
  %chosen = arith.select %c, %x_bits, %w_bits : tensor<4xi1>, tensor<4xi16>
  %both = arith.xori %x_bits, %w_bits : tensor<4xi16>
  %other = arith.xori %chosen, %both : tensor<4xi16>
  %y = tt.bitcast %other : tensor<4xi16> -> tensor<4xf16>
  tt.return %y : tensor<4xf16>
}

// -----

// CHECK-LABEL: tt.func @sign(
// CHECK-DAG: %[[ABS:.*]] = math.absf %arg0 : f64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant -0.000000e+00 : f64
// CHECK-DAG: %[[NEG:.*]] = arith.subf %[[ZERO]], %arg0 : f64
// CHECK: tt.return %[[ABS]], %[[NEG]]
tt.func @sign(%x: f64) -> (f64, f64) {
  %most = arith.constant 9223372036854775807 : i64
  %sign = arith.constant -9223372036854775808 : i64
  %bits = tt.bitcast %x : f64 -> i64
  %cleared = arith.andi %bits, %most : i64
  %changed = arith.xori %bits, %sign : i64
  %a = tt.bitcast %cleared : i64 -> f64
  %b = tt.bitcast %changed : i64 -> f64
  tt.return %a, %b : f64, f64
}

// -----

// Bits that are cleared are a rounding. The value stays as it is.
// CHECK-LABEL: tt.func @rounded(
// CHECK: %[[CUT:.*]] = arith.andi
// CHECK: %[[Y:.*]] = tt.bitcast %[[CUT]]
// CHECK: %[[STOPPED:.*]] = autodiff.stop_gradient %[[Y]]
// CHECK: %[[SAME:.*]] = autodiff.custom_vjp "a cast of bits" %[[STOPPED]] : f32 of %arg0 : f32 -> f32 {
// CHECK: autodiff.yield
// CHECK: tt.return %[[SAME]]
tt.func @rounded(%x: f32) -> f32 {
  %mask = arith.constant -65536 : i32
  %bits = tt.bitcast %x : f32 -> i32
  %cut = arith.andi %bits, %mask : i32
  %y = tt.bitcast %cut : i32 -> f32
  tt.return %y : f32
}

// -----

// A bfloat16 is the upper half of a float.
// CHECK-LABEL: tt.func @widened(
// CHECK-NEXT: %[[Y:.*]] = arith.extf %arg0 : tensor<4xbf16> to tensor<4xf32>
// CHECK-NEXT: tt.return %[[Y]]
tt.func @widened(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %places = arith.constant dense<16> : tensor<4xi32>
  %bits = tt.bitcast %x : tensor<4xbf16> -> tensor<4xi16>
  %wide = arith.extui %bits : tensor<4xi16> to tensor<4xi32>
  %up = arith.shli %wide, %places : tensor<4xi32>
  %y = tt.bitcast %up : tensor<4xi32> -> tensor<4xf32>
  tt.return %y : tensor<4xf32>
}

// -----

// The larger of two pairs of a key and a value.
// CHECK-LABEL: tt.func @packed(
// CHECK: %[[C:.*]] = arith.cmpi sgt
// CHECK: %[[Y:.*]] = arith.select %[[C]], %arg1, %arg3 : f32
// CHECK: tt.return %[[Y]]
tt.func @packed(%k: i32, %x: f32, %l: i32, %w: f32) -> f32 {
  %places = arith.constant 32 : i64
  %x_bits = tt.bitcast %x : f32 -> i32
  %x_low = arith.extui %x_bits : i32 to i64
  %k_wide = arith.extsi %k : i32 to i64
  %k_high = arith.shli %k_wide, %places : i64
  %one = arith.ori %k_high, %x_low : i64
  %w_bits = tt.bitcast %w : f32 -> i32
  %w_low = arith.extui %w_bits : i32 to i64
  %l_wide = arith.extsi %l : i32 to i64
  %l_high = arith.shli %l_wide, %places : i64
  %other = arith.ori %l_high, %w_low : i64
  %larger = arith.maxsi %one, %other : i64
  %low = arith.trunci %larger : i64 to i32
  %y = tt.bitcast %low : i32 -> f32
  tt.return %y : f32
}

// -----

// Left and right element of each pair are sums with zeros, so the exchange is
// one only of numbers: the value stays as it is.
// CHECK-LABEL: tt.func @exchanged(
// CHECK: %[[SWAPPED:.*]] = autodiff.swap
// CHECK: %[[BACK:.*]] = tt.reshape %[[SWAPPED]]
// CHECK: %[[OTHER:.*]] = autodiff.custom_vjp "a cast of bits" %{{.*}} : tensor<4x2xf32> of %[[BACK]]
// CHECK: arith.select %arg1, %[[OTHER]], %arg0
tt.func @exchanged(%x: tensor<4x2xf32>, %c: tensor<4x2xi1>) -> tensor<4x2xf32> {
  %zero = arith.constant dense<0> : tensor<4x2xi32>
  %one = arith.constant dense<1.0> : tensor<1x2xf32>
  %range = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
  %row = tt.expand_dims %range {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  %r = arith.sitofp %row : tensor<1x2xi32> to tensor<1x2xf32>
  %l = arith.subf %one, %r : tensor<1x2xf32>
  %rs = tt.broadcast %r : tensor<1x2xf32> -> tensor<4x2xf32>
  %ls = tt.broadcast %l : tensor<1x2xf32> -> tensor<4x2xf32>
  %xl = arith.mulf %x, %ls : tensor<4x2xf32>
  %xr = arith.mulf %x, %rs : tensor<4x2xf32>
  %sl = "tt.reduce"(%xl) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x2xf32>) -> tensor<4xf32>
  %sr = "tt.reduce"(%xr) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x2xf32>) -> tensor<4xf32>
  %el = tt.expand_dims %sl {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %er = tt.expand_dims %sr {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %left = tt.broadcast %el : tensor<4x1xf32> -> tensor<4x2xf32>
  %right = tt.broadcast %er : tensor<4x1xf32> -> tensor<4x2xf32>
  %il = tt.bitcast %left : tensor<4x2xf32> -> tensor<4x2xi32>
  %ir = tt.bitcast %right : tensor<4x2xf32> -> tensor<4x2xi32>
  %ix = tt.bitcast %x : tensor<4x2xf32> -> tensor<4x2xi32>
  %both = arith.xori %il, %ir : tensor<4x2xi32>
  %changed = arith.select %c, %both, %zero : tensor<4x2xi1>, tensor<4x2xi32>
  %bits = arith.xori %ix, %changed : tensor<4x2xi32>
  %y = tt.bitcast %bits : tensor<4x2xi32> -> tensor<4x2xf32>
  tt.return %y : tensor<4x2xf32>
}

// -----

// What is no such arithmetic keeps the reason.
// CHECK-LABEL: tt.func @mixed(
// CHECK: tt.bitcast %{{.*}} {autodiff.reason = "they are an exclusive or of several floats
tt.func @mixed(%x: f32, %w: f32) -> f32 {
  %x_bits = tt.bitcast %x : f32 -> i32
  %w_bits = tt.bitcast %w : f32 -> i32
  %bits = arith.xori %x_bits, %w_bits : i32
  %y = tt.bitcast %bits : i32 -> f32
  tt.return %y : f32
}
