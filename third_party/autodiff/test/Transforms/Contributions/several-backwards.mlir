// RUN: triton-autodiff-opt %s -split-input-file --autodiff-lower | FileCheck %s

// y[i] = x[i] · Σw. Of two backward kernels the second one has the loop to interchange; it leaves
// x[i] · ȳ[i] for that.
// CHECK: autodiff.plan {
// CHECK: autodiff.buffer 0 <handover
// CHECK: autodiff.gradient <store 0
// CHECK-NEXT: autodiff.gradient <partial 1
// CHECK: autodiff.launch @rows
// CHECK-NEXT: autodiff.launch @weights
// CHECK-NEXT: autodiff.launch @weights_interchanged0 grid
// CHECK-NOT: autodiff.launch
tt.func public @scale(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %ax {autodiff.site = 0 : i32} : !tt.ptr<f32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %w = tt.load %aw {autodiff.site = 1 : i32} : !tt.ptr<f32>
    %wx = arith.mulf %w, %x : f32
    %next = arith.addf %sum, %wx : f32
    scf.yield %next : f32
  }
  %ay = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %ay, %y {autodiff.site = 2 : i32} : !tt.ptr<f32>
  tt.return
}
tt.func @rows(%px: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                       %pw: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
                       %py: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 2>},
                       %n: i32 {autodiff.operand = #autodiff.operand<argument 3>},
                       %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 2>})
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %dy, %id : !tt.ptr<f32>, i32
  %y = tt.load %ay : !tt.ptr<f32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%part = %zero) -> (f32) : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %w = tt.load %aw {autodiff.site = 1 : i32} : !tt.ptr<f32>
    %wy = arith.mulf %w, %y : f32
    %next = arith.addf %part, %wy : f32
    scf.yield %next : f32
  } {autodiff.parallel}
  autodiff.accumulate %ax, %sum {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
  tt.return
}
tt.func @weights(%px: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                       %pw: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
                       %py: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 2>},
                       %n: i32 {autodiff.operand = #autodiff.operand<argument 3>},
                       %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 2>})
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %dy, %id : !tt.ptr<f32>, i32
  %y = tt.load %ay : !tt.ptr<f32>
  %x = tt.load %ax {autodiff.site = 0 : i32} : !tt.ptr<f32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %xy = arith.mulf %x, %y : f32
    autodiff.accumulate %aw, %xy {argument = 1 : i32, site = 1 : i32} : !tt.ptr<f32>, f32
  } {autodiff.parallel}
  tt.return
}

// -----

// What two kernels contribute to is no one's alone: neither has all of a sum. They take turns.
// CHECK: autodiff.plan {
// CHECK: autodiff.gradient <store 1 : f32 init = none checks [<bijective 1 {{.*}}>, <distinct 1
// CHECK: autodiff.launch @first
// CHECK-NEXT: autodiff.launch @second
// CHECK: autodiff.step launch launch @first
// CHECK-NEXT: autodiff.step launch launch @second
// CHECK-NEXT: autodiff.step finish convert
// CHECK-NEXT: autodiff.next [
// CHECK-NEXT: autodiff.next [
// CHECK-NEXT: autodiff.next [
// CHECK-NEXT: }
// CHECK-LABEL: tt.func @first(
// CHECK: tt.store
// CHECK-LABEL: tt.func @second(
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: tt.store %{{.*}}, %[[SUM]]
tt.func public @scale(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %x = tt.load %ax {autodiff.site = 0 : i32} : !tt.ptr<f32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %w = tt.load %aw {autodiff.site = 1 : i32} : !tt.ptr<f32>
    %wx = arith.mulf %w, %x : f32
    %next = arith.addf %sum, %wx : f32
    scf.yield %next : f32
  }
  %ay = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %ay, %y {autodiff.site = 2 : i32} : !tt.ptr<f32>
  tt.return
}
tt.func @first(%px: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                       %pw: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
                       %py: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 2>},
                       %n: i32 {autodiff.operand = #autodiff.operand<argument 3>},
                       %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 2>})
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %dy, %id : !tt.ptr<f32>, i32
  %y = tt.load %ay : !tt.ptr<f32>
  %x = tt.load %ax {autodiff.site = 0 : i32} : !tt.ptr<f32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %xy = arith.mulf %x, %y : f32
    autodiff.accumulate %aw, %xy {argument = 1 : i32, site = 1 : i32} : !tt.ptr<f32>, f32
  } {autodiff.parallel}
  tt.return
}
tt.func @second(%px: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                       %pw: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>},
                       %py: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 2>},
                       %n: i32 {autodiff.operand = #autodiff.operand<argument 3>},
                       %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 2>})
    attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %dy, %id : !tt.ptr<f32>, i32
  %y = tt.load %ay : !tt.ptr<f32>
  %x = tt.load %ax {autodiff.site = 0 : i32} : !tt.ptr<f32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %aw = tt.addptr %pw, %i : !tt.ptr<f32>, i32
    %xy = arith.mulf %x, %y : f32
    autodiff.accumulate %aw, %xy {argument = 1 : i32, site = 1 : i32} : !tt.ptr<f32>, f32
  } {autodiff.parallel}
  tt.return
}
