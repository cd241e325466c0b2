// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-simplify,cse,autodiff-simplify,canonicalize,cse))' | FileCheck %s

// Σ dot(x · c, y) = c · Σ dot(x, y), rounded or transposed before the product,
// and masked.
// CHECK-LABEL: tt.func @loop
// CHECK: %[[S:.*]] = scf.for
// CHECK-NOT: arith.mulf
// CHECK: %[[M:.*]] = arith.select %{{.*}}, %arg0, %{{.*}} : tensor<16x16xi1>
// CHECK: %[[T:.*]] = arith.truncf %[[M]]
// CHECK: tt.dot %[[T]]
// CHECK: }
// CHECK: %[[C:.*]] = tt.splat %arg2
// CHECK: %[[P:.*]] = arith.mulf %[[S]], %[[C]]
// CHECK: tt.store %{{.*}}, %[[P]]
tt.func @loop(%x: tensor<16x16xf32>, %y: tensor<16x16xf16>, %c: f32, %n: i32, %mask: tensor<16x16xi1>, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %f = tt.splat %c : f32 -> tensor<16x16xf32>
    %0 = arith.mulf %x, %f : tensor<16x16xf32>
    %1 = arith.select %mask, %0, %zero : tensor<16x16xi1>, tensor<16x16xf32>
    %2 = arith.truncf %1 : tensor<16x16xf32> to tensor<16x16xf16>
    %3 = tt.dot %2, %y, %a : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %3 : tensor<16x16xf32>
  }
  tt.store %p, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Of no iterations the sum is zero: 1/n may be infinite then.
// CHECK-LABEL: tt.func @no_iterations
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: tt.dot
tt.func @no_iterations(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %n: i32, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %number = arith.sitofp %n : i32 to f32
  %c = arith.divf %one, %number : f32
  %f = tt.splat %c : f32 -> tensor<16x16xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %0 = arith.mulf %x, %f : tensor<16x16xf32>
    %3 = tt.dot %0, %y, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %3 : tensor<16x16xf32>
  }
  tt.store %p, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop that goes on with what another one in a branch has summed.
// CHECK-LABEL: tt.func @chained
// CHECK: %[[B:.*]] = scf.if
// CHECK: scf.for
// CHECK-NOT: arith.mulf
// CHECK: } else {
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[B]])
// CHECK-NOT: arith.mulf
// CHECK: }
// CHECK: %[[P:.*]] = arith.mulf %[[S]], %{{.*}}
// CHECK: tt.store %{{.*}}, %[[P]]
tt.func @chained(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %c: f32, %n: i32, %any: i1, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %two = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = scf.if %any -> (tensor<16x16xf32>) {
    %c2 = arith.mulf %c, %two : f32
    %f = tt.splat %c2 : f32 -> tensor<16x16xf32>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
      %0 = arith.mulf %x, %f : tensor<16x16xf32>
      %3 = tt.dot %0, %y, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %3 : tensor<16x16xf32>
    }
    scf.yield %s : tensor<16x16xf32>
  } else {
    scf.yield %zero : tensor<16x16xf32>
  }
  %c3 = arith.mulf %c, %two : f32
  %f2 = tt.splat %c3 : f32 -> tensor<16x16xf32>
  %s2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %b) -> (tensor<16x16xf32>) : i32 {
    %0 = arith.mulf %x, %f2 : tensor<16x16xf32>
    %3 = tt.dot %0, %y, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %3 : tensor<16x16xf32>
  }
  tt.store %p, %s2 : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// A loop whose own loops add to its sum: what is the same in all iterations of
// both is taken out of both, what the outer one knows stays.
// CHECK-LABEL: tt.func @nested
// CHECK: %[[S:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %{{.*}})
// CHECK: %[[F:.*]] = tt.splat
// CHECK: %[[N:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK: %[[M:.*]] = arith.mulf %arg0, %[[F]]
// CHECK: tt.dot %[[M]]
// CHECK-NOT: arith.mulf
// CHECK: scf.yield %[[N]]
// CHECK: %[[P:.*]] = arith.mulf %[[S]], %{{.*}}
// CHECK: tt.store %{{.*}}, %[[P]]
tt.func @nested(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %c: f32, %n: i32, %m: i32, %p: tensor<16x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f = tt.splat %c : f32 -> tensor<16x16xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<16x16xf32>) : i32 {
    %number = arith.sitofp %i : i32 to f32
    %g = tt.splat %number : f32 -> tensor<16x16xf32>
    %inner = scf.for %j = %i to %m step %c1 iter_args(%b = %a) -> (tensor<16x16xf32>) : i32 {
      %0 = arith.mulf %x, %g : tensor<16x16xf32>
      %1 = arith.mulf %0, %f : tensor<16x16xf32>
      %3 = tt.dot %1, %y, %b : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %3 : tensor<16x16xf32>
    }
    scf.yield %inner : tensor<16x16xf32>
  }
  tt.store %p, %s : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// However long a chain of them is, floats that are known before a branch leave
// it at once.
// CHECK-LABEL: tt.func @chain_before_branch
// CHECK-COUNT-12: math.exp
// CHECK: scf.if
// CHECK-NEXT: tt.store
tt.func @chain_before_branch(%x: f32, %c: i1, %p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  scf.if %c {
    %0 = math.exp %x : f32
    %1 = math.exp %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.exp %2 : f32
    %4 = math.exp %3 : f32
    %5 = math.exp %4 : f32
    %6 = math.exp %5 : f32
    %7 = math.exp %6 : f32
    %8 = math.exp %7 : f32
    %9 = math.exp %8 : f32
    %10 = math.exp %9 : f32
    %11 = math.exp %10 : f32
    tt.store %p, %11 : !tt.ptr<f32>
  }
  tt.return
}
