// RUN: triton-autodiff-opt %s -triton-to-linalg -split-input-file -verify-diagnostics

tt.func public @assembly(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{the CPU backend cannot compile 'tt.elementwise_inline_asm' "add.sat.f32 $0, $1, $1;"}}
  %a = tt.elementwise_inline_asm "add.sat.f32 $0, $1, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
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
