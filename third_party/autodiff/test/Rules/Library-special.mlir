// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Another function of the same library, at the same type: x̄ = −ȳ·J₁(x).
// CHECK-LABEL: tt.func @j0f_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_j1f"
// CHECK: %[[V2:.*]] = arith.mulf %[[T]], %[[V1]] :
// CHECK: %[[V3:.*]] = arith.subf %[[ZERO]], %[[V2]] :
// CHECK: autodiff.accumulate %arg0, %[[V3]] {
tt.func @j0f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Likewise in f64, by ROCm's names: x̄ = ȳ·I₁(x).
// CHECK-LABEL: tt.func @i0_f64_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__ocml_i1_f64"
// CHECK: %[[V2:.*]] = arith.mulf %[[T]], %[[V1]] :
// CHECK: autodiff.accumulate %arg0, %[[V2]] {
tt.func @i0_f64(%px: !tt.ptr<f64>, %py: !tt.ptr<f64>) {
  %x = tt.load %px : !tt.ptr<f64>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__ocml_i0_f64"} : (f64) -> f64
  tt.store %py, %y : !tt.ptr<f64>
  tt.return
}

// -----

// x̄ = ȳ·(J₀(x) − y/x), and its limit 1/2 at zero.
// CHECK-LABEL: tt.func @j1f_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_j1f"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V2:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_j0f"
// CHECK: %[[V3:.*]] = arith.divf %[[V1]], %[[X]] :
// CHECK: %[[V4:.*]] = arith.subf %[[V2]], %[[V3]] :
// CHECK: %[[V5:.*]] = arith.cmpf oeq, %[[X]], %[[ZERO]] :
// CHECK: %[[V6:.*]] = arith.select %[[V5]], %[[HALF]], %[[V4]] :
// CHECK: %[[V7:.*]] = arith.mulf %[[T]], %[[V6]] :
// CHECK: autodiff.accumulate %arg0, %[[V7]] {
tt.func @j1f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j1f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·n·xⁿ⁻¹: the integer has no derivative.
// CHECK-LABEL: tt.func @powif_bwd(
// CHECK-DAG: %[[C1:.*]] = arith.constant 0
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V2:.*]] = arith.addi %arg1, %[[NONE]] :
// CHECK: %[[V3:.*]] = tt.extern_elementwise %[[X]], %[[V2]] {{.*}}"__nv_powif"
// CHECK: %[[V4:.*]] = arith.sitofp %arg1 :
// CHECK: %[[V5:.*]] = arith.cmpi eq, %arg1, %[[C1]] :
// CHECK: %[[V6:.*]] = arith.mulf %[[V4]], %[[V3]] :
// CHECK: %[[V7:.*]] = arith.mulf %[[T]], %[[V6]] :
// CHECK: %[[V8:.*]] = arith.select %[[V5]], %[[ZERO]], %[[V7]] :
// CHECK: %[[V9:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V10:.*]] = arith.select %[[V9]], %[[ZERO]], %[[V8]] :
// CHECK: autodiff.accumulate %arg0, %[[V10]] {
tt.func @powif(%px: !tt.ptr<f32>, %w: i32, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_powif"} : (f32, i32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·2ⁿ, exact and without a division by x.
// CHECK-LABEL: tt.func @ldexpf_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[T]], %arg1 {{.*}}"__nv_ldexpf"
// CHECK: autodiff.accumulate %arg0, %[[V1]] {
tt.func @ldexpf(%px: !tt.ptr<f32>, %w: i32, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_ldexpf"} : (f32, i32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A rounding mode changes nothing: x̄ = ȳ·w, w̄ = ȳ·x.
// CHECK-LABEL: tt.func @mul_rz_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[V1:.*]] = arith.mulf %[[T]], %[[W]] :
// CHECK: %[[V2:.*]] = arith.mulf %[[T]], %[[X]] :
// CHECK: autodiff.accumulate %arg1, %[[V2]] {
// CHECK: autodiff.accumulate %arg0, %[[V1]] {
tt.func @mul_rz(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_fmul_rz"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// From f64 to f32: the cotangent is widened.
// CHECK-LABEL: tt.func @narrow_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.extf %[[T]] :
// CHECK: autodiff.accumulate %arg0, %[[V1]] {
tt.func @narrow(%px: !tt.ptr<f64>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f64>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_double2float_rn"} : (f64) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·√π/2·exp(y²).
// CHECK-LABEL: tt.func @erfinvf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[C1:.*]] = arith.constant 0.886226952
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[V2:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_erfinvf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V3:.*]] = arith.mulf %[[V2]], %[[V2]] :
// CHECK: %[[V4:.*]] = math.exp %[[V3]] :
// CHECK: %[[V5:.*]] = arith.mulf %[[T]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.mulf %[[V5]], %[[C1]] :
// CHECK: %[[V7:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V8:.*]] = arith.select %[[V7]], %[[ZERO]], %[[V6]] :
// CHECK: autodiff.accumulate %arg0, %[[V8]] {
tt.func @erfinvf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_erfinvf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// As for the operation that computes the same.
// CHECK-LABEL: tt.func @fmaxf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[W:.*]] = tt.load %arg1 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg2 {
// CHECK: %[[WNAN:.*]] = arith.cmpf uno, %[[W]], %[[W]] :
// CHECK: %[[XWINS:.*]] = arith.cmpf ogt, %[[X]], %[[W]] :
// CHECK: %[[PX:.*]] = arith.select %[[XWINS]], %[[T]], %{{.*}} :
// CHECK: %[[DX:.*]] = arith.select %[[WNAN]], %[[T]], %[[PX]] :
// CHECK: autodiff.accumulate %arg0, %[[DX]] {
tt.func @fmaxf(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %w = tt.load %pw : !tt.ptr<f32>
  %y = tt.extern_elementwise %x, %w {libname = "", libpath = "", pure = true, symbol = "__nv_fmaxf"} : (f32, f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A piecewise constant function has no derivative.
// CHECK-LABEL: tt.func @floorf_bwd(
// CHECK-NOT: autodiff.accumulate
tt.func @floorf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_floorf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
