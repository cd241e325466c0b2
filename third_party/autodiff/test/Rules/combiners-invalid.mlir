// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-reverse -o /dev/null

// The mean of two numbers is not associative: what a reduction makes of more
// depends on an order that Triton does not keep.
tt.func @mean(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a reduction whose combine function (}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %half = arith.constant 5.000000e-01 : f32
    %s = arith.addf %a, %b : f32
    %m = arith.mulf %s, %half : f32
    tt.reduce.return %m : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @scanned_mean(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error-re @+1 {{no derivative rule for a scan whose combine function {{.*}} is not associative: {{.*}} are combined to {{.*}} or {{.*}}, depending on the order}}
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %half = arith.constant 5.000000e-01 : f32
    %s = arith.addf %a, %b : f32
    %m = arith.mulf %s, %half : f32
    tt.scan.return %m : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A sum that stops at a bound is associative for positive numbers only.
tt.func @clipped_sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error-re @+1 {{is not associative: {{.*}} are combined to {{.*}} or {{.*}}, depending on the order}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %one = arith.constant 1.000000e+00 : f32
    %s = arith.addf %a, %b : f32
    %m = arith.minnumf %s, %one : f32
    tt.reduce.return %m : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Equal elements: a maximum that adds up ties twice.
tt.func @ties(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{is not associative}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %one = arith.constant 1.000000e+00 : f32
    %equal = arith.cmpf oeq, %a, %b : f32
    %larger = arith.maxnumf %a, %b : f32
    %more = arith.addf %larger, %one : f32
    %m = arith.select %equal, %more, %larger : f32
    tt.reduce.return %m : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What Triton's reductions on GPUs do: a linear recurrence needs its order.
module attributes {autodiff.any_order} {
tt.func @recurrence(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error-re @+1 {{no derivative rule for a reduction whose combine function {{.*}} is not commutative: on GPUs, Triton's reductions swap sides}}
  %y:2 = "tt.reduce"(%x, %x) <{axis = 0 : i32}> ({
  ^bb0(%a1: f32, %b1: f32, %a2: f32, %b2: f32):
    %a = arith.mulf %a1, %a2 : f32
    %p = arith.mulf %a2, %b1 : f32
    %b = arith.addf %p, %b2 : f32
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> (f32, f32)
  tt.store %py, %y#1 : !tt.ptr<f32>
  tt.return
}
}

// -----

// Bits of floats have no value in another precision.
tt.func @bits(%px: !tt.ptr<f32>, %pk: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error-re @+1 {{no derivative rule for a reduction whose combine function {{.*}} cannot be tried on numbers, because of 'tt.bitcast'}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %zero = arith.constant 0 : i32
    %bits = tt.bitcast %a : f32 -> i32
    %positive = arith.cmpi sge, %bits, %zero : i32
    %s = arith.addf %a, %b : f32
    %m = arith.select %positive, %s, %b : f32
    tt.reduce.return %m : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
