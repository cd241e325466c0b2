// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Functions of the device libraries by name. X, W, U: the operands. Y: the result. T: the result's cotangent.

// x̄ = ȳ·w·pow(x, w − 1); w̄ = ȳ·y·ln x, nothing at x = 0.
// CHECK-LABEL: tt.func @powf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]], %[[W]] {{.*}}"__nv_powf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V2:.*]] = arith.addf %[[W]], %[[NONE]] :
// CHECK: %[[V3:.*]] = tt.extern_elementwise %[[X]], %[[V2]] {{.*}}"__nv_powf"
// CHECK: %[[V4:.*]] = arith.cmpf oeq, %[[W]], %[[ZERO]] :
// CHECK: %[[V5:.*]] = arith.mulf %[[W]], %[[V3]] :
// CHECK: %[[V6:.*]] = arith.mulf %[[T]], %[[V5]] :
// CHECK: %[[V7:.*]] = arith.select %[[V4]], %[[ZERO]], %[[V6]] :
// CHECK: %[[V8:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V9:.*]] = arith.select %[[V8]], %[[ZERO]], %[[V7]] :
// CHECK: %[[V10:.*]] = arith.cmpf oeq, %[[X]], %[[ZERO]] :
// CHECK: %[[V11:.*]] = arith.cmpf oge, %[[W]], %[[ZERO]] :
// CHECK: %[[V12:.*]] = arith.andi %[[V10]], %[[V11]] :
// CHECK: %[[V13:.*]] = arith.mulf %[[T]], %[[V1]] :
// CHECK: %[[V14:.*]] = math.log %[[X]] :
// CHECK: %[[V15:.*]] = arith.mulf %[[V13]], %[[V14]] :
// CHECK: %[[V16:.*]] = arith.select %[[V12]], %[[ZERO]], %[[V15]] :
// CHECK: %[[V17:.*]] = arith.select %[[V8]], %[[ZERO]], %[[V16]] :
// CHECK: autodiff.accumulate %arg1, %[[V17]] {
// CHECK: autodiff.accumulate %arg0, %[[V9]] {
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
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]], %[[W]] {{.*}}"__nv_hypotf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V2:.*]] = arith.cmpf oeq, %[[V1]], %[[ZERO]] :
// CHECK: %[[V3:.*]] = arith.divf %[[X]], %[[V1]] :
// CHECK: %[[V4:.*]] = arith.mulf %[[T]], %[[V3]] :
// CHECK: %[[V5:.*]] = arith.select %[[V2]], %[[ZERO]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.divf %[[W]], %[[V1]] :
// CHECK: %[[V7:.*]] = arith.mulf %[[T]], %[[V6]] :
// CHECK: %[[V8:.*]] = arith.select %[[V2]], %[[ZERO]], %[[V7]] :
// CHECK: autodiff.accumulate %arg1, %[[V8]] {
// CHECK: autodiff.accumulate %arg0, %[[V5]] {
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
// CHECK: %[[V1:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[V2:.*]] = arith.mulf %[[W]], %[[W]] :
// CHECK: %[[V3:.*]] = arith.addf %[[V1]], %[[V2]] :
// CHECK: %[[V4:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[V5:.*]] = arith.divf %[[V4]], %[[V3]] :
// CHECK: %[[V6:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V7:.*]] = arith.select %[[V6]], %[[ZERO]], %[[V5]] :
// CHECK: %[[V8:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: %[[V9:.*]] = arith.divf %[[V8]], %[[V3]] :
// CHECK: %[[V10:.*]] = arith.subf %[[ZERO]], %[[V9]] :
// CHECK: %[[V11:.*]] = arith.select %[[V6]], %[[ZERO]], %[[V10]] :
// CHECK: autodiff.accumulate %arg1, %[[V11]] {
// CHECK: autodiff.accumulate %arg0, %[[V7]] {
tt.func @atan2f(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_atan2f"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
