// RUN: triton-autodiff-translate --ttir-to-python %s | FileCheck %s

// What is promised of elements stays. Two literals would be of 32 bits.
// CHECK: def promised(p, n):
// CHECK-NEXT:     i = tl.multiple_of(tl.max_contiguous(tl.arange(0, 16) % n, [16]), [4])
// CHECK-NEXT:     x = tl.where(i < n, tl.full([], 1.0, tl.float64), 0.0)
// CHECK-NEXT:     ps = p + i
// CHECK-NEXT:     tl.store(ps, x)
tt.func public @promised(%p: !tt.ptr<f64> loc("p"), %n: i32 loc("n")) {
  %one = arith.constant dense<1.0> : tensor<16xf64>
  %zero = arith.constant dense<0.0> : tensor<16xf64>
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %i = arith.remsi %range, %ns {tt.contiguity = dense<16> : tensor<1xi32>, tt.divisibility = dense<4> : tensor<1xi32>} : tensor<16xi32> loc("i")
  %m = arith.cmpi slt, %i, %ns : tensor<16xi32>
  %x = arith.select %m, %one, %zero : tensor<16xi1>, tensor<16xf64> loc("x")
  %ps = tt.splat %p : !tt.ptr<f64> -> tensor<16x!tt.ptr<f64>>
  %at = tt.addptr %ps, %i : tensor<16x!tt.ptr<f64>>, tensor<16xi32>
  tt.store %at, %x : tensor<16x!tt.ptr<f64>>
  tt.return
}
