// RUN: %differentiate %s | FileCheck %s

// The softmax backward as an expert writes it, x̄ = e·(ȳ − Σ ȳ·y)/s: maximum and
// sum come from the forward, one reduction is left, nothing is atomic.
// CHECK: autodiff.buffer 0 <saved "saved0"
// CHECK: autodiff.buffer 1 <saved "saved1"
// CHECK: autodiff.gradient <store 0
// CHECK-LABEL: tt.func @softmax_fwd(
// CHECK: %[[M:.*]] = "tt.reduce"
// CHECK: maxnumf
// CHECK: %[[PM:.*]] = tt.addptr %arg3,
// CHECK: tt.store %[[PM]], %[[M]]
// CHECK: %[[S:.*]] = "tt.reduce"
// CHECK: addf
// CHECK: %[[PS:.*]] = tt.addptr %arg4,
// CHECK: tt.store %[[PS]], %[[S]]
// CHECK-LABEL: tt.func @softmax_bwd(
// CHECK-SAME: %arg2: {{.*}}<buffer 0>{{.*}}%arg3: {{.*}}<buffer 1>
// CHECK-SAME: %arg5: {{.*}}<gradient 0>
// CHECK-NOT: maxnumf
// CHECK-NOT: atomic
// CHECK: %[[START:.*]] = arith.muli {{.*}}, %arg1
// CHECK-DAG: %[[AX:.*]] = tt.addptr %arg0, %[[START]]
// CHECK-DAG: %[[AG:.*]] = tt.addptr %arg5, %[[START]]
// CHECK-DAG: %[[BX:.*]] = tt.splat %[[AX]]
// CHECK-DAG: %[[BG:.*]] = tt.splat %[[AG]]
// CHECK-DAG: %[[PX:.*]] = tt.addptr %[[BX]]
// CHECK-DAG: %[[PG:.*]] = tt.addptr %[[BG]]
// CHECK: %[[X:.*]] = tt.load %[[PX]]
// CHECK: %[[PM:.*]] = tt.addptr %arg2,
// CHECK: %[[M:.*]] = tt.load %[[PM]]
// CHECK: %[[MS:.*]] = tt.splat %[[M]]
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[MS]]
// CHECK: %[[X:.*]] = arith.mulf %[[D]]
// CHECK: %[[E:.*]] = math.exp2 %[[X]]
// CHECK: %[[PS:.*]] = tt.addptr %arg3,
// CHECK: %[[S:.*]] = tt.load %[[PS]]
// CHECK: %[[SS:.*]] = tt.splat %[[S]]
// CHECK: %[[Y:.*]] = arith.divf %[[E]], %[[SS]]
// CHECK: %[[AT:.*]] = tt.addptr %arg4, %[[START]]
// CHECK: %[[BT:.*]] = tt.splat %[[AT]]
// CHECK: %[[PT:.*]] = tt.addptr %[[BT]],
// CHECK: %[[T:.*]] = tt.load %[[PT]]
// CHECK: %[[Q:.*]] = arith.divf %[[T]], %[[SS]]
// CHECK: %[[TY:.*]] = arith.mulf %[[Q]], %[[Y]]
// CHECK: %[[R:.*]] = "tt.reduce"(%[[TY]]) <{axis = 0 : i32}>
// CHECK: addf
// CHECK: %[[RS:.*]] = tt.splat %[[R]]
// CHECK: %[[C:.*]] = arith.subf %[[Q]], %[[RS]]
// CHECK: %[[DX:.*]] = arith.mulf %[[C]], %[[E]]
// CHECK: tt.store %[[PG]], %[[DX]]
// CHECK-NOT: tt.reduce
// CHECK-NOT: atomic
// CHECK: tt.return
tt.func @softmax(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %stride: i32) {
  %row = tt.get_program_id x : i32
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %start = arith.muli %row, %stride : i32
  %0 = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %1 = tt.splat %0 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %2 = tt.addptr %1, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %2 : tensor<64x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %3 = tt.splat %m : f32 -> tensor<64xf32>
  %d = arith.subf %x, %3 : tensor<64xf32>
  %e = math.exp %d : tensor<64xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64xf32>) -> f32
  %4 = tt.splat %s : f32 -> tensor<64xf32>
  %y = arith.divf %e, %4 : tensor<64xf32>
  %5 = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %6 = tt.splat %5 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %7 = tt.addptr %6, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %7, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}
