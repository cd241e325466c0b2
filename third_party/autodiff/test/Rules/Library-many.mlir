// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Functions of the device libraries by name. X, W, U: the operands. Y: the result. T: the result's cotangent.

// x̄ = ȳ·w·y/x, and its limit at x = 0; w̄ = ȳ·y·ln x.
// CHECK-LABEL: tt.func @powf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]], %[[W]] {{.*}}"__nv_powf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[STEEP:.*]] = arith.cmpf olt, %[[W]], %[[ONE]] :
// CHECK: %[[INF:.*]] = arith.divf %[[P]], %[[ZERO]] :
// CHECK: %[[S:.*]] = arith.select %[[STEEP]], %[[INF]], %[[ZERO]] :
// CHECK: %[[FLAT:.*]] = arith.cmpf oeq, %[[W]], %[[ZERO]] :
// CHECK: %[[F:.*]] = arith.select %[[FLAT]], %[[ZERO]], %[[S]] :
// CHECK: %[[LINEAR:.*]] = arith.cmpf oeq, %[[W]], %[[ONE]] :
// CHECK: %[[L:.*]] = arith.select %[[LINEAR]], %[[T]], %[[F]] :
// CHECK: %[[ATZERO:.*]] = arith.cmpf oeq, %[[X]], %[[ZERO]] :
// CHECK: %[[R:.*]] = arith.mulf %[[P]], %[[Y]] :
// CHECK: %[[Q:.*]] = arith.divf %[[R]], %[[X]] :
// CHECK: %[[SLOPE:.*]] = arith.select %[[ATZERO]], %[[L]], %[[Q]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[DX:.*]] = arith.select %[[Z]], %[[ZERO]], %[[SLOPE]] :
// CHECK: %[[TY:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[LN:.*]] = math.log %[[X]] :
// CHECK: %[[V:.*]] = arith.mulf %[[TY]], %[[LN]] :
// CHECK: %[[DW:.*]] = arith.select %[[Z]], %[[ZERO]], %[[V]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @powf(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·w, w̄ = ȳ·x, ū = ȳ.
// CHECK-LABEL: tt.func @fmaf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg3 {
// CHECK: %[[DX:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[DW:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg2, %[[T]] {
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @fmaf(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %pu: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %u = tt.load %pu : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w, %u {libname = "", libpath = "", pure = true, symbol = "__nv_fmaf"} : (f32, f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·x/y, w̄ = ȳ·w/y.
// CHECK-LABEL: tt.func @hypotf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]], %[[W]] {{.*}}"__nv_hypotf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: %[[DX:.*]] = arith.divf %[[P]], %[[Y]] :
// CHECK: %[[R:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[DW:.*]] = arith.divf %[[R]], %[[Y]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @hypotf(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_hypotf"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// atan2(x, w): x̄ = ȳ·w/(x² + w²), w̄ = −ȳ·x/(x² + w²).
// CHECK-LABEL: tt.func @atan2f_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[W2:.*]] = arith.mulf %[[W]], %[[W]] :
// CHECK: %[[S:.*]] = arith.addf %[[X2]], %[[W2]] :
// CHECK: %[[DX:.*]] = arith.divf %[[P]], %[[S]] :
// CHECK: %[[R:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: %[[Q:.*]] = arith.divf %[[R]], %[[S]] :
// CHECK: %[[DW:.*]] = arith.subf %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg1, %[[DW]] {
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @atan2f(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_atan2f"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
