// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-reduce-together))' %s | FileCheck %s

// A sum and a maximum, of which neither waits for the other.
// CHECK-LABEL: tt.func @both(
// CHECK: %[[BOTH:.*]]:2 = "tt.reduce"(%arg0, %arg1) <{axis = 0 : i32}>
// CHECK: ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[B0:.*]]: f32, %[[B1:.*]]: f32):
// CHECK: %[[SUM:.*]] = arith.addf %[[A0]], %[[B0]]
// CHECK: %[[MOST:.*]] = arith.maxnumf %[[A1]], %[[B1]]
// CHECK: tt.reduce.return %[[SUM]], %[[MOST]]
// CHECK-NOT: "tt.reduce"
// CHECK: tt.return %[[BOTH]]#0, %[[BOTH]]#1
tt.func @both(%x: tensor<16xf32>, %y: tensor<16xf32>) -> (f32, f32) {
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %most = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  tt.return %sum, %most : f32, f32
}

// The second one waits for the first. Tiles of another shape are apart.
// CHECK-LABEL: tt.func @one_by_one(
// CHECK-COUNT-3: "tt.reduce"({{[^,)]*}})
tt.func @one_by_one(%x: tensor<16xf32>, %z: tensor<32xf32>) -> (f32, f32) {
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %sums = tt.splat %sum : f32 -> tensor<16xf32>
  %d = arith.subf %x, %sums : tensor<16xf32>
  %least = "tt.reduce"(%d) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.minnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<16xf32>) -> f32
  %other = "tt.reduce"(%z) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<32xf32>) -> f32
  %y = arith.addf %least, %other : f32
  tt.return %sum, %y : f32, f32
}
