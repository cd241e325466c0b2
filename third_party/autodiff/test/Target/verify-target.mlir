// RUN: triton-autodiff-opt --autodiff-verify-target=target=cpu %s | FileCheck %s
// RUN: triton-autodiff-opt --autodiff-verify-target=target=gfx950 %s | FileCheck %s

// Products over few elements are no limit of these.
// CHECK: tt.dot
tt.func @short(%a: tensor<16x8xbf16>, %b: tensor<8x16xbf16>, %c: tensor<16x16xf32>) attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c : tensor<16x8xbf16> * tensor<8x16xbf16> -> tensor<16x16xf32>
  tt.return
}
