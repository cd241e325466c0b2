// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-tiles,tt.func(canonicalize,cse))' -split-input-file %s | FileCheck %s
// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-tiles{widen=1})' -split-input-file %s | FileCheck --check-prefix=NONE %s
// NONE-NOT: _wide

// Rows of two neighbours are one tile of twice as many, where the host sees
// that their number is even, that strides fit, and that there are programs for
// all processors. The loop advances by 64 instead of 128.
// CHECK: autodiff.launch @rows grid [grid0, 1, 1]
// CHECK: autodiff.launch @rows_wide0 in_place_of @rows when <min(
// CHECK-SAME: processors
// CHECK-SAME: 8388608 - max(arg3, 0 - arg3)
// CHECK-SAME: rem(grid0, 4)
// CHECK-SAME: grid [div(grid0, 4), 1, 1]
// CHECK: autodiff.launch @rows_wide1
// CHECK-SAME: rem(grid0, 2)
// CHECK-LABEL: tt.func @rows(
// CHECK: %[[P:.*]] = autodiff.programs [#autodiff.expr<grid0>]
// CHECK: %[[FIRST:.*]] = arith.muli %[[P]], %c64_i32
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%{{.*}}) -> (tensor<64x64xf32>)
// CHECK-DAG: arith.divsi %[[I]], %c2_i32
// CHECK-DAG: %[[PART:.*]] = arith.remsi %[[I]], %c2_i32
// CHECK-DAG: arith.muli %[[PART]], %c64_i32
// CHECK: tt.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16>
// CHECK-LABEL: tt.func @rows_wide0(
// CHECK-SAME: autodiff.role = "variant"
// CHECK: %[[P:.*]] = autodiff.programs [#autodiff.expr<div(grid0, 4)>]
// CHECK: %[[FIRST:.*]] = arith.muli %[[P]], %c256_i32
// CHECK: tt.make_range {end = 256 : i32, start = 0 : i32}
// CHECK: arith.cmpi slt, {{.*}} : tensor<256x1xi32>
// CHECK: tt.dot {{.*}} tensor<256x64xf16> * tensor<64x64xf16> -> tensor<256x64xf32>
// CHECK: tt.store {{.*}} : tensor<256x64x!tt.ptr<f32>>
// CHECK-LABEL: tt.func @rows_wide1(
autodiff.plan {
  autodiff.launch @rows grid [grid0, 1, 1]
}
tt.func @rows(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %stride: i32, %m: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf16>
  %p = autodiff.programs [#autodiff.expr<grid0>] : i32
  %first = arith.muli %p, %c64 : i32
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %wide = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %row = arith.addi %firsts, %lane : tensor<64xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32>
  %starts = arith.muli %rows, %strides : tensor<64x1xi32>
  %ms = tt.splat %m : i32 -> tensor<64x1xi32>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32>
  %mask = tt.broadcast %in : tensor<64x1xi1> -> tensor<64x128xi1>
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %k = arith.muli %i, %c128 : i32
    %ks = tt.splat %k : i32 -> tensor<128xi32>
    %column = arith.addi %ks, %wide : tensor<128xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %0 = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x128xi32>
    %1 = tt.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
    %2 = arith.addi %0, %1 : tensor<64x128xi32>
    %3 = tt.splat %a : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %4 = tt.addptr %3, %2 : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %x = tt.load %4, %mask, %none : tensor<64x128x!tt.ptr<f16>>
    %5 = tt.expand_dims %column {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %c64s = arith.constant dense<64> : tensor<128x1xi32>
    %6 = arith.muli %5, %c64s : tensor<128x1xi32>
    %7 = tt.broadcast %6 : tensor<128x1xi32> -> tensor<128x64xi32>
    %8 = tt.expand_dims %lane {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %9 = tt.broadcast %8 : tensor<1x64xi32> -> tensor<128x64xi32>
    %10 = arith.addi %7, %9 : tensor<128x64xi32>
    %11 = tt.splat %b : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
    %12 = tt.addptr %11, %10 : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %y = tt.load %12 : tensor<128x64x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %13 = tt.expand_dims %lane {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %14 = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %15 = tt.broadcast %13 : tensor<1x64xi32> -> tensor<64x64xi32>
  %16 = arith.addi %14, %15 : tensor<64x64xi32>
  %17 = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %18 = tt.addptr %17, %16 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %19 = tt.broadcast %in : tensor<64x1xi1> -> tensor<64x64xi1>
  tt.store %18, %sum, %19 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// What is loaded along the rows does not depend on the program: two neighbours
// are not one tile. What an iteration adds is not a sum over parts of its tile,
// for it reads what there is so far: the loop stays as it is.
// CHECK-LABEL: tt.func @apart(
// CHECK: tt.dot {{.*}} tensor<64x128xf16> * tensor<128x64xf16>
// CHECK-NOT: @apart_wide
autodiff.plan {
  autodiff.launch @apart grid [grid0, 1, 1]
}
tt.func @apart(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4096 = arith.constant 4096 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %p = autodiff.programs [#autodiff.expr<grid0>] : i32
  %first = arith.muli %p, %c4096 : i32
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %lane {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x128xi32>
  %pa = tt.splat %a : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %qa = tt.addptr %pa, %rows : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %pb = tt.splat %b : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.load %qa : tensor<64x128x!tt.ptr<f16>>
    %y = tt.load %pb : tensor<128x64x!tt.ptr<f16>>
    %half = arith.mulf %acc, %acc : tensor<64x64xf32>
    %next = tt.dot %x, %y, %half : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %c64s = arith.constant dense<64> : tensor<64x1xi32>
  %r = arith.muli %row, %c64s : tensor<64x1xi32>
  %0 = tt.broadcast %r : tensor<64x1xi32> -> tensor<64x64xi32>
  %1 = tt.expand_dims %lane {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %2 = tt.broadcast %1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %3 = arith.addi %0, %2 : tensor<64x64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64x64xi32>
  %4 = arith.addi %firsts, %3 : tensor<64x64xi32>
  %pc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %5 = tt.addptr %pc, %4 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %5, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// Of tiles that load alike, the one that is wide is better: its instructions,
// of 64 rows, read less. A launch for it must be one in which the loop runs at
// all.
// CHECK: autodiff.launch @product_wide0
// CHECK-SAME: max(0, min(arg9, 2147483648 - arg9))
// CHECK-SAME: grid [div(div({{.*}}, 2), 4), 1, 1]
// CHECK-LABEL: tt.func @product(
// CHECK-NOT: llvm.intr.assume
// CHECK-LABEL: tt.func @product_wide0(
// CHECK: %[[SIZE:.*]] = autodiff.size <arg9>
// CHECK: %[[END:.*]] = arith.trunci %[[SIZE]]
// CHECK: %[[RUNS:.*]] = arith.cmpi sgt, %[[END]], %c0_i32
// CHECK: llvm.intr.assume %[[RUNS]] : i1
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[END]]
// CHECK: tt.dot {{.*}} -> tensor<128x256xf32>
// CHECK-LABEL: tt.func @product_wide1(
// CHECK: tt.dot {{.*}} -> tensor<256x128xf32>
autodiff.plan {
  autodiff.launch @product grid [grid0 * grid1, 1, 1]
}
tt.func @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %p:2 = autodiff.programs [#autodiff.expr<grid0>, #autodiff.expr<grid1>] : i32, i32
  %size = autodiff.size <arg9>
  %end = arith.trunci %size : i64 to i32
  %lane = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %top = arith.muli %p#0, %c64 : i32
  %tops = tt.splat %top : i32 -> tensor<64xi32>
  %row = arith.addi %tops, %lane : tensor<64xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %left = arith.muli %p#1, %c64 : i32
  %lefts = tt.splat %left : i32 -> tensor<64xi32>
  %column = arith.addi %lefts, %lane : tensor<64xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %stride = arith.constant dense<4096> : tensor<64x1xi32>
  %starts = arith.muli %rows, %stride : tensor<64x1xi32>
  %along = tt.expand_dims %lane {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %down = tt.expand_dims %lane {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %sum = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %0 = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
    %1 = tt.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
    %2 = arith.addi %0, %1 : tensor<64x64xi32>
    %3 = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %4 = tt.addptr %3, %2 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %4 : tensor<64x64x!tt.ptr<f16>>
    %5 = arith.muli %down, %stride : tensor<64x1xi32>
    %6 = tt.broadcast %5 : tensor<64x1xi32> -> tensor<64x64xi32>
    %7 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %8 = arith.addi %6, %7 : tensor<64x64xi32>
    %9 = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %10 = tt.addptr %9, %8 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %y = tt.load %10 : tensor<64x64x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %11 = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %12 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %13 = arith.addi %11, %12 : tensor<64x64xi32>
  %14 = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %15 = tt.addptr %14, %13 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %15, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// A kernel that is only declared has no tiles.
// CHECK: tt.func private @declared
tt.func public @k() { tt.return }
tt.func private @declared(!tt.ptr<f32>) attributes {autodiff.role = "backward"}
