// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-record-memory),autodiff-reverse)' -o /dev/null

// What would make a derivative wrong without anybody noticing is an error.

tt.func @bits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %step = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %b = tt.bitcast %x : f32 -> i32
  %c = arith.addi %b, %step : i32
  // expected-error @+1 {{derivative lost in 'tt.bitcast': these bits were taken from a float}}
  %y = tt.bitcast %c : i32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A part of the mantissa is left.
tt.func @rounded_bits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %c16 = arith.constant 16 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %b = tt.bitcast %x : f32 -> i32
  %half = arith.constant 0x8000 : i32
  %rounded = arith.addi %b, %half : i32
  %high = arith.shrui %rounded, %c16 : i32
  %back = arith.shli %high, %c16 : i32
  // expected-error @+1 {{derivative lost in 'tt.bitcast': these bits were taken from a float}}
  %y = tt.bitcast %back : i32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Whatever passes them on: here an arrangement and a combination.
tt.func @bits_of_tiles(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %b = tt.bitcast %x : tensor<4xf32> -> tensor<4xi32>
  %c = tt.reshape %b : tensor<4xi32> -> tensor<2x2xi32>
  %d = "tt.reduce"(%c) <{axis = 1 : i32}> ({
  ^bb0(%l: i32, %r: i32):
    %s = arith.xori %l, %r : i32
    tt.reduce.return %s : i32
  }) : (tensor<2x2xi32>) -> tensor<2xi32>
  // expected-error @+1 {{derivative lost in 'tt.bitcast': these bits were taken from a float}}
  %y = tt.bitcast %d : tensor<2xi32> -> tensor<2xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @assembly(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for 'tt.elementwise_inline_asm', which may access memory}}
  %y = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @atomic_result(%px: !tt.ptr<f32>, %pc: !tt.ptr<f32>, %py: !tt.ptr<f32>, %m: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the result of an atomic operation that an output depends on}}
  %old = tt.atomic_rmw fadd, acq_rel, gpu, %pc, %x, %m : (!tt.ptr<f32>, f32, i1) -> f32
  tt.store %py, %old : !tt.ptr<f32>
  tt.return
}

// -----

// A pointer that the kernel loads could be anybody's.
tt.func @unknown_base(%table: !tt.ptr<!tt.ptr<f32>>, %py: !tt.ptr<f32>) {
  %p = tt.load %table : !tt.ptr<!tt.ptr<f32>>
  // expected-error @+1 {{this access goes through a pointer that is loaded from memory}}
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @from_integer(%address: i64, %py: !tt.ptr<f32>) {
  %p = tt.int_to_ptr %address : i64 -> !tt.ptr<f32>
  // expected-error @+1 {{this access goes through a pointer that is made from an integer, so its gradient has nowhere to go}}
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

// Integers have no gradient that could get lost.
tt.func @inactive(%table: !tt.ptr<!tt.ptr<i32>>, %px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %p = tt.load %table : !tt.ptr<!tt.ptr<i32>>
  %i = tt.load %p : !tt.ptr<i32>
  %q = tt.addptr %px, %i : !tt.ptr<f32>, i32
  %x = tt.load %q : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @reinterpreted(%px: !tt.ptr<f32>, %py: !tt.ptr<f16>) {
  %p = tt.bitcast %px : !tt.ptr<f32> -> !tt.ptr<f16>
  // expected-error @+1 {{'tl.load' accesses memory of a differentiated tensor of f32 as f16}}
  %x = tt.load %p : !tt.ptr<f16>
  tt.store %py, %x : !tt.ptr<f16>
  tt.return
}

// -----

// This one hides what was stored before.
tt.func @hidden(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0 : i32
  %x = tt.load %px : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  %q = tt.bitcast %py : !tt.ptr<f32> -> !tt.ptr<i32>
  // expected-error @+1 {{'tl.store' accesses memory of a differentiated tensor of f32 as i32}}
  tt.store %q, %zero : !tt.ptr<i32>
  tt.return
}

// -----

tt.func @compare_and_swap(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %x = tt.load %px : !tt.ptr<f32>
  tt.store %py, %x : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for a compare-and-swap on a differentiated tensor}}
  %old = tt.atomic_cas acq_rel, gpu, %py, %zero, %zero : (!tt.ptr<f32>, f32, f32) -> f32
  tt.return
}

// -----

// The last program, by a counter, loads what all have added up.
tt.func @last(%px: !tt.ptr<f32>, %psum: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pcount: !tt.ptr<i32>, %n: i32) {
  %true = arith.constant true
  %c1 = arith.constant 1 : i32
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %before = tt.atomic_rmw fadd, acq_rel, gpu, %psum, %x, %true : (!tt.ptr<f32>, f32, i1) -> f32
  %count = tt.atomic_rmw add, acq_rel, gpu, %pcount, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %is = arith.cmpi eq, %count, %n : i32
  scf.if %is {
    // expected-error @+1 {{this waits for what other programs of the launch have stored}}
    %sum = tt.load %psum : !tt.ptr<f32>
    tt.store %py, %sum : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Each program waits until the one before it has stored; what is loaded is
// stored only later in the kernel.
tt.func @turns(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pturn: !tt.ptr<i32>) {
  %true = arith.constant true
  %c1 = arith.constant 1 : i32
  %id = tt.get_program_id x : i32
  scf.while : () -> () {
    %turn = tt.load %pturn {isVolatile = true} : !tt.ptr<i32>
    %wait = arith.cmpi slt, %turn, %id : i32
    scf.condition(%wait)
  } do {
    scf.yield
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  // expected-error @+1 {{this waits for what other programs of the launch have stored}}
  %before = tt.load %qy : !tt.ptr<f32>
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %sum = arith.addf %before, %x : f32
  %next = tt.addptr %qy, %c1 : !tt.ptr<f32>, i32
  tt.store %next, %sum : !tt.ptr<f32>
  %0 = tt.atomic_rmw add, acq_rel, gpu, %pturn, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}
