// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(tt.func(autodiff-pipeline-loads))' %s | FileCheck %s

// Six stages of 4 KiB ahead.
// CHECK-LABEL: tt.func @short_rows(
// CHECK: tt.num_stages = 7 : i32
tt.func @short_rows(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %size = arith.constant dense<1024> : tensor<1024xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = tt.splat %i : i32 -> tensor<1024xi32>
    %first = arith.muli %row, %size : tensor<1024xi32>
    %offsets = arith.addi %first, %range : tensor<1024xi32>
    %from = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %source = tt.addptr %from, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %source : tensor<1024x!tt.ptr<f32>>
    %to = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %target = tt.addptr %to, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %target, %x : tensor<1024x!tt.ptr<f32>>
  }
  tt.return
}

// 32 KiB for one of the programs that a processor has registers for.
// CHECK-LABEL: tt.func @long_rows(
// CHECK: tt.num_stages = 3 : i32
tt.func @long_rows(%p: tensor<8192x!tt.ptr<f32>>, %n: i32) -> tensor<8192xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8192xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<8192xf32>) : i32 {
    %x = tt.load %p : tensor<8192x!tt.ptr<f32>>
    %next = arith.addf %acc, %x : tensor<8192xf32>
    scf.yield %next : tensor<8192xf32>
  }
  tt.return %sum : tensor<8192xf32>
}

// Two stages of 256 KiB would not fit.
// CHECK-LABEL: tt.func @too_long(
// CHECK-NOT: tt.num_stages
tt.func @too_long(%p: tensor<65536x!tt.ptr<f32>>, %n: i32) -> tensor<65536xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<65536xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<65536xf32>) : i32 {
    %x = tt.load %p : tensor<65536x!tt.ptr<f32>>
    %next = arith.addf %acc, %x : tensor<65536xf32>
    scf.yield %next : tensor<65536xf32>
  }
  tt.return %sum : tensor<65536xf32>
}

// What an iteration stores, a later one may load.
// CHECK-LABEL: tt.func @written(
// CHECK-NOT: tt.num_stages
tt.func @written(%p: !tt.ptr<f32>, %n: i32) attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %here = tt.addptr %base, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %here : tensor<1024x!tt.ptr<f32>>
    %y = arith.addf %x, %x : tensor<1024xf32>
    tt.store %here, %y : tensor<1024x!tt.ptr<f32>>
  }
  tt.return
}

// Threads that wait for each other hand on something.
// CHECK-LABEL: tt.func @barrier(
// CHECK-NOT: tt.num_stages
tt.func @barrier(%p: tensor<1024x!tt.ptr<f32>>, %n: i32) -> tensor<1024xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
    gpu.barrier
    %next = arith.addf %acc, %x : tensor<1024xf32>
    scf.yield %next : tensor<1024xf32>
  }
  tt.return %sum : tensor<1024xf32>
}

// Triton pipelines inner loops only; what the user asked for stays.
// CHECK-LABEL: tt.func @nest(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {tt.num_stages = 2 : i32}
// CHECK: scf.yield
// CHECK-NEXT: {{^  }$}}
tt.func @nest(%p: tensor<1024x!tt.ptr<f32>>, %n: i32) -> tensor<1024xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %inner = scf.for %j = %c0 to %n step %c1 iter_args(%now = %acc) -> (tensor<1024xf32>) : i32 {
      %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
      %next = arith.addf %now, %x : tensor<1024xf32>
      scf.yield %next : tensor<1024xf32>
    } {tt.num_stages = 2 : i32}
    %y = tt.load %p : tensor<1024x!tt.ptr<f32>>
    %both = arith.addf %inner, %y : tensor<1024xf32>
    scf.yield %both : tensor<1024xf32>
  }
  tt.return %sum : tensor<1024xf32>
}

// Loops of products are pipelined by the kernel's options.
// CHECK-LABEL: tt.func @product(
// CHECK-NOT: tt.num_stages
tt.func @product(%p: tensor<64x64x!tt.ptr<f16>>, %n: i32) -> tensor<64x64xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
    %next = tt.dot %x, %x, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.return %sum : tensor<64x64xf32>
}

// The forward is the user's.
// CHECK-LABEL: tt.func @primal(
// CHECK-NOT: tt.num_stages
tt.func @primal(%p: tensor<1024x!tt.ptr<f32>>, %n: i32) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
    %next = arith.addf %acc, %x : tensor<1024xf32>
    scf.yield %next : tensor<1024xf32>
  }
  tt.return %sum : tensor<1024xf32>
}
