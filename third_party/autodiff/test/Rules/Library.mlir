// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// Functions of the device libraries by name. X, W, U: the operands. Y: the result. T: the result's cotangent.

// x̄ = ȳ·y.
// CHECK-LABEL: tt.func @expf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_expf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @expf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_expf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// The fast variant has the same derivative.
// CHECK-LABEL: tt.func @fast_expf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_fast_expf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @fast_expf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_fast_expf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So has ROCm's, in f64.
// CHECK-LABEL: tt.func @exp_f64_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__ocml_exp_f64"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] : f64
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exp_f64(%px: !tt.ptr<f64>, %py: !tt.ptr<f64>) {
  %x = tt.load %px : !tt.ptr<f64>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__ocml_exp_f64"} : (f64) -> f64
  tt.store %py, %y : !tt.ptr<f64>
  tt.return
}

// -----

// x̄ = ȳ·y·ln 2.
// CHECK-LABEL: tt.func @exp2f_bwd(
// CHECK-DAG: %[[LN2:.*]] = arith.constant 0.693147
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_exp2f"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[LN2]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exp2f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_exp2f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·y·ln 10.
// CHECK-LABEL: tt.func @exp10f_bwd(
// CHECK-DAG: %[[LN10:.*]] = arith.constant 2.302585
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_exp10f"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[LN10]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @exp10f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_exp10f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·(y + 1).
// CHECK-LABEL: tt.func @expm1f_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_expm1f"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[E:.*]] = arith.addf %[[Y]], %[[ONE]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[E]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @expm1f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_expm1f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/x; nothing where ȳ is zero, even at x = 0.
// CHECK-LABEL: tt.func @logf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[X]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @logf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_logf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·log₂e/x.
// CHECK-LABEL: tt.func @log2f_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[LOG2E]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[X]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @log2f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_log2f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·log₁₀e/x.
// CHECK-LABEL: tt.func @log10f_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[LOG10E:.*]] = arith.constant 0.434294
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[LOG10E]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[X]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @log10f(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_log10f"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(x + 1).
// CHECK-LABEL: tt.func @log1pf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.addf %[[X]], %[[ONE]] :
// CHECK: %[[V2:.*]] = arith.divf %[[T]], %[[V1]] :
// CHECK: %[[V3:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V4:.*]] = arith.select %[[V3]], %[[ZERO]], %[[V2]] :
// CHECK: autodiff.accumulate %arg0, %[[V4]] {
tt.func @log1pf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_log1pf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(2y).
// CHECK-LABEL: tt.func @sqrtf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_sqrtf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[HALF]] :
// CHECK: %[[Q:.*]] = arith.divf %[[P]], %[[Y]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @sqrtf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sqrtf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ·y³/2.
// CHECK-LABEL: tt.func @rsqrtf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NHALF:.*]] = arith.constant -5.000000e-01
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_rsqrtf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[Y3:.*]] = arith.mulf %[[Y2]], %[[Y]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[Y3]] :
// CHECK: %[[Q:.*]] = arith.mulf %[[P]], %[[NHALF]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @rsqrtf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_rsqrtf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(3y²).
// CHECK-LABEL: tt.func @cbrtf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_cbrtf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[E:.*]] = arith.mulf %[[Y2]], %[[THREE]] :
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[E]] :
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]]
// CHECK: %[[D:.*]] = arith.select %[[Z]], %[[ZERO]], %[[Q]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @cbrtf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_cbrtf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·cos x.
// CHECK-LABEL: tt.func @sinf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[C:.*]] = math.cos %[[X]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[C]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @sinf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ·sin x.
// CHECK-LABEL: tt.func @cosf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[S:.*]] = math.sin %[[X]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: %[[D:.*]] = arith.subf %[[ZERO]], %[[P]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @cosf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_cosf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·(y² + 1).
// CHECK-LABEL: tt.func @tanf_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_tanf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[S:.*]] = arith.addf %[[Y2]], %[[ONE]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @tanf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_tanf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/√(1 − x²).
// CHECK-LABEL: tt.func @asinf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.subf %[[ONE]], %[[X]] :
// CHECK: %[[V2:.*]] = arith.addf %[[X]], %[[ONE]] :
// CHECK: %[[V3:.*]] = arith.mulf %[[V1]], %[[V2]] :
// CHECK: %[[V4:.*]] = math.sqrt %[[V3]] :
// CHECK: %[[V5:.*]] = arith.divf %[[T]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V7:.*]] = arith.select %[[V6]], %[[ZERO]], %[[V5]] :
// CHECK: autodiff.accumulate %arg0, %[[V7]] {
tt.func @asinf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_asinf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ/√(1 − x²).
// CHECK-LABEL: tt.func @acosf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.subf %[[ONE]], %[[X]] :
// CHECK: %[[V2:.*]] = arith.addf %[[X]], %[[ONE]] :
// CHECK: %[[V3:.*]] = arith.mulf %[[V1]], %[[V2]] :
// CHECK: %[[V4:.*]] = math.sqrt %[[V3]] :
// CHECK: %[[V5:.*]] = arith.divf %[[T]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.subf %[[ZERO]], %[[V5]] :
// CHECK: %[[V7:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V8:.*]] = arith.select %[[V7]], %[[ZERO]], %[[V6]] :
// CHECK: autodiff.accumulate %arg0, %[[V8]] {
tt.func @acosf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_acosf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(x² + 1).
// CHECK-LABEL: tt.func @atanf_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[E:.*]] = arith.addf %[[X2]], %[[ONE]] :
// CHECK: %[[D:.*]] = arith.divf %[[T]], %[[E]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @atanf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_atanf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·√(y² + 1).
// CHECK-LABEL: tt.func @sinhf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_coshf"
// CHECK: %[[V2:.*]] = arith.mulf %[[T]], %[[V1]] :
// CHECK: autodiff.accumulate %arg0, %[[V2]] {
tt.func @sinhf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinhf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·(eˣ − e⁻ˣ)/2.
// CHECK-LABEL: tt.func @coshf_bwd(
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_sinhf"
// CHECK: %[[V2:.*]] = arith.mulf %[[T]], %[[V1]] :
// CHECK: autodiff.accumulate %arg0, %[[V2]] {
tt.func @coshf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_coshf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·(1 − y²).
// CHECK-LABEL: tt.func @tanhf_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[Y:.*]] = tt.extern_elementwise %[[X]] {{.*}}"__nv_tanhf"
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[Y2:.*]] = arith.mulf %[[Y]], %[[Y]] :
// CHECK: %[[S:.*]] = arith.subf %[[ONE]], %[[Y2]] :
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[S]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @tanhf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/√(x² + 1).
// CHECK-LABEL: tt.func @asinhf_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[E:.*]] = arith.addf %[[X2]], %[[ONE]] :
// CHECK: %[[R:.*]] = math.sqrt %[[E]] :
// CHECK: %[[D:.*]] = arith.divf %[[T]], %[[R]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @asinhf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_asinhf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/√(x² − 1).
// CHECK-LABEL: tt.func @acoshf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.addf %[[X]], %[[NONE]] :
// CHECK: %[[V2:.*]] = arith.addf %[[X]], %[[ONE]] :
// CHECK: %[[V3:.*]] = arith.mulf %[[V1]], %[[V2]] :
// CHECK: %[[V4:.*]] = math.sqrt %[[V3]] :
// CHECK: %[[V5:.*]] = arith.divf %[[T]], %[[V4]] :
// CHECK: %[[V6:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V7:.*]] = arith.select %[[V6]], %[[ZERO]], %[[V5]] :
// CHECK: autodiff.accumulate %arg0, %[[V7]] {
tt.func @acoshf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_acoshf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ/(1 − x²).
// CHECK-LABEL: tt.func @atanhf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[V1:.*]] = arith.subf %[[ONE]], %[[X]] :
// CHECK: %[[V2:.*]] = arith.addf %[[X]], %[[ONE]] :
// CHECK: %[[V3:.*]] = arith.mulf %[[V1]], %[[V2]] :
// CHECK: %[[V4:.*]] = arith.divf %[[T]], %[[V3]] :
// CHECK: %[[V5:.*]] = arith.cmpf oeq, %[[T]], %[[ZERO]] :
// CHECK: %[[V6:.*]] = arith.select %[[V5]], %[[ZERO]], %[[V4]] :
// CHECK: autodiff.accumulate %arg0, %[[V6]] {
tt.func @atanhf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_atanhf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = ȳ·2/√π·exp(−x²).
// CHECK-LABEL: tt.func @erff_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[ISQ:.*]] = arith.constant 1.12837
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[X2]] :
// CHECK: %[[E:.*]] = math.exp %[[N]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[E]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[ISQ]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @erff(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// x̄ = −ȳ·2/√π·exp(−x²).
// CHECK-LABEL: tt.func @erfcf_bwd(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NISQ:.*]] = arith.constant -1.128379
// CHECK: %[[X:.*]] = tt.load %arg0 {
// CHECK: %[[T:.*]] = autodiff.upstream %arg1 {
// CHECK: %[[X2:.*]] = arith.mulf %[[X]], %[[X]] :
// CHECK: %[[N:.*]] = arith.subf %[[ZERO]], %[[X2]] :
// CHECK: %[[E:.*]] = math.exp %[[N]] :
// CHECK: %[[P:.*]] = arith.mulf %[[T]], %[[E]] :
// CHECK: %[[D:.*]] = arith.mulf %[[P]], %[[NISQ]] :
// CHECK: autodiff.accumulate %arg0, %[[D]] {
tt.func @erfcf(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %x = tt.load %px : !tt.ptr<f32>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_erfcf"} : (f32) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
