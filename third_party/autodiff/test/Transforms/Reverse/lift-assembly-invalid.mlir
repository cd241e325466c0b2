// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-link-rules -autodiff-lift-assembly \
// RUN:   -o /dev/null

tt.func @label(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the inline assembly "again: add.f32 $0, $1, $1;" ('tt.elementwise_inline_asm'), which lies between a differentiated input and an output: label 'again'; give its rule with register_vjp (docs/python.md), or detach the tensors that it depends on}}
  %y = tt.elementwise_inline_asm "again: add.f32 $0, $1, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @branch(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: branch 'bra'; give}}
  %y = tt.elementwise_inline_asm "{ .reg .pred p; setp.lt.f32 p, $1, 1.0; @p bra end; }" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @memory(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: 'ld.global.f32': memory is accessed; give}}
  %y = tt.elementwise_inline_asm "ld.global.f32 $0, [$1];" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @threads(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: 'shfl.sync.bfly.b32': it is not straight-line arithmetic; give}}
  %y = tt.elementwise_inline_asm "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @special(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: 'mov.u32': '%tid.x', which is no register that is declared here; give}}
  %y = tt.elementwise_inline_asm "{ .reg .u32 t; mov.u32 t, %tid.x; mov.f32 $0, $1; }" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// What a register holds if the guard does not hold is not known.
tt.func @guarded(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: '$0' is read, which may not be set; give}}
  %y = tt.elementwise_inline_asm "{ .reg .pred p; setp.lt.f32 p, $1, 1.0; @p mov.f32 $0, $1; }" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Which elements are neighbours is Triton's choice.
tt.func @swapped(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %ps = tt.splat %px : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<8x!tt.ptr<f16>>
  // expected-error @+1 {{an output: elements that are packed side by side depend on one another, and Triton leaves open which these are; give}}
  %y = tt.elementwise_inline_asm "prmt.b32 $0, $1, 0, 0x1032;" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %x : tensor<8xf16> -> tensor<8xf16>
  tt.store %ys, %y : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

tt.func @apart(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %ps = tt.splat %px : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
  %x = tt.load %ps : tensor<8x!tt.ptr<f16>>
  // expected-error @+1 {{an output: elements that are packed side by side are not treated alike, and Triton leaves open which these are; give}}
  %y = tt.elementwise_inline_asm "{ .reg .b16 a, b; mov.b32 {a, b}, $1; neg.f16 b, b; mov.b32 $0, {a, b}; }" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %x : tensor<8xf16> -> tensor<8xf16>
  tt.store %ys, %y : tensor<8x!tt.ptr<f16>>
  tt.return
}

// -----

// Computing with bits has no derivative, unless what comes of it is constant.
tt.func @sign(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{derivative lost in the inline assembly "xor.b32 $0, $1, 0x80000000;" ('tt.elementwise_inline_asm'), which computes with the bits of a float that depends on a differentiated input; give its rule with register_vjp}}
  %y = tt.elementwise_inline_asm "xor.b32 $0, $1, 0x80000000;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Where branches meet, x and the result become one register.
tt.func @branch_shares(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %x = tt.load %px : !tt.ptr<f32>
  %z = scf.if %c -> f32 {
    // expected-error @+1 {{an output: 'add.f32': '$1' is read after '$0' is written, and both may be in one register, since the one is carried to the other; write "=&" in the constraint of '$0'; give}}
    %y = tt.elementwise_inline_asm "mul.f32 $0, $1, $1; add.f32 $0, $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  tt.store %py, %z : !tt.ptr<f32>
  tt.return
}

// -----

// The predicate is another one when the operand is read.
tt.func @guards_that_change(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %px : !tt.ptr<f32>
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) : i32 {
    // expected-error @+1 {{an output: 'mul.f32': '$1' is read after '$0' is written}}
    %y = tt.elementwise_inline_asm "{ .reg .pred p; setp.gt.f32 p, $1, 1.0; @p mov.f32 $0, 2.0; setp.gt.f32 p, 1.0, 0.5; @!p mul.f32 $0, $1, $1; }" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %a : f32 -> f32
    scf.yield %y : f32
  }
  tt.store %py, %z : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @operand_written(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: 'mul.f32': it writes '$1', which is an operand's register; give}}
  %y = tt.elementwise_inline_asm "mul.f32 $1, $1, $1; mov.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @bits_outside(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{an output: 'bfe.s32': it takes bits from place 40 on, 5 of them, of a register of 32, which GPUs do in ways of their own; give}}
  %y = tt.elementwise_inline_asm "{ .reg .b32 t; bfe.s32 t, $1, 40, 5; cvt.rn.f32.s32 $0, t; }" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
