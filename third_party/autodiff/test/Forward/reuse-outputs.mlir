// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-reuse-outputs{left=1},autodiff-drop-carries),canonicalize)' | FileCheck %s

// The mean is in memory: without it, no product is computed. It is not stored
// again.
// CHECK-LABEL: tt.func @mean(
// CHECK-SAME: %arg1: !tt.ptr<bf16> {autodiff.left}
// CHECK-NOT: tt.dot
// CHECK: %[[Y:.*]] = tt.load %{{.*}} : tensor<16x16x!tt.ptr<bf16>>
// CHECK: %[[WIDE:.*]] = arith.extf %[[Y]]
// CHECK: arith.mulf %[[WIDE]], %arg4
// CHECK-COUNT-1: tt.store %arg0
// CHECK-NOT: tt.store
tt.func @mean(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// Lanes that are not stored are not read.
// CHECK-LABEL: tt.func @masked(
// CHECK-NOT: tt.dot
// CHECK: tt.load %{{.*}}, %arg6, %{{.*}} : tensor<16x16x!tt.ptr<bf16>>
tt.func @masked(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  tt.store %q, %stored, %m : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent, %m : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// What was not rounded may be a factor as well.
// CHECK-LABEL: tt.func @exact(
// CHECK-NOT: tt.dot
// CHECK: tt.load %{{.*}} : tensor<16x16x!tt.ptr<f32>>
tt.func @exact(%pz: tensor<16x16x!tt.ptr<f32>>, %py: !tt.ptr<f32>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  tt.store %q, %y : tensor<16x16x!tt.ptr<f32>>
  tt.store %pz, %z : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Lanes that have a tangent, and are not in memory.
// CHECK-LABEL: tt.func @other_lanes(
// CHECK-NOT: tt.load
// CHECK: tt.dot
// CHECK-NOT: tt.load
tt.func @other_lanes(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  tt.store %q, %stored, %m : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent, %k : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// A difference may be of any size: the rounding of a term is not.
// CHECK-LABEL: tt.func @term(
// CHECK-NOT: tt.load
// CHECK: tt.dot
// CHECK-NOT: tt.load
tt.func @term(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.subf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// Half precision may not hold it.
// CHECK-LABEL: tt.func @range(
// CHECK-NOT: tt.load
// CHECK: tt.dot
// CHECK-NOT: tt.load
tt.func @range(%pz: tensor<16x16x!tt.ptr<f16>>, %py: !tt.ptr<f16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xf16>
  %ys = tt.splat %py : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<f16>>
  tt.store %pz, %tangent : tensor<16x16x!tt.ptr<f16>>
  tt.return
}

// -----

// The tangent is not rounded as the value is.
// CHECK-LABEL: tt.func @precise(
// CHECK-NOT: tt.load
// CHECK: tt.dot
// CHECK-NOT: tt.load
tt.func @precise(%pz: tensor<16x16x!tt.ptr<f32>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %z : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Of two stores, one overwrites the other.
// CHECK-LABEL: tt.func @twice(
// CHECK-NOT: tt.load
// CHECK: tt.dot
tt.func @twice(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  %seven = arith.constant dense<7.0> : tensor<16x16xbf16>
  tt.store %q, %seven, %k : tensor<16x16x!tt.ptr<bf16>>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// The mask depends on the value.
// CHECK-LABEL: tt.func @deciding(
// CHECK-NOT: tt.load
// CHECK: tt.dot
tt.func @deciding(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  %where = arith.cmpf ogt, %y, %none : tensor<16x16xf32>
  tt.store %q, %stored, %where : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent, %where : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}

// -----

// The kernel reads what was there before: the store stays.
// CHECK-LABEL: tt.func @read(
// CHECK-SAME: %arg1: !tt.ptr<bf16>,
// CHECK: tt.dot
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<16x16x!tt.ptr<bf16>>
// CHECK: tt.store %arg0
tt.func @read(%pz: tensor<16x16x!tt.ptr<bf16>>, %py: !tt.ptr<bf16>, %a: tensor<16x16xf16>,
    %l: tensor<16x16xf32>, %t: tensor<16x16xf32>, %n: i32, %m: tensor<16x16xi1>, %k: tensor<16x16xi1>)
    attributes {autodiff.role = "tangent"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %acc = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (tensor<16x16xf32>) : i32 {
    %d = tt.dot %a, %a, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %y = arith.divf %acc, %l : tensor<16x16xf32>
  %z = arith.mulf %y, %t : tensor<16x16xf32>
  %tangent = arith.truncf %z : tensor<16x16xf32> to tensor<16x16xbf16>
  %stored = arith.truncf %y : tensor<16x16xf32> to tensor<16x16xbf16>
  %ys = tt.splat %py : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %row = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %first = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %start = arith.muli %first, %sixteen : tensor<16x1xi32>
  %starts = tt.broadcast %start : tensor<16x1xi32> -> tensor<16x16xi32>
  %offset = arith.addi %starts, %columns : tensor<16x16xi32>
  %q = tt.addptr %ys, %offset : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  %before = tt.load %q : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %before : tensor<16x16x!tt.ptr<bf16>>
  tt.store %q, %stored : tensor<16x16x!tt.ptr<bf16>>
  tt.store %pz, %tangent : tensor<16x16x!tt.ptr<bf16>>
  tt.return
}
