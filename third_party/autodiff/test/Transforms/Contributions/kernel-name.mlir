// RUN: triton-autodiff-opt %s -autodiff-reverse | FileCheck %s

// A derived kernel gets a name that nobody has.
// CHECK: tt.func public @copy(
// CHECK: tt.func public @copy_bwd_2(
// CHECK: tt.func private @copy_bwd(
tt.func public @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %v = tt.load %x {autodiff.site = 0 : i32} : !tt.ptr<f32>
  tt.store %y, %v {autodiff.site = 1 : i32} : !tt.ptr<f32>
  tt.return
}
tt.func private @copy_bwd(%x: f32) { tt.return }
