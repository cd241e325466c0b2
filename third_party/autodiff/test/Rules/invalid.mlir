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
  // expected-error @+1 {{no derivative rule for this atomic operation on a differentiated tensor}}
  %old = tt.atomic_rmw exch, acq_rel, gpu, %py, %x, %m : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}

// -----

tt.func @product(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a reduction with this combine function}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// a + a is not a sum.
tt.func @twice(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a reduction with this combine function}}
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @arg_max(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a reduction of several values at once}}
  %y:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %c, %a, %b : f32
    %l = arith.select %c, %j, %k : i32
    tt.reduce.return %s, %l : f32, i32
  }) : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
  tt.store %py, %y#0 : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @cumprod(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @+1 {{no derivative rule for a scan with this combine function}}
  %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// The number of iterations of a while loop is nowhere recorded.
tt.func @while_loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for 'scf.while'}}
  %y = scf.while (%a = %x) : (f32) -> f32 {
    %c = arith.cmpf olt, %a, %one : f32
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: f32):
    %d = math.exp %b : f32
    scf.yield %d : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
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
