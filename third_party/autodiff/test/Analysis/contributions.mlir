// What passes can ask of a contribution, said at the load that it is of.
// RUN: split-file %s %t
// RUN: %contributions -split-input-file -verify-diagnostics %t/derived.mlir -o /dev/null
// RUN: triton-autodiff-opt -print-contributions %t/kernels.mlir -o /dev/null 2>&1 | FileCheck %t/kernels.mlir
// RUN: triton-autodiff-opt -print-contributions -canonicalize -print-contributions %t/changed.mlir -o /dev/null 2>&1 | FileCheck %t/changed.mlir

//--- derived.mlir

// Each program loads a row of its own, and the weights that all have in common.
tt.func @scale(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %width = arith.constant 16 : i32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %width : i32
  %rowx = tt.addptr %px, %row : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %row : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qx = tt.addptr %bx, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qw = tt.addptr %bw, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qy = tt.addptr %by, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %ends = tt.splat %n : i32 -> tensor<16xi32>
  %mask = arith.cmpi slt, %i, %ends : tensor<16xi32>
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // expected-remark @below {{domain: 'tensor<16x!tt.ptr<f32>>', no loop or branch}}
  // expected-remark @below {{elements: exactly #autodiff.check<distinct 0 at 0 [<16 x [<1 x grid0>]>, <1 x [<1 x 16>]>,}}
  // expected-remark @below {{shared: owned by one}}
  // expected-remark @below {{guards: no mask, 0 branches}}
  // expected-remark @below {{gradient: of argument 0, this kernel's alone}}
  %x = tt.load %qx : tensor<16x!tt.ptr<f32>>
  // expected-remark @below {{domain: 'tensor<16x!tt.ptr<f32>>', no loop or branch}}
  // expected-remark @below {{elements: exactly #autodiff.check<distinct 1 at 0 [<1 x [<1 x 16>] below arg3>,}}
  // expected-remark @below {{shared: by programs along pid0, owned by several}}
  // expected-remark @below {{guards: a mask, 0 branches}}
  // expected-remark @below {{gradient: of argument 1, this kernel's alone}}
  %w = tt.load %qw, %mask, %zero : tensor<16x!tt.ptr<f32>>
  %y = arith.mulf %x, %w : tensor<16xf32>
  tt.store %qy, %y : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// The rows of a product's operand are in a loop, and programs along y share
// them.
tt.func @loop(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %id = tt.get_program_id x : i32
  %other = tt.get_program_id y : i32
  %scale = arith.sitofp %other : i32 to f32
  %row = arith.muli %id, %n : i32
  %all = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %o = arith.addi %row, %j : i32
    %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
    // expected-remark @below {{domain: '!tt.ptr<f32>', 1 parallel loops, its site in a loop}}
    // expected-remark @below {{elements: exactly #autodiff.check<distinct 0 at 0 [<arg2 x [<1 x grid0>]>, <1 x [<1 x max(arg2, 0)>]>,}}
    // expected-remark @below {{shared: by programs along pid1, owned by several}}
    // expected-remark @below {{guards: no mask, 0 branches}}
    // expected-remark @below {{gradient: of argument 0, this kernel's alone}}
    %x = tt.load %qx : !tt.ptr<f32>
    %y = arith.mulf %x, %scale : f32
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  %place = arith.muli %id, %m : i32
  %o = arith.addi %place, %other : i32
  %qy = tt.addptr %py, %o : !tt.ptr<f32>, i32
  tt.store %qy, %all : !tt.ptr<f32>
  tt.return
}

// -----

// Iterations go on with what the one before has left: they have an order.
tt.func @ordered(%px: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %id = tt.get_program_id x : i32
  %row = arith.muli %id, %n : i32
  %all = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %one) -> (f32) : i32 {
    %o = arith.addi %row, %j : i32
    %qx = tt.addptr %px, %o : !tt.ptr<f32>, i32
    // expected-remark @below {{domain: '!tt.ptr<f32>', an ordered loop, its site in a loop}}
    // expected-remark @below {{elements: exactly #autodiff.check<distinct 0 at 0 [<arg2 x [<1 x grid0>]>, <1 x [<1 x max(arg2, 0)>]>,}}
    // expected-remark @below {{shared: owned by one}}
    // expected-remark @below {{guards: no mask, 0 branches}}
    // expected-remark @below {{gradient: of argument 0, this kernel's alone}}
    %x = tt.load %qx : !tt.ptr<f32>
    %s = math.sin %acc : f32
    %next = arith.mulf %s, %x : f32
    scf.yield %next : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %all : !tt.ptr<f32>
  tt.return
}

// -----

// Some programs load. In those that do not, nobody contributes: a space that
// is an upper bound.
tt.func @branch(%px: !tt.ptr<f32>, %pc: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %id = tt.get_program_id x : i32
  %qc = tt.addptr %pc, %id : !tt.ptr<i32>, i32
  %c = tt.load %qc : !tt.ptr<i32>
  %counts = arith.cmpi sgt, %c, %c0 : i32
  %y = scf.if %counts -> f32 {
    %qx = tt.addptr %px, %id : !tt.ptr<f32>, i32
    // expected-remark @below {{domain: '!tt.ptr<f32>', a branch}}
    // expected-remark @below {{elements: at most #autodiff.check<distinct 0 at 0 [<1 x [<1 x grid0>]>,}}
    // expected-remark @below {{shared: owned by one}}
    // expected-remark @below {{guards: no mask, 1 branches}}
    // expected-remark @below {{gradient: of argument 0, this kernel's alone}}
    %x = tt.load %qx : !tt.ptr<f32>
    %xx = arith.mulf %x, %x : f32
    scf.yield %xx : f32
  } else {
    scf.yield %zero : f32
  }
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %y : !tt.ptr<f32>
  tt.return
}

// -----

// An index from memory: what it goes to is not known.
tt.func @gathered(%px: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
  %id = tt.get_program_id x : i32
  %qi = tt.addptr %pi, %id : !tt.ptr<i32>, i32
  %i = tt.load %qi : !tt.ptr<i32>
  %qx = tt.addptr %px, %i : !tt.ptr<f32>, i32
  // expected-remark @below {{domain: '!tt.ptr<f32>', no loop or branch}}
  // expected-remark @below {{elements: not known}}
  // expected-remark @below {{guards: no mask, 0 branches}}
  // expected-remark @below {{gradient: of argument 0, this kernel's alone}}
  %x = tt.load %qx : !tt.ptr<f32>
  %xx = arith.mulf %x, %x : f32
  %qy = tt.addptr %py, %id : !tt.ptr<f32>, i32
  tt.store %qy, %xx : !tt.ptr<f32>
  tt.return
}

//--- kernels.mlir

// What a second kernel adds makes a gradient one of several kernels, but for a
// remainder, which is added to what the first one has left.
module {
  tt.func @kernel(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %x = tt.load %p {autodiff.site = 0 : i32} : !tt.ptr<f32>
    %y = tt.load %q {autodiff.site = 1 : i32} : !tt.ptr<f32>
    tt.return
  }
  tt.func @kernel_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                      %q: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // CHECK: remark: gradient: of argument 0, other kernels add to it
    autodiff.accumulate %p, %one {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    // CHECK: remark: gradient: of argument 1, this kernel's alone
    autodiff.accumulate %q, %one {argument = 1 : i32, site = 1 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
  tt.func @kernel_bwd_more(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                           %q: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 1>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    // CHECK: remark: gradient: of argument 0, other kernels add to it
    autodiff.accumulate %p, %one {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    // CHECK: remark: gradient: of argument 1, other kernels add to it
    autodiff.accumulate %q, %one remainder {argument = 1 : i32, site = 1 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
}

//--- changed.mlir

// A pass in between changes the kernel: programs no longer load by rows of 8,
// and their number is one number.
// CHECK: remark: shared: by programs along div(pid0, 8), by programs along rem(pid0, 8), owned by several
// CHECK: remark: shared: by programs along pid0, owned by several
module {
  tt.func @kernel(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %c8 = arith.constant 8 : i32
    %id = tt.get_program_id x : i32
    %row = arith.divsi %id, %c8 : i32
    %column = arith.remsi %id, %c8 : i32
    %pr = tt.addptr %q, %row : !tt.ptr<f32>, i32
    %unused = tt.load %pr : !tt.ptr<f32>
    %pc = tt.addptr %q, %column : !tt.ptr<f32>, i32
    %unused2 = tt.load %pc : !tt.ptr<f32>
    %x = tt.load %p {autodiff.site = 0 : i32} : !tt.ptr<f32>
    %pq = tt.addptr %q, %id : !tt.ptr<f32>, i32
    tt.store %pq, %x {autodiff.site = 1 : i32} : !tt.ptr<f32>
    tt.return
  }
  tt.func @kernel_bwd(%p: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>})
      attributes {autodiff.role = "backward"} {
    %one = arith.constant 1.0 : f32
    autodiff.accumulate %p, %one {argument = 0 : i32, site = 0 : i32} : !tt.ptr<f32>, f32
    tt.return
  }
}
