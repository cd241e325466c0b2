// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-place-tapes -autodiff-simplify \
// RUN:   -autodiff-choose-residuals -canonicalize -cse | FileCheck %s

// y = s². The sum is stored in bfloat16, as are x, y and the gradient: it is
// read back as the factor that it is.
// CHECK-NOT: @factor_fwd
// CHECK-LABEL: tt.func @factor_bwd(
// CHECK-NOT: "tt.reduce"
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<bf16>>
// CHECK: tt.return
tt.func @factor(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>, %ps: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xl : tensor<64x64xbf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %sr = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<bf16>>
  %y = arith.mulf %s, %s : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<bf16>>
  tt.return
}


// -----

// The gradient has more digits.
// CHECK: <saved "saved0" : f32
// CHECK-LABEL: tt.func @digits_bwd(
// CHECK-NOT: tt.load %{{.*}} : tensor<64x!tt.ptr<bf16>>
// CHECK: tt.return
tt.func @digits(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %ps: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %x = tt.load %xp : tensor<64x64x!tt.ptr<f32>>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %sr = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<bf16>>
  %y = arith.mulf %s, %s : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %yp, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Half precision has not the range.
// CHECK: <saved "saved0" : f32
// CHECK-LABEL: tt.func @range_bwd(
// CHECK-NOT: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @range(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>, %ps: !tt.ptr<f16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64x64xf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %sr = arith.truncf %s : tensor<64xf32> to tensor<64xf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<f16>>
  %y = arith.mulf %s, %s : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// s − 1 may be off by any part of itself. What the gradient is multiplied by is
// rounded once it is computed.
// CHECK: <saved "factor0" : bf16
// CHECK-LABEL: tt.func @difference_fwd(
// CHECK: arith.subf
// CHECK-LABEL: tt.func @difference_bwd(
// CHECK-NOT: arith.subf
// CHECK: tt.return
tt.func @difference(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>, %ps: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xl : tensor<64x64xbf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %sr = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<bf16>>
  %d = arith.subf %s, %one : tensor<64xf32>
  %y = arith.mulf %d, %d : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// One number of a program is saved in float32: that costs little.
// CHECK: <saved "saved1" : f32, 1 * (grid2 * (grid1 * (grid0 * 1)))>
// CHECK-LABEL: tt.func @number_bwd(
// CHECK-NOT: tt.load %arg2
// CHECK: tt.return
tt.func @number(%px: !tt.ptr<bf16>, %py: !tt.ptr<bf16>, %ps: !tt.ptr<bf16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<bf16>>
  %x = arith.extf %xl : tensor<64x64xbf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %w = "tt.reduce"(%s) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %q = arith.truncf %w : f32 to bf16
  tt.store %ps, %q : !tt.ptr<bf16>
  %ws = tt.splat %w : f32 -> tensor<64xf32>
  %y = arith.mulf %s, %ws : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xbf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// -----

// The derivative of e^s reads its result, as PyTorch's does, in half precision,
// too; the kernel does nothing else with it.
// CHECK-NOT: @result_fwd
// CHECK-LABEL: tt.func @result_bwd(
// CHECK-NOT: math.exp
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @result(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>, %ps: !tt.ptr<f16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64x64xf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %e = math.exp %s : tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %sr = arith.truncf %e : tensor<64xf32> to tensor<64xf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// It needs the result as it was computed for what the kernel makes of it.
// CHECK: <saved "saved1" : f32
// CHECK-LABEL: tt.func @used_bwd(
// CHECK-NOT: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @used(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>, %ps: !tt.ptr<f16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64x64xf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %e = math.exp %s : tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %sr = arith.truncf %e : tensor<64xf32> to tensor<64xf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<f16>>
  %y = arith.mulf %e, %e : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}

// -----

// The kernel itself rounds what it goes on with.
// CHECK-NOT: @again_fwd
// CHECK-LABEL: tt.func @again_bwd(
// CHECK-NOT: "tt.reduce"
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<f16>>
// CHECK: tt.return
tt.func @again(%px: !tt.ptr<f16>, %py: !tt.ptr<f16>, %ps: !tt.ptr<f16>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %o = arith.muli %r, %n : tensor<64x1xi32>
  %os = tt.broadcast %o : tensor<64x1xi32> -> tensor<64x64xi32>
  %cs = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %os, %cs : tensor<64x64xi32>
  %xs = tt.splat %px : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %xl = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
  %x = arith.extf %xl : tensor<64x64xf16> to tensor<64x64xf32>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %ss = tt.splat %ps : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %sp = tt.addptr %ss, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %sr = arith.truncf %s : tensor<64xf32> to tensor<64xf16>
  tt.store %sp, %sr : tensor<64x!tt.ptr<f16>>
  %again = arith.extf %sr : tensor<64xf16> to tensor<64xf32>
  %y = arith.mulf %again, %again : tensor<64xf32>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %yr = arith.truncf %y : tensor<64xf32> to tensor<64xf16>
  tt.store %yp, %yr : tensor<64x!tt.ptr<f16>>
  tt.return
}
