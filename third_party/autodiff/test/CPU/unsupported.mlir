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
