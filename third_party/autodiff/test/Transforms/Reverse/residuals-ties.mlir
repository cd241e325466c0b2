// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize -autodiff-mark-residuals \
// RUN:   -autodiff-reverse -canonicalize -cse -autodiff-choose-residuals -canonicalize -cse | FileCheck %s

// The maximum would be one number to save. But x = 2.5·u + v may be rounded
// otherwise where it is computed again, and equal to no saved maximum.
// CHECK-LABEL: tt.func @computed(
// CHECK-NOT: @computed_fwd
// CHECK-LABEL: tt.func @computed_bwd(
// CHECK-NOT: buffer<saved
// CHECK: %[[X:.*]] = arith.addf
// CHECK: %[[M:.*]] = "tt.reduce"(%[[X]])
// CHECK: %[[S:.*]] = tt.splat %[[M]]
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[S]]
// CHECK: arith.cmpf oeq, %[[D]],
tt.func @computed(%pu: !tt.ptr<f32>, %pv: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %factor = arith.constant dense<2.5> : tensor<64xf32>
  %su = tt.splat %pu : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %au = tt.addptr %su, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %u = tt.load %au : tensor<64x!tt.ptr<f32>>
  %sv = tt.splat %pv : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %av = tt.addptr %sv, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %av : tensor<64x!tt.ptr<f32>>
  %uf = arith.mulf %u, %factor : tensor<64xf32>
  %x = arith.addf %uf, %v : tensor<64xf32>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %s = tt.splat %m : f32 -> tensor<64xf32>
  %d = arith.subf %x, %s : tensor<64xf32>
  %hit = arith.cmpf oeq, %d, %zero : tensor<64xf32>
  %w = tt.load %pw : !tt.ptr<f32>
  %sw = tt.splat %w : f32 -> tensor<64xf32>
  %y = arith.select %hit, %sw, %zero : tensor<64xi1>, tensor<64xf32>
  %sy = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ay = tt.addptr %sy, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// What is loaded has the same bits everywhere: its maximum is saved.
// CHECK: autodiff.buffer 0 <saved
// CHECK-LABEL: tt.func @loaded_fwd(
// CHECK: "tt.reduce"
// CHECK-LABEL: tt.func @loaded_bwd(
// CHECK-SAME: #autodiff.operand<buffer 0>
// CHECK-NOT: arith.maxnumf
tt.func @loaded(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %sx = tt.splat %px : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ax = tt.addptr %sx, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %ax : tensor<64x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %s = tt.splat %m : f32 -> tensor<64xf32>
  %hit = arith.cmpf oeq, %x, %s : tensor<64xf32>
  %w = tt.load %pw : !tt.ptr<f32>
  %sw = tt.splat %w : f32 -> tensor<64xf32>
  %y = arith.select %hit, %sw, %zero : tensor<64xi1>, tensor<64xf32>
  %sy = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ay = tt.addptr %sy, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// Whether memory holds this value in the end is asked bit for bit: it is saved
// although two loads could give it again.
// CHECK-LABEL: tt.func @attained_fwd(
// CHECK: %[[X:.*]] = arith.addf
// CHECK: tt.store {{.*}}, %[[X]]
// CHECK-LABEL: tt.func @attained_bwd(
// CHECK-NOT: arith.addf
// CHECK: tt.bitcast
tt.func @attained(%pu: !tt.ptr<f32>, %pv: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %true = arith.constant true
  %factor = arith.constant 2.5 : f32
  %u = tt.load %pu : !tt.ptr<f32>
  %v = tt.load %pv : !tt.ptr<f32>
  %uf = arith.mulf %u, %factor : f32
  %x = arith.addf %uf, %v : f32
  %0 = tt.atomic_rmw exch, acq_rel, gpu, %py, %x, %true : (!tt.ptr<f32>, f32, i1) -> f32
  tt.return
}
