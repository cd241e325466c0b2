// RUN: %interchange %s | FileCheck %s

// Which rows' largest element counts is decided outside of the loop, of a value
// that may be rounded otherwise in another kernel. Its maximum, one number, is
// not handed over: compared with what is computed again it might equal nothing.
// CHECK-LABEL: tt.func @pick_bwd_interchanged0(
// CHECK-NOT: buffer<handover
// CHECK: scf.for
// CHECK: %[[PRODUCT:.*]] = arith.mulf
// CHECK: %[[T:.*]] = arith.addf %[[PRODUCT]],
// CHECK: %[[MAXIMUM:.*]] = "tt.reduce"(%[[T]])
// CHECK: %[[REPEATED:.*]] = tt.splat %[[MAXIMUM]]
// CHECK: arith.cmpf oeq, %[[T]], %[[REPEATED]]
tt.func @pick(%px: !tt.ptr<f16>, %pb: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %factor = arith.constant dense<2.5> : tensor<16xf32>
  %shift = arith.constant dense<0.1> : tensor<16xf32>
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %row = tt.get_program_id x : i32
  %rx = arith.muli %row, %size : i32
  %qx = tt.addptr %px, %rx : !tt.ptr<f16>, i32
  %sx = tt.splat %qx : !tt.ptr<f16> -> tensor<16x!tt.ptr<f16>>
  %ax = tt.addptr %sx, %lanes : tensor<16x!tt.ptr<f16>>, tensor<16xi32>
  %x = tt.load %ax : tensor<16x!tt.ptr<f16>>
  %w = arith.extf %x : tensor<16xf16> to tensor<16xf32>
  %p = arith.mulf %w, %factor : tensor<16xf32>
  %t = arith.addf %p, %shift : tensor<16xf32>
  %m = "tt.reduce"(%t) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %larger = arith.maxnumf %a, %b : f32
    tt.reduce.return %larger : f32
  }) : (tensor<16xf32>) -> f32
  %ms = tt.splat %m : f32 -> tensor<16xf32>
  %hit = arith.cmpf oeq, %t, %ms : tensor<16xf32>
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16xf32>) : i32 {
    %rb = arith.muli %j, %size : i32
    %qb = tt.addptr %pb, %rb : !tt.ptr<f32>, i32
    %sb = tt.splat %qb : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %ab = tt.addptr %sb, %lanes : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %b = tt.load %ab : tensor<16x!tt.ptr<f32>>
    %chosen = arith.select %hit, %b, %zero : tensor<16xi1>, tensor<16xf32>
    %e = math.exp %chosen : tensor<16xf32>
    %next = arith.addf %acc, %e : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %qy = tt.addptr %py, %rx : !tt.ptr<f32>, i32
  %sy = tt.splat %qy : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ay = tt.addptr %sy, %lanes : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %ay, %sum : tensor<16x!tt.ptr<f32>>
  tt.return
}
