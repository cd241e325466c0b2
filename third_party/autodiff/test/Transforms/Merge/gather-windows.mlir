// RUN: %windows -split-input-file %s | FileCheck %s

// y[u] = x[u] x[u - 1]: an element takes what its own position and the next one
// contribute, as far as that exists and its mask lets it.
// CHECK-LABEL: tt.func @pairs_bwd(
// CHECK: %[[X:.*]] = tt.load {{.*}} {autodiff.site = 1
// CHECK: %[[OWN:.*]] = arith.mulf %{{.*}}, %[[X]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[U:.*]], %{{.*}} : tensor<16xi32>
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: %[[LAST:.*]] = autodiff.size <max(0, grid0 * 16 - 1)>
// CHECK: %[[HAS:.*]] = arith.cmpi slt, %[[U]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[HAS]], %[[INSIDE]]
// CHECK: tt.load %{{.*}}, %[[BOTH]]
// CHECK: tt.load %{{.*}}, %[[BOTH]]
// CHECK: %[[TAKEN:.*]] = arith.select
// CHECK: %[[KEPT:.*]] = arith.select %[[MASK:.*]], %[[OWN]]
// CHECK: %[[SUM:.*]] = arith.addf %[[TAKEN]], %[[KEPT]]
// CHECK: autodiff.accumulate %{{.*}}, %[[SUM]] mask %[[MASK]] {{.*}} whole <bijective{{.*}}within
// CHECK-NOT: autodiff.accumulate
// CHECK: tt.return
tt.func @pairs(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %one = arith.constant dense<1> : tensor<16xi32>
  %zero = arith.constant dense<0> : tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %u = arith.addi %start, %lanes : tensor<16xi32>
  %v = arith.subi %u, %one : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %inside = arith.cmpi slt, %u, %end : tensor<16xi32>
  %after = arith.cmpi sge, %v, %zero : tensor<16xi32>
  %both = arith.andi %inside, %after : tensor<16xi1>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %xs, %v : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx, %inside, %none : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qv, %both, %none : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y, %inside : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// What lanes are multiplied by is that of their place in the program: the
// neighbour beyond the last lane has another one.
// CHECK-LABEL: tt.func @weighted_bwd(
// CHECK-COUNT-2: autodiff.accumulate
// CHECK: tt.return
tt.func @weighted(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %one = arith.constant dense<1> : tensor<16xi32>
  %zero = arith.constant dense<0> : tensor<16xi32>
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %weight = arith.sitofp %lanes : tensor<16xi32> to tensor<16xf32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %u = arith.addi %start, %lanes : tensor<16xi32>
  %v = arith.subi %u, %one : tensor<16xi32>
  %end = tt.splat %n : i32 -> tensor<16xi32>
  %inside = arith.cmpi slt, %u, %end : tensor<16xi32>
  %after = arith.cmpi sge, %v, %zero : tensor<16xi32>
  %both = arith.andi %inside, %after : tensor<16xi1>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %xs, %v : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx, %inside, %none : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qv, %both, %none : tensor<16x!tt.ptr<f32>>
  %sum = arith.addf %x, %w : tensor<16xf32>
  %y = arith.mulf %sum, %weight : tensor<16xf32>
  tt.store %qy, %y, %inside : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing says how far elements go beyond the last position.
// CHECK-LABEL: tt.func @beyond_bwd(
// CHECK-COUNT-2: autodiff.accumulate
// CHECK: tt.return
tt.func @beyond(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %one = arith.constant dense<1> : tensor<16xi32>
  %id = tt.get_program_id x : i32
  %first = arith.muli %id, %c16 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %start = tt.splat %first : i32 -> tensor<16xi32>
  %u = arith.addi %start, %lanes : tensor<16xi32>
  %v = arith.addi %u, %one : tensor<16xi32>
  %xs = tt.splat %px : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %py : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %xs, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qv = tt.addptr %xs, %v : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %ys, %u : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  %w = tt.load %qv : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}
