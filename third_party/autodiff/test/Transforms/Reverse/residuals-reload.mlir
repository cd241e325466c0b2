// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-place-tapes -autodiff-simplify -autodiff-choose-residuals -canonicalize -cse \
// RUN:   | FileCheck %s
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-place-tapes -autodiff-simplify \
// RUN:   "-autodiff-choose-residuals=reload=false save=false" -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=REDO
// RUN: triton-autodiff-opt %s -autodiff-normalize -autodiff-mark-residuals -autodiff-reverse \
// RUN:   -canonicalize -cse -autodiff-place-tapes -autodiff-simplify \
// RUN:   "-autodiff-choose-residuals=repeated=1 save=false" -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=REDO

// The kernel stores the exponential of a loop's sum: its backward reads that
// from the output, so there is neither a loop to repeat nor a saving forward.
// No other program may have stored there.
// CHECK: autodiff.check <argument 1> <distinct 1
// CHECK-NOT: @kernel_fwd
// CHECK-LABEL: tt.func @kernel_bwd(
// CHECK-NOT: scf.for
// CHECK: %[[Q:.*]] = tt.addptr %arg1, %
// CHECK: %[[Y:.*]] = tt.load %[[Q]] :
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[D:.*]] = arith.mulf %[[T]], %[[Y]] :
// CHECK: scf.for
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
// CHECK-NOT: math.exp

// REDO-LABEL: tt.func @kernel_bwd(
// REDO: scf.for
// REDO: math.exp
// REDO: autodiff.upstream
tt.func @kernel(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 : i32 {
    %p = tt.addptr %px, %i : !tt.ptr<f32>, i32
    %x = tt.load %p : !tt.ptr<f32>
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  }
  %y = math.exp %s : f32
  %id = tt.get_program_id x : i32
  %q = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %q, %y : !tt.ptr<f32>
  tt.return
}
