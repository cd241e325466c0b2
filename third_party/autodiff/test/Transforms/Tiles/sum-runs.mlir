// RUN: triton-autodiff-opt -autodiff-sum-runs -canonicalize -cse -split-input-file %s | FileCheck %s

// Pixels of a channel: of each channel in a tile, if these are few, the sum is
// added once. Its address is what the quotient's was made to.
// CHECK-LABEL: tt.func public @channels(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tt.ptr<f32>, %[[SUM:[a-z0-9]+]]: !tt.ptr<f32>, %[[START:[a-z0-9]+]]: i32, %[[INNER:[a-z0-9]+]]: i32
// CHECK: %[[CHANNEL:.*]] = arith.divsi %{{.*}} : tensor<256xi32>
// CHECK: %[[VALUES:.*]] = tt.load
// CHECK: %[[FIRST:.*]] = arith.divsi %[[START]], %[[INNER]] : i32
// CHECK: %[[END:.*]] = arith.addi %[[START]], %c255_i32 : i32
// CHECK: %[[LAST:.*]] = arith.divsi %[[END]], %[[INNER]] : i32
// CHECK: %[[OTHERS:.*]] = arith.subi %[[LAST]], %[[FIRST]]
// CHECK: %[[FEW:.*]] = arith.cmpi ult, %[[OTHERS]], %c4_i32
// CHECK: scf.if %[[FEW]]
// CHECK: %[[BEYOND:.*]] = arith.addi %[[LAST]], %c1_i32
// CHECK: scf.for %[[Q:.*]] = %[[FIRST]] to %[[BEYOND]] step %c1_i32
// CHECK: %[[HERE:.*]] = tt.splat %[[Q]]
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[CHANNEL]], %[[HERE]]
// CHECK: %[[KEPT:.*]] = arith.andi %[[SAME]], %[[MASK:.*]] :
// CHECK: %[[PART:.*]] = arith.select %[[KEPT]], %[[VALUES]]
// CHECK: %[[FLAGS:.*]] = arith.extui %[[KEPT]]
// CHECK: %[[TOTAL:.*]]:2 = "tt.reduce"(%[[PART]], %[[FLAGS]])
// CHECK-DAG: arith.addf
// CHECK-DAG: arith.ori
// CHECK: %[[ANY:.*]] = arith.trunci %[[TOTAL]]#1
// CHECK: %[[TWICE:.*]] = arith.muli %[[Q]], %c2_i32
// CHECK: %[[P:.*]] = tt.addptr %[[SUM]], %[[TWICE]]
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %[[P]], %[[TOTAL]]#0, %[[ANY]] : (!tt.ptr<f32>, f32, i1)
// CHECK: } else {
// CHECK-NEXT: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %[[VALUES]], %[[MASK]] : (tensor<256x!tt.ptr<f32>>
tt.func public @channels(%x: !tt.ptr<f32>, %sum: !tt.ptr<f32>, %start: i32, %inner: i32, %n: i32) {
  %two = arith.constant dense<2> : tensor<256xi32>
  %lanes = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %s = tt.splat %start : i32 -> tensor<256xi32>
  %at = arith.addi %s, %lanes : tensor<256xi32>
  %ns = tt.splat %n : i32 -> tensor<256xi32>
  %m = arith.cmpi slt, %at, %ns : tensor<256xi32>
  %i = tt.splat %inner : i32 -> tensor<256xi32>
  %c = arith.divsi %at, %i : tensor<256xi32>
  %d = arith.muli %c, %two : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p, %m : tensor<256x!tt.ptr<f32>>
  %sums = tt.splat %sum : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %sums, %d : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %r = tt.atomic_rmw fadd, relaxed, gpu, %q, %v, %m : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>, tensor<256xi1>) -> tensor<256xf32>
  tt.return
}

// -----

// Two quotients: which lanes share an address, one of them does not say.
// CHECK-LABEL: tt.func public @two(
// CHECK-NOT: scf.if
tt.func public @two(%x: !tt.ptr<f32>, %sum: !tt.ptr<f32>, %inner: i32, %outer: i32) {
  %at = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %i = tt.splat %inner : i32 -> tensor<256xi32>
  %o = tt.splat %outer : i32 -> tensor<256xi32>
  %c = arith.divsi %at, %i : tensor<256xi32>
  %d = arith.divsi %at, %o : tensor<256xi32>
  %e = arith.addi %c, %d : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %sums = tt.splat %sum : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %sums, %e : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %r = tt.atomic_rmw fadd, relaxed, gpu, %q, %v : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>) -> tensor<256xf32>
  tt.return
}

