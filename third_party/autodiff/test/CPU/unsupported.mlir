// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file -verify-diagnostics

tt.func public @assembly(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{the CPU backend cannot compile 'tt.elementwise_inline_asm' "bar.sync 0; mov.f32 $0, $1;": 'bar.sync': it is not straight-line arithmetic}}
  %a = tt.elementwise_inline_asm "bar.sync 0; mov.f32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @library(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{the CPU backend cannot compile 'tt.extern_elementwise' '__nv_unheard_of'}}
  %a = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_unheard_of"} : (f32) -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @packed_map(%p: !tt.ptr<f32>) {
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  // expected-error @below {{the CPU backend cannot compile 'tt.map_elementwise' of several elements at a time}}
  %y = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.map_elementwise.return %b, %a : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.store %0, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// What uses these pointers can be lowered all the same.
tt.func public @pointers_side_by_side(%p: !tt.ptr<f32>, %v: tensor<8xf32>) {
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  // expected-error @below {{the CPU backend cannot compile 'tt.cat' on pointers}}
  %1 = tt.cat %0, %0 : tensor<4x!tt.ptr<f32>> -> tensor<8x!tt.ptr<f32>>
  tt.store %1, %v : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func public @operation_of_ours(%p: !tt.ptr<f32>) {
  %x = arith.constant 1.0 : f32
  // expected-error @below {{the CPU backend cannot compile 'autodiff.programs' which is not part of a kernel}}
  %n = autodiff.programs [#autodiff.expr<4>] : i32
  %q = tt.addptr %p, %n : !tt.ptr<f32>, i32
  tt.store %q, %x : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @pointers_of_ours(%p: !tt.ptr<f32>) {
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  // expected-error @below {{the CPU backend cannot compile 'autodiff.residual' which is not part of a kernel}}
  %1 = autodiff.residual %0 id = 0 : tensor<4x!tt.ptr<f32>>
  %x = tt.load %1 : tensor<4x!tt.ptr<f32>>
  tt.store %0, %x : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func public @unused_descriptor(%p: !tt.ptr<f16>, %n: i32) {
  %one = arith.constant 1 : i64
  // expected-error @below {{the CPU backend cannot compile 'tt.make_tensor_descriptor'}}
  %d = tt.make_tensor_descriptor %p, [%n], [%one] : !tt.ptr<f16>, !tt.tensordesc<4xf16>
  tt.return
}

// -----

// It would call itself.
// expected-error @below {{the CPU backend cannot compile 'tt.func' with the name of a function that is called, 'hypotf'; give it another one}}
tt.func public @hypotf(%p: !tt.ptr<f32>, %x: f32) {
  %y = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_hypotf"} : (f32, f32) -> f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @too_many(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{the CPU backend cannot compile 'tt.extern_elementwise' '__nv_expf'}}
  %a = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_expf"} : (f32, f32) -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @too_few(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{the CPU backend cannot compile 'tt.extern_elementwise' '__nv_fmaxf'}}
  %a = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_fmaxf"} : (f32) -> f32
  tt.store %p, %a : !tt.ptr<f32>
  tt.return
}

// -----

// Triton's frontend makes one of integers of it.
tt.func public @maximum_of_floats(%p: !tt.ptr<f32>, %x: f32, %m: i1) {
  // expected-error @below {{the CPU backend cannot compile 'tt.atomic_rmw' 'max' of f32}}
  %old = tt.atomic_rmw max, acq_rel, gpu, %p, %x, %m : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}
