// RUN: triton-autodiff-opt -autodiff-unwrap-tiles -split-input-file %s | FileCheck %s

// Lanes past the end are not stored: they need not be read, neither in the loop
// nor through what is read.
// CHECK: autodiff.assume <arg4>
// CHECK-LABEL: tt.func public @dropped(
// CHECK-NOT: arith.remsi
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[X:.*]], %{{.*}} : tensor<32xi32>
// CHECK: tt.expand_dims %[[X]]
// CHECK: scf.for
// CHECK: %[[M:.*]] = tt.expand_dims %[[IN]] {axis = 1 : i32}
// CHECK: %[[B:.*]] = tt.broadcast %[[M]]
// CHECK: tt.load %{{.*}}, %[[B]], %{{.*}} : tensor<32x16x!tt.ptr<f16>>
// CHECK: tt.dot
tt.func public @dropped(%a: !tt.ptr<f16>, %b: tensor<16x16xf16>, %out: !tt.ptr<f32>, %n: i32, %start: i32, %steps: i32) {
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %inner = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %from = tt.splat %start : i32 -> tensor<32xi32>
  %x = arith.addi %from, %range : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %rows = tt.expand_dims %rem {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tt.expand_dims %inner {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %c16 = arith.constant dense<16> : tensor<32x1xi32>
  %first = arith.muli %rows, %c16 : tensor<32x1xi32>
  %f = tt.broadcast %first : tensor<32x1xi32> -> tensor<32x16xi32>
  %c = tt.broadcast %columns : tensor<1x16xi32> -> tensor<32x16xi32>
  %offsets = arith.addi %f, %c : tensor<32x16xi32>
  %base = tt.splat %a : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>>
  %ptrs = tt.addptr %base, %offsets : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xi32>
  %step = arith.constant dense<16> : tensor<32x16xi32>
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %i0 to %steps step %i1 iter_args(%p = %ptrs, %acc = %zero) -> (tensor<32x16x!tt.ptr<f16>>, tensor<32x16xf32>) : i32 {
    %t = tt.load %p : tensor<32x16x!tt.ptr<f16>>
    %d = tt.dot %t, %b, %acc : tensor<32x16xf16> * tensor<16x16xf16> -> tensor<32x16xf32>
    %next = tt.addptr %p, %step : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xi32>
    scf.yield %next, %d : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xf32>
  }
  %xe = tt.expand_dims %x {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %le = tt.splat %n : i32 -> tensor<32x1xi32>
  %in = arith.cmpi slt, %xe, %le : tensor<32x1xi32>
  %mask = tt.broadcast %in : tensor<32x1xi1> -> tensor<32x16xi1>
  %obase = tt.splat %out : !tt.ptr<f32> -> tensor<32x16x!tt.ptr<f32>>
  %optrs = tt.addptr %obase, %offsets : tensor<32x16x!tt.ptr<f32>>, tensor<32x16xi32>
  tt.store %optrs, %r#1, %mask : tensor<32x16x!tt.ptr<f32>>
  tt.return
}

// -----

// They are stored, or summed with others, or decide what is stored.
// CHECK-NOT: autodiff.assume
// CHECK-LABEL: tt.func public @stored(
// CHECK: arith.remsi
tt.func public @stored(%a: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %ptrs = tt.addptr %base, %rem : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %t = tt.load %ptrs : tensor<32x!tt.ptr<f32>>
  tt.store %out, %t : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK-LABEL: tt.func public @summed(
// CHECK: arith.remsi
tt.func public @summed(%a: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %ptrs = tt.addptr %base, %rem : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %t = tt.load %ptrs : tensor<32x!tt.ptr<f32>>
  %s = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %v = arith.addf %l, %r : f32
    tt.reduce.return %v : f32
  }) : (tensor<32xf32>) -> f32
  tt.store %out, %s : !tt.ptr<f32>
  tt.return
}

// -----

// CHECK-LABEL: tt.func public @deciding(
// CHECK: arith.remsi
tt.func public @deciding(%out: tensor<32x!tt.ptr<f32>>, %t: tensor<32xf32>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %zero = arith.constant dense<0> : tensor<32xi32>
  %mask = arith.cmpi sgt, %rem, %zero : tensor<32xi32>
  tt.store %out, %t, %mask : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// A divisor that is not read may be zero.
// CHECK-LABEL: tt.func public @divided(
// CHECK: arith.remsi
tt.func public @divided(%a: !tt.ptr<i32>, %y: tensor<32xi32>, %out: tensor<32x!tt.ptr<i32>>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %ptrs = tt.addptr %base, %rem : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  %t = tt.load %ptrs : tensor<32x!tt.ptr<i32>>
  %q = arith.divsi %y, %t : tensor<32xi32>
  %mask = arith.cmpi slt, %x, %length : tensor<32xi32>
  tt.store %out, %q, %mask : tensor<32x!tt.ptr<i32>>
  tt.return
}

// -----

// What one iteration loads, the next one stores, for other positions.
// CHECK-LABEL: tt.func public @carried(
// CHECK: arith.remsi
tt.func public @carried(%a: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>, %n: i32) {
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i9 = arith.constant 9 : i32
  %r = scf.for %i = %i0 to %i9 step %i1 iter_args(%before = %zero) -> (tensor<32xf32>) : i32 {
    %first = tt.splat %i : i32 -> tensor<32xi32>
    %x = arith.addi %first, %range : tensor<32xi32>
    %mask = arith.cmpi slt, %x, %length : tensor<32xi32>
    tt.store %out, %before, %mask : tensor<32x!tt.ptr<f32>>
    %rem = arith.remsi %x, %length : tensor<32xi32>
    %ptrs = tt.addptr %base, %rem : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %t = tt.load %ptrs : tensor<32x!tt.ptr<f32>>
    scf.yield %t : tensor<32xf32>
  }
  tt.return
}

// -----

// Back to the start from beyond the end; an index from memory may go there, too.
// CHECK-NOT: autodiff.assume
// CHECK-LABEL: tt.func public @selected(
// CHECK: %[[MASK:.*]] = arith.cmpi slt
// CHECK-NOT: arith.select
// CHECK: %[[P:.*]] = tt.addptr %{{.*}}, %arg2
// CHECK: tt.load %[[P]], %[[MASK]]
tt.func public @selected(%a: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>, %index: tensor<32xi32>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %zero = arith.constant dense<0> : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %mask = arith.cmpi slt, %x, %length : tensor<32xi32>
  %reached = arith.select %mask, %index, %zero : tensor<32xi1>, tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %ptrs = tt.addptr %base, %reached : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %t = tt.load %ptrs : tensor<32x!tt.ptr<f32>>
  tt.store %out, %t, %mask : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// The store leaves out less.
// CHECK-LABEL: tt.func public @less(
// CHECK: arith.select
tt.func public @less(%a: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>, %n: i32, %m: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %zero = arith.constant dense<0> : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %other = tt.splat %m : i32 -> tensor<32xi32>
  %in = arith.cmpi slt, %x, %length : tensor<32xi32>
  %also = arith.cmpi slt, %x, %other : tensor<32xi32>
  %both = arith.andi %in, %also : tensor<32xi1>
  %reached = arith.select %both, %x, %zero : tensor<32xi1>, tensor<32xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %ptrs = tt.addptr %base, %reached : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %t = tt.load %ptrs : tensor<32x!tt.ptr<f32>>
  tt.store %out, %t, %in : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// A single lane is not left out with those that repeat it.
// CHECK-LABEL: tt.func public @single(
// CHECK: arith.remsi
tt.func public @single(%a: !tt.ptr<f32>, %out: tensor<32x!tt.ptr<f32>>, %n: i32) {
  %x = tt.make_range {end = 1 : i32, start = 0 : i32} : tensor<1xi32>
  %places = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %one = tt.splat %n : i32 -> tensor<1xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %rem = arith.remsi %x, %one : tensor<1xi32>
  %base = tt.splat %a : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  %ptrs = tt.addptr %base, %rem : tensor<1x!tt.ptr<f32>>, tensor<1xi32>
  %t = tt.load %ptrs : tensor<1x!tt.ptr<f32>>
  %all = tt.broadcast %t : tensor<1xf32> -> tensor<32xf32>
  %mask = arith.cmpi slt, %places, %length : tensor<32xi32>
  tt.store %out, %all, %mask : tensor<32x!tt.ptr<f32>>
  tt.return
}

// -----

// Nor may a mask that lets lanes beyond the end through read there.
// CHECK-LABEL: tt.func public @masked(
// CHECK-NOT: arith.remsi
// CHECK: %[[IN:.*]] = arith.cmpi slt
// CHECK: %[[FAR:.*]] = arith.cmpi sgt
// CHECK: %[[M:.*]] = arith.andi %[[FAR]], %[[IN]]
// CHECK: tt.load %arg0, %[[M]]
tt.func public @masked(%a: tensor<32x!tt.ptr<f32>>, %out: tensor<32x!tt.ptr<f32>>, %n: i32) {
  %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %length = tt.splat %n : i32 -> tensor<32xi32>
  %five = arith.constant dense<5> : tensor<32xi32>
  %rem = arith.remsi %x, %length : tensor<32xi32>
  %far = arith.cmpi sgt, %rem, %five : tensor<32xi32>
  %t = tt.load %a, %far : tensor<32x!tt.ptr<f32>>
  %mask = arith.cmpi slt, %x, %length : tensor<32xi32>
  tt.store %out, %t, %mask : tensor<32x!tt.ptr<f32>>
  tt.return
}
