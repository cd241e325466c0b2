// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(autodiff-normalize,tt.func(autodiff-mark-residuals),autodiff-drop-maxima)' \
// RUN:   | FileCheck %s

// log Σ exp(x − m) + m does not depend on m.
// CHECK-LABEL: tt.func @log_sum_exp(
// CHECK: autodiff.residual {{.*}} id = 0 {constant}
// CHECK: autodiff.residual {{.*}} id = 1 : f32
tt.func @log_sum_exp(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %l = math.log %s : f32
  %y = arith.addf %l, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// log Σ exp(x − m) does.
// CHECK-LABEL: tt.func @shifted(
// CHECK-NOT: {constant}
// CHECK: tt.return
tt.func @shifted(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %l = math.log %s : f32
  tt.store %py, %l : !tt.ptr<f32>
  tt.return
}

// -----

// So does log Σ exp(x − m) − m: the sign matters.
// CHECK-LABEL: tt.func @subtracted(
// CHECK-NOT: {constant}
// CHECK: tt.return
tt.func @subtracted(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %l = math.log %s : f32
  %y = arith.subf %l, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// A softmax's maximum is free, unless it is stored as well.
// CHECK-LABEL: tt.func @softmax(
// CHECK: {constant}
tt.func @softmax(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK-LABEL: tt.func @stored(
// CHECK-NOT: {constant}
// CHECK: tt.return
tt.func @stored(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %pm: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<4xf32>
  %y = arith.divf %e, %2 : tensor<4xf32>
  %3 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %3, %y : tensor<4x!tt.ptr<f32>>
  tt.store %pm, %m : !tt.ptr<f32>
  tt.return
}

// -----

// Whether there is a sum is asked of rows in which all is −∞: with a maximum,
// the sum is at least one.
// CHECK-LABEL: tt.func @asked(
// CHECK: autodiff.residual {{.*}} id = 0 {constant}
tt.func @asked(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minf = arith.constant 0xFF800000 : f32
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %u = arith.cmpf oeq, %m, %minf : f32
  %g = arith.select %u, %zero, %m : f32
  %1 = tt.splat %g : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %v = arith.cmpf oeq, %s, %zero : f32
  %l = arith.select %v, %one, %s : f32
  %2 = math.log %l : f32
  %y = arith.addf %2, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Of some of the numbers, the sum may be zero although there is a maximum.
// CHECK-LABEL: tt.func @asked_of_some(
// CHECK-NOT: {constant}
// CHECK: tt.return
tt.func @asked_of_some(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %some: tensor<4xi1>) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %1 = tt.splat %m : f32 -> tensor<4xf32>
  %d = arith.subf %x, %1 : tensor<4xf32>
  %e = math.exp %d : tensor<4xf32>
  %f = arith.select %some, %e, %zeros : tensor<4xi1>, tensor<4xf32>
  %s = "tt.reduce"(%f) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4xf32>) -> f32
  %v = arith.cmpf oeq, %s, %zero : f32
  %l = arith.select %v, %one, %s : f32
  %2 = math.log %l : f32
  %y = arith.addf %2, %m : f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}
