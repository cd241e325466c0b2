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
tt.func @exchanged(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
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
