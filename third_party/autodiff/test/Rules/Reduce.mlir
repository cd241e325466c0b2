// RUN: triton-autodiff-opt %s -split-input-file -autodiff-normalize \
// RUN:   -autodiff-reverse -canonicalize -cse | FileCheck %s

// What a sum adds up gets the sum's cotangent, each element all of it.
// CHECK-LABEL: tt.func @sum_bwd(
// CHECK: %[[T:.*]] = autodiff.upstream {{.*}} -> tensor<4xf32>
// CHECK: %[[E:.*]] = tt.expand_dims %[[T]] {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
// CHECK: %[[B:.*]] = tt.broadcast %[[E]] : tensor<1x4xf32> -> tensor<2x4xf32>
// CHECK: autodiff.accumulate {{.*}}, %[[B]] {
tt.func @sum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<2x4xf32>) -> tensor<4xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// A maximum's cotangent goes to the elements that attain it, divided by how
// many there are; NaN attains NaN. The maximum is taken in the adjoint, so that
// no other rounding of x comes between.
// CHECK-LABEL: tt.func @max_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[T:.*]] = autodiff.upstream %arg1
// CHECK: %[[Y:.*]] = "tt.reduce"(%[[X]])
// CHECK: arith.maxnumf
// CHECK: %[[XN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[YN:.*]] = arith.cmpf uno, %[[Y]], %[[Y]]
// CHECK: %[[YNR:.*]] = tt.splat %[[YN]] : i1 -> tensor<4xi1>
// CHECK: %[[NN:.*]] = arith.andi %[[XN]], %[[YNR]]
// CHECK: %[[R:.*]] = tt.splat %[[Y]] : f32 -> tensor<4xf32>
// CHECK: %[[E:.*]] = arith.cmpf oeq, %[[X]], %[[R]]
// CHECK: %[[A:.*]] = arith.ori %[[E]], %[[NN]]
// CHECK: %[[I:.*]] = arith.select %[[A]], %[[ONE]], %[[ZERO]]
// CHECK: %[[N:.*]] = "tt.reduce"(%[[I]]) <{axis = 0 : i32}>
// CHECK: arith.addf
// CHECK: %[[S:.*]] = arith.divf %[[T]], %[[N]]
// CHECK: %[[B:.*]] = tt.splat %[[S]]
// CHECK: %[[D:.*]] = arith.select %[[A]], %[[B]], %[[ZERO]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @max(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// So does a minimum's, here along the second axis.
// CHECK-LABEL: tt.func @min_bwd(
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[Y:.*]] = "tt.reduce"(%[[X]]) <{axis = 1 : i32}>
// CHECK: arith.minimumf
// CHECK: %[[E:.*]] = tt.expand_dims %[[Y]] {axis = 1 : i32} : tensor<2xf32>
// CHECK: %[[R:.*]] = tt.broadcast %[[E]] : tensor<2x1xf32> -> tensor<2x4xf32>
// CHECK: %[[Q:.*]] = arith.cmpf oeq, %[[X]], %[[R]]
// CHECK: %[[A:.*]] = arith.ori %[[Q]]
// CHECK: %[[I:.*]] = arith.select %[[A]], %[[ONE]], %[[ZERO]]
// CHECK: %[[N:.*]] = "tt.reduce"(%[[I]]) <{axis = 1 : i32}>
// CHECK: arith.addf
// CHECK: %[[S:.*]] = arith.divf %[[T]], %[[N]]
// CHECK: %[[F:.*]] = tt.expand_dims %[[S]] {axis = 1 : i32}
// CHECK: %[[B:.*]] = tt.broadcast %[[F]]
// CHECK: %[[D:.*]] = arith.select %[[A]], %[[B]], %[[ZERO]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @min(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<2x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<2x4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.minimumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<2x4xf32>) -> tensor<2xf32>
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
  tt.store %1, %y : tensor<2x!tt.ptr<f32>>
  tt.return
}

// -----

