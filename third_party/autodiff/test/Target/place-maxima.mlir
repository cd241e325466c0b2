// RUN: triton-autodiff-opt %s -split-input-file \
// RUN:   -pass-pipeline='builtin.module(tt.func(autodiff-place-maxima))' | FileCheck %s

// Two layouts may give a sum other last bits, and the maximum is found in none
// of the elements of the other copy: it is looked for by its place.
// CHECK-LABEL: tt.func @largest_sum
// CHECK: %[[SUM:.*]] = "tt.reduce"
// CHECK: %[[I:.*]] = tt.make_range
// CHECK: %[[MOST:.*]]:2 = "tt.reduce"(%[[SUM]], %[[I]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[J:.*]]: i32, %[[B:.*]]: f32, %[[K:.*]]: i32):
// CHECK-DAG: %[[BEYOND:.*]] = arith.cmpf ogt, %[[A]], %[[B]]
// CHECK-DAG: %[[TIE:.*]] = arith.cmpf oeq, %[[A]], %[[B]]
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpi slt, %[[J]], %[[K]]
// CHECK-DAG: %[[NAN:.*]] = arith.cmpf uno, %[[B]], %[[B]]
// CHECK: %[[PLACE:.*]] = tt.splat %[[MOST]]#1
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[I]], %[[PLACE]]
// CHECK-NOT: oeq
// CHECK: arith.select %[[IS]]
tt.func @largest_sum(%x: tensor<8x16xf32>, %p: tensor<8x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  %most = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8xf32>) -> f32
  %s = tt.splat %most : f32 -> tensor<8xf32>
  %is = arith.cmpf oeq, %sum, %s : tensor<8xf32>
  %g = arith.select %is, %one, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %g : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// The smallest of scans in each row, compared in a wider type; NaN is taken.
// CHECK-LABEL: tt.func @smallest_of_rows
// CHECK: %[[LEAST:.*]]:2 = "tt.reduce"(%{{.*}}, %[[I:.*]]) <{axis = 1 : i32}>
// CHECK-NEXT: ^bb0(%[[A:.*]]: bf16, %{{.*}}: i32, %[[B:.*]]: bf16, %{{.*}}: i32):
// CHECK-DAG: arith.cmpf olt, %[[A]], %[[B]]
// CHECK-DAG: arith.cmpf uno, %[[A]], %[[A]]
// CHECK: %[[E:.*]] = tt.expand_dims %[[LEAST]]#1
// CHECK: %[[R:.*]] = tt.broadcast %[[E]]
// CHECK: arith.cmpi eq, %[[I]], %[[R]]
tt.func @smallest_of_rows(%x: tensor<8x16xbf16>, %p: tensor<8x16x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %one = arith.constant dense<1.0> : tensor<8x16xf32>
  %run = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: bf16, %b: bf16):
    %t = arith.addf %a, %b : bf16
    tt.scan.return %t : bf16
  }) : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %least = "tt.reduce"(%run) <{axis = 1 : i32}> ({
  ^bb0(%a: bf16, %b: bf16):
    %t = arith.minimumf %a, %b : bf16
    tt.reduce.return %t : bf16
  }) : (tensor<8x16xbf16>) -> tensor<8xbf16>
  %wide = arith.extf %run : tensor<8x16xbf16> to tensor<8x16xf32>
  %w = arith.extf %least : tensor<8xbf16> to tensor<8xf32>
  %e = tt.expand_dims %w {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  %r = tt.broadcast %e : tensor<8x1xf32> -> tensor<8x16xf32>
  %is = arith.cmpf oeq, %wide, %r : tensor<8x16xf32>
  %g = arith.select %is, %one, %zero : tensor<8x16xi1>, tensor<8x16xf32>
  tt.store %p, %g : tensor<8x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Elements that were loaded are the same in all layouts: equal ones share.
// CHECK-LABEL: tt.func @loaded
// CHECK: arith.cmpf oeq
// CHECK-NOT: arith.cmpi eq
tt.func @loaded(%q: tensor<8x!tt.ptr<f32>>, %p: tensor<8x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %x = tt.load %q : tensor<8x!tt.ptr<f32>>
  %most = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.maxnumf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<8xf32>) -> f32
  %s = tt.splat %most : f32 -> tensor<8xf32>
  %is = arith.cmpf oeq, %x, %s : tensor<8xf32>
  %g = arith.select %is, %one, %zero : tensor<8xi1>, tensor<8xf32>
  tt.store %p, %g : tensor<8x!tt.ptr<f32>>
  tt.return
}
