// RUN: triton-autodiff-opt --autodiff-verify-target -split-input-file -verify-diagnostics %s

tt.func @short(%a: tensor<16x8xbf16>, %b: tensor<8x16xbf16>, %c: tensor<16x16xf32>) attributes {autodiff.role = "backward"} {
  // expected-error @below {{internal error: a derived kernel is beyond the limits of sm_90: a product of 'bf16' sums over 8 elements, and should over 16 at least}}
  %d = tt.dot %a, %b, %c : tensor<16x8xbf16> * tensor<8x16xbf16> -> tensor<16x16xf32>
  tt.return
}

// -----

// What Triton's passes have left has no role.
tt.func @left(%a: tensor<16x16xi8>, %b: tensor<16x16xi8>, %c: tensor<16x16xi32>) {
  // expected-error @below {{a product of 'i8' sums over 16 elements, and should over 32 at least}}
  %d = tt.dot %a, %b, %c : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  tt.return
}

// -----

// The user's kernel, beside those that were derived, is the user's.
tt.func @primal(%a: tensor<16x8xbf16>, %b: tensor<8x16xbf16>, %c: tensor<16x16xf32>) {
  %d = tt.dot %a, %b, %c : tensor<16x8xbf16> * tensor<8x16xbf16> -> tensor<16x16xf32>
  tt.return
}
tt.func @primal_bwd(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %c: tensor<16x16xf32>) attributes {autodiff.role = "backward"} {
  %d = tt.dot %a, %b, %c : tensor<16x8xf32> * tensor<8x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @sum(%a: tensor<16x4xf32>, %b: tensor<4x16xf32>) -> tensor<16x16xf32> attributes {autodiff.role = "forward"} {
  %0 = tt.expand_dims %a {axis = 2 : i32} : tensor<16x4xf32> -> tensor<16x4x1xf32>
  %1 = tt.expand_dims %b {axis = 0 : i32} : tensor<4x16xf32> -> tensor<1x4x16xf32>
  %2 = tt.broadcast %0 : tensor<16x4x1xf32> -> tensor<16x4x16xf32>
  %3 = tt.broadcast %1 : tensor<1x4x16xf32> -> tensor<16x4x16xf32>
  %4 = arith.mulf %2, %3 : tensor<16x4x16xf32>
  // expected-error @below {{Triton takes this sum for a product}}
  %5 = "tt.reduce"(%4) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<16x4x16xf32>) -> tensor<16x16xf32>
  tt.return %5 : tensor<16x16xf32>
}

// -----

autodiff.plan {
  autodiff.launch @warps options {num_warps = 64 : i32}
}
// expected-error @below {{64 warps, and at most 32 are allowed}}
tt.func @warps() attributes {autodiff.role = "backward"} {
  tt.return
}

// -----

autodiff.plan {
  autodiff.launch @odd_warps options {least_warps = 3 : i32}
}
// expected-error @below {{3 warps, and at most 32 are allowed}}
tt.func @odd_warps() attributes {autodiff.role = "backward"} {
  tt.return
}
