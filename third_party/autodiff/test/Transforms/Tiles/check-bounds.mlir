// RUN: triton-autodiff-opt %s -split-input-file -autodiff-check-bounds -cse | FileCheck %s

// A load, a store and an atomic under masks. The memory of every pointer is
// known by two addresses; the argument that nobody uses goes.
// CHECK: autodiff.launch @derived accesses [
// CHECK-SAME: {argument = 0 : i64, op = "load", position = "kernel.py:3:4"}
// CHECK-SAME: {argument = 1 : i64, op = "atomic_rmw", position = "kernel.py:4:4"}
// CHECK-LABEL: tt.func @derived(
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 0>}
// CHECK-SAME: %[[G:[^ ]*]]: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>}
// CHECK-SAME: %[[NOTED:[^ ]*]]: !tt.ptr<i64> {autodiff.operand = #autodiff.operand<violations 0>}
// CHECK-SAME: %[[BEGIN_X:[^ ]*]]: i64 {autodiff.operand = #autodiff.operand<begin 0>}
// CHECK-SAME: %[[END_X:[^ ]*]]: i64 {autodiff.operand = #autodiff.operand<end 0>}
// CHECK-SAME: %[[BEGIN_G:[^ ]*]]: i64 {autodiff.operand = #autodiff.operand<begin 1>}
// CHECK-SAME: %[[END_G:[^ ]*]]: i64 {autodiff.operand = #autodiff.operand<end 1>}
tt.func @derived(%x: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 0>},
                 %unused: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 1>},
                 %g: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>},
                 %mask: tensor<4xi1> {autodiff.operand = #autodiff.operand<argument 2>})
    attributes {autodiff.role = "backward"} {
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %base = tt.splat %x : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  // CHECK: %[[P:.*]] = tt.addptr
  %p = tt.addptr %base, %range : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  // CHECK: %[[ADDRESS:.*]] = tt.ptr_to_int %[[P]]
  // CHECK: %[[LAST:.*]] = arith.addi %[[ADDRESS]], %{{.*}}
  // CHECK: %[[B:.*]] = tt.splat %[[BEGIN_X]]
  // CHECK: %[[AFTER:.*]] = arith.cmpi sge, %[[ADDRESS]], %[[B]]
  // CHECK: %[[E:.*]] = tt.splat %[[END_X]]
  // CHECK: %[[BEFORE:.*]] = arith.cmpi sle, %[[LAST]], %[[E]]
  // CHECK: %[[INSIDE:.*]] = arith.andi %[[AFTER]], %[[BEFORE]]
  // CHECK: %[[OUTSIDE:.*]] = arith.xori %[[INSIDE]], %{{.*}}
  // CHECK: %[[DISTANCE:.*]] = arith.subi %[[ADDRESS]], %[[B]]
  // CHECK: tt.atomic_rmw min, relaxed, gpu, %{{.*}}, %{{.*}}, %[[OUTSIDE]]
  // CHECK: %[[V:.*]] = tt.load %[[P]], %[[INSIDE]], %{{.*}}
  %v = tt.load %p : tensor<4x!tt.ptr<f16>> loc("kernel.py":3:4)
  %w = arith.extf %v : tensor<4xf16> to tensor<4xf32>
  %target = tt.splat %g : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  // The lanes that were off before are off still, and violate nothing.
  // CHECK: %[[OUTSIDE_G:.*]] = arith.xori
  // CHECK: %[[VIOLATION:.*]] = arith.andi %[[OUTSIDE_G]], %[[MASK:.*]] :
  // CHECK: %[[ON:.*]] = arith.andi %{{.*}}, %[[MASK]] :
  // CHECK: tt.atomic_rmw min, relaxed, gpu, %{{.*}}, %{{.*}}, %[[VIOLATION]]
  // CHECK: tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %{{.*}}, %[[ON]]
  %old = tt.atomic_rmw fadd, relaxed, gpu, %target, %w, %mask
      : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32> loc("kernel.py":4:4)
  tt.return
}

// -----

// A pointer that is chosen may point into either memory; what has no mask goes
// to a spare place.
// CHECK: autodiff.launch @chosen accesses [{argument = -1 : i64, op = "atomic_cas"
// CHECK-LABEL: tt.func @chosen
// CHECK: %[[A:.*]] = arith.andi
// CHECK: %[[B:.*]] = arith.andi
// CHECK: %[[INSIDE:.*]] = arith.ori %[[A]], %[[B]]
// CHECK: %[[SPARE:.*]] = tt.bitcast %{{.*}} : !tt.ptr<i64> -> !tt.ptr<i32>
// CHECK: %[[P:.*]] = arith.select %[[INSIDE]], %{{.*}}, %[[SPARE]] : !tt.ptr<i32>
// CHECK: tt.atomic_cas relaxed, gpu, %[[P]]
tt.func @chosen(%x: !tt.ptr<i32> {autodiff.operand = #autodiff.operand<argument 0>},
                %y: !tt.ptr<i32> {autodiff.operand = #autodiff.operand<argument 1>},
                %c: i1 {autodiff.operand = #autodiff.operand<argument 2>},
                %v: i32 {autodiff.operand = #autodiff.operand<argument 3>})
    attributes {autodiff.role = "backward"} {
  %p = arith.select %c, %x, %y : !tt.ptr<i32>
  %old = tt.atomic_cas relaxed, gpu, %p, %v, %v : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}

// -----

// The user's kernel stays as it is.
// CHECK-LABEL: tt.func @primal
// CHECK-NOT: tt.ptr_to_int
tt.func @primal(%x: !tt.ptr<i32>) {
  %v = tt.load %x : !tt.ptr<i32>
  tt.store %x, %v : !tt.ptr<i32>
  tt.return
}

// -----

// What a forward stores, its program claims: who finds something else of
// another program there, or of another lane, notes a race.
// CHECK: autodiff.launch @forward accesses [
// CHECK-SAME: {argument = 0 : i64, op = "store", position = "kernel.py:5:4"}
// CHECK-SAME: {argument = 0 : i64, op = "race", position = "kernel.py:5:4"}
// CHECK-LABEL: tt.func @forward
// CHECK-SAME: %[[NOTED:[^ ]*]]: !tt.ptr<i64> {autodiff.operand = #autodiff.operand<violations 0>}
// CHECK-SAME: %[[CLAIMS:[^ ]*]]: !tt.ptr<i64> {autodiff.operand = #autodiff.operand<claims 0>}
// CHECK: %[[PLACE:.*]] = tt.addptr {{.*}} : tensor<4x!tt.ptr<i64>>, tensor<4xi64>
// CHECK: %[[BEFORE:.*]] = tt.atomic_rmw exch, relaxed, gpu, %[[PLACE]], %[[MINE:.*]], %[[ON:.*]] :
// CHECK: gpu.barrier
// CHECK: %[[AFTER:.*]] = tt.atomic_rmw add, relaxed, gpu, %[[PLACE]], %{{.*}}, %[[ON]] :
// CHECK: tt.atomic_rmw min, relaxed, gpu,
// CHECK: tt.store
tt.func @forward(%y: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 0>},
                 %value: tensor<4xf16> {autodiff.operand = #autodiff.operand<argument 1>})
    attributes {autodiff.role = "forward"} {
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %base = tt.splat %y : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>>
  %p = tt.addptr %base, %range : tensor<4x!tt.ptr<f16>>, tensor<4xi32>
  tt.store %p, %value : tensor<4x!tt.ptr<f16>> loc("kernel.py":5:4)
  tt.return
}

// -----

// Nobody says what the argument is for: it stays.
// CHECK-LABEL: tt.func @unsaid(%{{[^ ]*}}: i32, %{{[^ ]*}}: !tt.ptr<i64>
tt.func @unsaid(%x: i32) attributes {autodiff.role = "backward"} { tt.return }

// -----

// Two kernels of a module: the second one's pointers and accesses are its own.
// CHECK: autodiff.launch @second accesses [{argument = -1 : i64, op = "load", position = "{{[^"]*}}"}]
// CHECK-LABEL: tt.func @first(
// CHECK-LABEL: tt.func @second(
// CHECK-COUNT-4: arith.cmpi
// CHECK-NOT: arith.cmpi
tt.func @first(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>})
    attributes {autodiff.role = "backward"} {
  %v = tt.load %x : !tt.ptr<f32>
  tt.store %x, %v : !tt.ptr<f32>
  tt.return
}
tt.func @second(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                %y: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>}, %c: i1 {autodiff.operand = #autodiff.operand<argument 2>})
    attributes {autodiff.role = "backward"} {
  %p = arith.select %c, %x, %y : !tt.ptr<f32>
  %v = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  tt.return
}
