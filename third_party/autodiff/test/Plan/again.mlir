// A derived kernel is a kernel: the backward of a plan that is not scheduled is differentiated again.
// RUN: triton-autodiff-opt %s -split-input-file --autodiff-derive --autodiff-lower="plain atomic=1" \
// RUN:   --autodiff-adopt-kernel | FileCheck %s --check-prefix=ADOPTED
// RUN: triton-autodiff-opt %s -split-input-file --autodiff-derive --autodiff-lower="plain atomic=1" \
// RUN:   --autodiff-adopt-kernel --autodiff-derive | FileCheck %s

// What the forward has saved are inputs as others are: buffers (arguments 3 and 4) get gradients.
// ADOPTED-NOT: autodiff
// ADOPTED: tt.func {{(public )?}}@layer_norm_bwd(
// ADOPTED-NOT: autodiff
// CHECK: autodiff.launch @layer_norm_bwd_bwd
// CHECK-LABEL: tt.func {{(public )?}}@layer_norm_bwd_bwd(
// CHECK-DAG: autodiff.accumulate {{.*}}argument = 0
// CHECK-DAG: autodiff.accumulate {{.*}}argument = 1
// CHECK-DAG: autodiff.accumulate {{.*}}argument = 3
// CHECK-DAG: autodiff.accumulate {{.*}}argument = 4
// CHECK-DAG: autodiff.accumulate {{.*}}argument = 5
tt.func public @layer_norm(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %stride: i32) {
  %eps = arith.constant 1.0e-05 : f32
  %length = arith.constant 6.4e+01 : f32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %stride : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %rowx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ax = tt.addptr %bx, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %ay = tt.addptr %by, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %aw = tt.addptr %bw, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %ax : tensor<64x!tt.ptr<f32>>
  %w = tt.load %aw : tensor<64x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %mean = arith.divf %sum, %length : f32
  %means = tt.splat %mean : f32 -> tensor<64xf32>
  %centred = arith.subf %x, %means : tensor<64xf32>
  %square = arith.mulf %centred, %centred : tensor<64xf32>
  %squares = "tt.reduce"(%square) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %variance = arith.divf %squares, %length : f32
  %shifted = arith.addf %variance, %eps : f32
  %rstd = math.rsqrt %shifted : f32
  %scale = tt.splat %rstd : f32 -> tensor<64xf32>
  %normal = arith.mulf %centred, %scale : tensor<64xf32>
  %y = arith.mulf %normal, %w : tensor<64xf32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop with a tape of its own: y = h after n times h ← h² + x.
// ADOPTED: tt.func {{(public )?}}@squares_bwd(
// ADOPTED-NOT: autodiff
// CHECK: autodiff.launch @squares_bwd_bwd
// CHECK-LABEL: tt.func {{(public )?}}@squares_bwd_bwd(
// CHECK: scf.for
// CHECK: autodiff.accumulate {{.*}}argument = 0
tt.func public @squares(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %x = tt.load %ax : !tt.ptr<f32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> (f32) : i32 {
    %square = arith.mulf %h, %h : f32
    %next = arith.addf %square, %x : f32
    scf.yield %next : f32
  }
  tt.store %ay, %y : !tt.ptr<f32>
  tt.return
}
