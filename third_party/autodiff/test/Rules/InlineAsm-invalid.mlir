// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics \
// RUN:   -autodiff-normalize -autodiff-link-rules -autodiff-reverse -o /dev/null

// Not lifted: saturation makes it another function.
tt.func @saturated(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the inline assembly "add.sat.f32 $0, $1, $1;" ('tt.elementwise_inline_asm'), which lies between a differentiated input and an output; give its rule with register_vjp (docs/python.md)}}
  %y = tt.elementwise_inline_asm "add.sat.f32 $0, $1, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The types of instruction and operation differ.
tt.func @reinterpreted(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the inline assembly}}
  %y = tt.elementwise_inline_asm "neg.f16x2 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Two instructions.
tt.func @two(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{no derivative rule for the inline assembly}}
  %y = tt.elementwise_inline_asm "neg.f32 $0, $1; neg.f32 $0, $0;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Bits in an integer between two pieces of assembly.
tt.func @bits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %i = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,f", packed_element = 1 : i32, pure = true} %x : f32 -> i32
  // expected-error @+1 {{no derivative rule for the inline assembly}}
  %y = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=f,r", packed_element = 1 : i32, pure = true} %i : i32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A function with its own derivative that reads what is differentiated.
tt.func @hidden(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %v = arith.mulf %x, %x : f32
  // expected-error @+1 {{'f' has a derivative of its own, but what it returns depends on a differentiated tensor by another way than its float arguments}}
  %y = autodiff.custom_vjp "f" %v : f32 of %x : f32 -> f32 {
  ^bb0(%t: f32):
    autodiff.yield %t : f32
  }
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Traced to be run, not to be differentiated.
tt.func @untraced(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  // expected-error @+1 {{a function with its own derivative was traced without it}}
  %y = tt.elementwise_inline_asm "// autodiff.custom_vjp" {constraints = "=f,0", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A derivative with an effect.
tt.func private @autodiff.custom_vjp.f.0(f32, f32, f32) -> f32
tt.func @effect(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %t = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
  // expected-error @+1 {{the derivative of 'f' must not have an effect}}
  tt.store %py, %t : !tt.ptr<f32>
  %y = tt.call @autodiff.custom_vjp.f.0(%x, %x, %t) : (f32, f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @count(%x: f32) {
  // expected-error @+1 {{has 1 inputs but 0 cotangents}}
  %y = autodiff.custom_vjp "f" %x : f32 of %x : f32 -> f32 {
  ^bb0(%t: f32):
    autodiff.yield
  }
  tt.return
}

// -----

// expected-error @+1 {{a rule without a name in `autodiff.rule`}}
tt.func @rule(%t: f32, %x: f32, %y: f32) -> f32
    attributes {autodiff.role = "rule", autodiff.rule_asm = "unknown $0, $1;"} {
  tt.return %t : f32
}
tt.func @ruled(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.elementwise_inline_asm "unknown $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func private @autodiff.custom_vjp.f.0(f32, f32, f32) -> f32
tt.func @leaking(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %v = math.sin %x : f32
  %t = tt.elementwise_inline_asm "// autodiff.cotangent 0" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %v : f32 -> f32
  %g = arith.mulf %t, %x : f32
  %y = tt.call @autodiff.custom_vjp.f.0(%v, %x, %g) : (f32, f32, f32) -> f32
  // expected-error @+1 {{only the derivative of 'f' may use its cotangent}}
  tt.store %py, %t : !tt.ptr<f32>
  tt.return
}
