// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-reverse -o /dev/null

// What has no derivative rule is an error, never a zero.

tt.func @no_rule(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for 'math.clampf', which lies between a differentiated input and an output}}
  %y = math.clampf %x to [%x, %x] : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @no_function(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the library function '__nv_nextafterf' ('tt.extern_elementwise'), which lies between a differentiated input and an output}}
  %y = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_nextafterf"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A known name with another number of operands is another function.
tt.func @wrong_function(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the library function '__nv_expf'}}
  %y = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_expf"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Which of the two comes last?
tt.func @exchange_and_add(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %sum = tt.atomic_rmw fadd, acq_rel, gpu, %py, %x, %m : (!tt.ptr<f32>, f32, i1) -> f32
  // expected-error @+1 {{no derivative rule for 'tl.atomic_xchg' on a differentiated tensor that the kernel accesses in another way}}
  %old = tt.atomic_rmw exch, acq_rel, gpu, %py, %x, %m : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}

// -----

// Bits of a float in an integer: no silent zero.
tt.func @library_bits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %bits = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_float_as_int"} : (f32) -> i32
  // expected-error @+1 {{no derivative rule for the library function '__nv_int_as_float'}}
  %y = tt.extern_elementwise %bits {libname = "", libpath = "", pure = true, symbol = "__nv_int_as_float"} : (i32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @bits_as_exponent(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  %bits = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_float_as_int"} : (f32) -> i32
  // expected-error @+1 {{derivative lost: an integer operand holds bits of a float}}
  %y = tt.extern_elementwise %one, %bits {libname = "", libpath = "", pure = true, symbol = "__nv_ldexpf"} : (f32, i32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Of two elements, whether the function is associative is not asked.
tt.func @loop_in_combiner(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{no derivative rule for 'for' inside of a function that is applied to every element}}
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> f32 : i32 {
      %u = arith.mulf %t, %b : f32
      scf.yield %u : f32
    }
    tt.reduce.return %s : f32
  }) : (tensor<2xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @capture(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %w = tt.load %px : !tt.ptr<f32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{whose combine function uses a differentiated value from outside}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.mulf %a, %b : f32
    %s = arith.mulf %t, %w : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @packed_map(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a map of several elements at a time; with pack=1 there is one}}
  %y = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.map_elementwise.return %b, %a : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @map_with_capture(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %w = tt.load %pw : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for a map whose function uses a differentiated value from outside; pass it as an argument}}
  %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %b = arith.mulf %a, %w : f32
    tt.map_elementwise.return %b : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The exponent of this one is an integer.
tt.func @power(%px: !tt.ptr<f32>, %w: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the library function '__nv_powif'}}
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_powif"} : (f32, !tt.ptr<f32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