// -----

// Someone looks at what was there before; and positions that fall from lane to
// lane, of which the last lane has not the last.
// CHECK-LABEL: tt.func public @looked_at(
// CHECK-NOT: scf.if
tt.func public @looked_at(%x: !tt.ptr<f32>, %sum: !tt.ptr<f32>, %inner: i32) {
  %down = arith.constant dense<-1> : tensor<256xi32>
  %at = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %i = tt.splat %inner : i32 -> tensor<256xi32>
  %c = arith.divsi %at, %i : tensor<256xi32>
  %steps = arith.muli %at, %down : tensor<256xi32>
  %d = arith.divsi %steps, %i : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %sums = tt.splat %sum : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %sums, %c : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %before = tt.atomic_rmw fadd, relaxed, gpu, %q, %v : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>) -> tensor<256xf32>
  %t = tt.addptr %sums, %d : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %r = tt.atomic_rmw fadd, relaxed, gpu, %t, %before : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>) -> tensor<256xf32>
  tt.return
}

// -----

// Two rows, positions in steps of two: the last one is 100 + 2 * 127 further.
// CHECK-LABEL: tt.func public @rows(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !tt.ptr<f32>, %[[SUM:[a-z0-9]+]]: !tt.ptr<f32>, %[[START:[a-z0-9]+]]: i32, %[[INNER:[a-z0-9]+]]: i32
// CHECK: %[[VALUES:.*]] = tt.load
// CHECK: %[[FIRST:.*]] = arith.divsi %[[START]], %[[INNER]] : i32
// CHECK: %[[END:.*]] = arith.addi %[[START]], %c354_i32 : i32
// CHECK: %[[LAST:.*]] = arith.divsi %[[END]], %[[INNER]] : i32
// CHECK: scf.if
// CHECK: scf.for %[[Q:.*]] = %[[FIRST]]
// CHECK: %[[ROWS:.*]]:2 = "tt.reduce"({{.*}}) <{axis = 1 : i32}>
// CHECK: %[[TOTAL:.*]]:2 = "tt.reduce"(%[[ROWS]]#0, %[[ROWS]]#1) <{axis = 0 : i32}>
// CHECK: %[[P:.*]] = tt.addptr %[[SUM]], %[[Q]] : !tt.ptr<f32>, i32
// CHECK: tt.atomic_rmw fadd, relaxed, gpu, %[[P]], %[[TOTAL]]#0
tt.func public @rows(%x: !tt.ptr<f32>, %sum: !tt.ptr<f32>, %start: i32, %inner: i32) {
  %hundred = arith.constant dense<100> : tensor<2x1xi32>
  %two = arith.constant dense<2> : tensor<1x128xi32>
  %r = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
  %re = tt.expand_dims %r {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  %rs = arith.muli %re, %hundred : tensor<2x1xi32>
  %rb = tt.broadcast %rs : tensor<2x1xi32> -> tensor<2x128xi32>
  %l = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %le = tt.expand_dims %l {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ls = arith.muli %le, %two : tensor<1x128xi32>
  %lb = tt.broadcast %ls : tensor<1x128xi32> -> tensor<2x128xi32>
  %s = tt.splat %start : i32 -> tensor<2x128xi32>
  %a = arith.addi %s, %rb : tensor<2x128xi32>
  %at = arith.addi %a, %lb : tensor<2x128xi32>
  %i = tt.splat %inner : i32 -> tensor<2x128xi32>
  %c = arith.divsi %at, %i : tensor<2x128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<2x128x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<2x128x!tt.ptr<f32>>, tensor<2x128xi32>
  %v = tt.load %p : tensor<2x128x!tt.ptr<f32>>
  %sums = tt.splat %sum : !tt.ptr<f32> -> tensor<2x128x!tt.ptr<f32>>
  %q = tt.addptr %sums, %c : tensor<2x128x!tt.ptr<f32>>, tensor<2x128xi32>
  %w = tt.atomic_rmw fadd, relaxed, gpu, %q, %v : (tensor<2x128x!tt.ptr<f32>>, tensor<2x128xf32>) -> tensor<2x128xf32>
  tt.return
}