// Any other combination: each element between what comes before it and what
// comes after, which are scans, each moved by one element.
// CHECK-LABEL: tt.func @product_bwd(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[P:.*]] = "tt.scan"(%[[X]]) <{axis = 0 : i32, reverse = false}>
// CHECK: arith.mulf
// CHECK: %[[BEFORE:.*]]:3 = "tt.scan"(%[[P]], %[[P]], %{{.*}}) <{axis = 0 : i32, reverse = false}>
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i32, %[[B:.*]]: f32, %[[Q:.*]]: f32, %[[S:.*]]: i32)
// CHECK: %[[SINGLE:.*]] = arith.cmpi ne, %[[S]]
// CHECK: %[[N:.*]] = arith.select %[[SINGLE]], %{{.*}}, %[[Q]]
// CHECK: tt.scan.return %[[B]], %[[N]], %
// CHECK: %[[S:.*]] = "tt.scan"(%[[X]]) <{axis = 0 : i32, reverse = true}>
// CHECK: %[[AFTER:.*]]:3 = "tt.scan"(%[[S]], %[[S]], %{{.*}}) <{axis = 0 : i32, reverse = true}>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[I:.*]], %[[C0:.*]] : tensor<4xi32>
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : tensor<4xi32>
// CHECK: %[[R:.*]] = tt.splat %[[T]] : f32 -> tensor<4xf32>
// CHECK: %[[TP:.*]] = arith.mulf %[[R]], %[[BEFORE]]#1
// CHECK: %[[Z:.*]] = arith.select %[[FIRST]], %[[R]], %[[TP]]
// CHECK: %[[ZS:.*]] = arith.mulf %[[Z]], %[[AFTER]]#1
// CHECK: %[[D:.*]] = arith.select %[[LAST]], %[[Z]], %[[ZS]]
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @product(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.store %py, %y : !tt.ptr<f32>
  tt.return
}

// -----

// Where the elements are numbered, the number tells which one was chosen.
// CHECK-LABEL: tt.func @arg_max_bwd(
// CHECK: %[[I:.*]] = tt.make_range
// CHECK: %[[Y:.*]]:2 = "tt.reduce"
// CHECK: %[[T:.*]] = autodiff.upstream
// CHECK: %[[J:.*]] = tt.splat %[[Y]]#1 : i32 -> tensor<4xi32>
// CHECK: %[[CHOSEN:.*]] = arith.cmpi eq, %[[I]], %[[J]]
// CHECK: %[[R:.*]] = tt.splat %[[T]]
// CHECK: %[[D:.*]] = arith.select %[[CHOSEN]], %[[R]], %{{.*}}
// CHECK: autodiff.accumulate {{.*}}, %[[D]] {
tt.func @arg_max(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %c, %a, %b : f32
    %l = arith.select %c, %j, %k : i32
    tt.reduce.return %s, %l : f32, i32
  }) : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
  tt.store %py, %y#0 : !tt.ptr<f32>
  tt.return
}

// -----

// Numbers that repeat along the axis tell nothing.
// CHECK-LABEL: tt.func @arg_max_of_rows_bwd(
// CHECK: "tt.scan"(%{{.*}}, %{{.*}}) <{axis = 0 : i32, reverse = false}>
tt.func @arg_max_of_rows(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %r = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %e = tt.expand_dims %r {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %i = tt.broadcast %e : tensor<1x4xi32> -> tensor<4x4xi32>
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x4x!tt.ptr<f32>>
  %y:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %c, %a, %b : f32
    %l = arith.select %c, %j, %k : i32
    tt.reduce.return %s, %l : f32, i32
  }) : (tensor<4x4xf32>, tensor<4x4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  %1 = tt.splat %py : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %1, %y#0 : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// Elements are combined in several orders, so that ties cannot be shared: the
// first of equal maxima gets the whole derivative. NaN is no maximum.
// CHECK-LABEL: tt.func @tied_maximum_bwd(
// CHECK: %[[LARGER:.*]] = arith.cmpf oge, %[[A:.*]], %[[B:[^ ]*]] :
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[B]], %[[B]]
// CHECK: %[[FIRST:.*]] = arith.ori %[[LARGER]], %[[NAN]]
// CHECK: arith.select %[[FIRST]], %[[A]], %[[B]]
// CHECK: autodiff.accumulate
tt.func @tied_maximum(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>) {
  %0 = tt.splat %px : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %x = tt.load %0 : tensor<4x!tt.ptr<f32>>
  %y:2 = "tt.reduce"(%x, %x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %s: f32, %b: f32, %t: f32):
    %m = arith.maxnumf %a, %b : f32
    %n = arith.addf %s, %t : f32
    tt.reduce.return %m, %n : f32, f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> (f32, f32)
  tt.store %py, %y#0 : !tt.ptr<f32>
  tt.return
}
