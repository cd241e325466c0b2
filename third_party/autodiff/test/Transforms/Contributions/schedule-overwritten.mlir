// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse="all-wanted=0 wanted=0,1" -canonicalize -cse -autodiff-read-cotangents \
// RUN:   -autodiff-lower-accumulates | FileCheck %s

// What was there before the kernel stored to it: its gradient is zero there. The
// cotangent is read from another tensor.
// CHECK: autodiff.gradient <store 1 : f16 init = none {{.*}}overwritten = true checks [<bijective
// CHECK: autodiff.check <cotangent 1> <distinct
// CHECK-LABEL: tt.func @whole_bwd(
// CHECK-SAME: %[[C:arg[0-9]+]]: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<cotangent 1>
// CHECK: tt.load %{{.*}} : !tt.ptr<f16>
// CHECK: tt.store %{{.*}}, %cst{{.*}} : !tt.ptr<f16>
tt.func @whole(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f16>, i32
  %x = tt.load %qx : !tt.ptr<f16>
  %qy = tt.addptr %py, %id : !tt.ptr<f16>, i32
  tt.store %qy, %x : !tt.ptr<f16>
  tt.return
}

// -----

// If the mask says nothing of what is left out, the rest is the cotangent.
// CHECK: autodiff.gradient <store 1 : f32 init = cotangent {{.*}}overwritten = true checks [<distinct
// CHECK-LABEL: tt.func @some_bwd(
// CHECK: tt.store %{{.*}}, %cst{{.*}}, %arg2 : !tt.ptr<f32>
tt.func @some(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %c: i1) {
  %id = tt.get_program_id x : i32
  %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %qx : !tt.ptr<f32>
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %x, %c : !tt.ptr<f32>
  tt.return
}
