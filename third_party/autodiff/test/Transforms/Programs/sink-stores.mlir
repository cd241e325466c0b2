// RUN: triton-autodiff-opt %s -split-input-file -autodiff-sink-stores | FileCheck %s

// Both sides end with stores to the same two places. The places are computed in
// front of the branch.
// CHECK-LABEL: tt.func @same(
// CHECK-DAG: %[[QA:.*]] = tt.addptr %arg1
// CHECK-DAG: %[[QB:.*]] = tt.addptr %arg2
// CHECK: %[[CHOSEN:.*]]:2 = scf.if
// CHECK-NOT: tt.store
// CHECK: scf.yield %[[S:.*]], %{{.*}} : f32, f32
// CHECK: } else {
// CHECK-NOT: tt.store
// CHECK: }
// CHECK-NEXT: tt.store %[[QA]], %[[CHOSEN]]#1
// CHECK-NEXT: tt.store %[[QB]], %[[CHOSEN]]#0
// CHECK-NEXT: tt.return
tt.func @same(%px: !tt.ptr<f32>, %pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  scf.if %c {
    %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
    %x = tt.load %qx {autodiff.site = 0 : i32} : !tt.ptr<f32>
    %s = math.sin %x : f32
    %qa = tt.addptr %pa, %id : !tt.ptr<f32>, i32
    tt.store %qa, %x {autodiff.site = 1 : i32} : !tt.ptr<f32>
    %qb = tt.addptr %pb, %id : !tt.ptr<f32>, i32
    tt.store %qb, %s {autodiff.site = 2 : i32} : !tt.ptr<f32>
  } else {
    %qa = tt.addptr %pa, %id : !tt.ptr<f32>, i32
    tt.store %qa, %zero {autodiff.site = 3 : i32} : !tt.ptr<f32>
    %qb = tt.addptr %pb, %id : !tt.ptr<f32>, i32
    tt.store %qb, %zero {autodiff.site = 4 : i32} : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Other places; or something is loaded after one of the stores.
// CHECK-LABEL: tt.func @others(
// CHECK-COUNT-4: tt.store
// CHECK: tt.return
tt.func @others(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %pc: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.if %c {
    tt.store %pa, %zero : !tt.ptr<f32>
  } else {
    tt.store %pb, %one : !tt.ptr<f32>
  }
  scf.if %c {
    tt.store %pa, %zero : !tt.ptr<f32>
  } else {
    tt.store %pa, %one : !tt.ptr<f32>
    %x = tt.load %pc {isVolatile = true} : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Other masks.
// CHECK-LABEL: tt.func @masks(
// CHECK-COUNT-2: tt.store
// CHECK: tt.return
tt.func @masks(%pa: !tt.ptr<f32>, %c: i1, %d: i1) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.if %c {
    tt.store %pa, %zero, %d : !tt.ptr<f32>
  } else {
    tt.store %pa, %one : !tt.ptr<f32>
  }
  tt.return
}

// -----

// What a side stores elsewhere afterwards stays where it is. Integers may be
// in the same memory, and so may what the same argument points to.
// CHECK-LABEL: tt.func @behind(
// CHECK: %[[CHOSEN:.*]] = scf.if
// CHECK-NEXT: tt.store %arg1, %{{.*}} : !tt.ptr<f32>
// CHECK-NEXT: scf.yield
// CHECK: tt.store %arg0, %[[CHOSEN]] : !tt.ptr<f32>
tt.func @behind(%pa: !tt.ptr<f32>, %pb: !tt.ptr<f32>, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.if %c {
    tt.store %pa, %zero : !tt.ptr<f32>
    tt.store %pb, %one : !tt.ptr<f32>
  } else {
    tt.store %pa, %one : !tt.ptr<f32>
  }
  tt.return
}

// -----

// CHECK-LABEL: tt.func @maybe_the_same_memory(
// CHECK-COUNT-6: tt.store
// CHECK: tt.return
tt.func @maybe_the_same_memory(%pa: !tt.ptr<i32>, %pb: !tt.ptr<i32>, %pc: !tt.ptr<f32>, %n: i32, %c: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1.0 : f32
  %pd = tt.addptr %pc, %n : !tt.ptr<f32>, i32
  scf.if %c {
    tt.store %pa, %zero : !tt.ptr<i32>
    tt.store %pb, %n : !tt.ptr<i32>
  } else {
    tt.store %pa, %n : !tt.ptr<i32>
  }
  scf.if %c {
    tt.store %pc, %one : !tt.ptr<f32>
    tt.store %pd, %one : !tt.ptr<f32>
  } else {
    tt.store %pc, %one : !tt.ptr<f32>
  }
  tt.return
}
