// RUN: triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-options)' %s | FileCheck %s
// CHECK: autodiff.plan {
// CHECK-NEXT: autodiff.launch @small options {num_stages = 3 : i32, num_warps = 4 : i32}
// CHECK-NEXT: autodiff.launch @large options {num_stages = 2 : i32, num_warps = 8 : i32}
// CHECK-NEXT: autodiff.launch @alone options {num_stages = 1 : i32, num_warps = 8 : i32}
// CHECK-NEXT: autodiff.launch @long options {least_warps = 16 : i32}
// CHECK-NEXT: }

// 64×64 sums take few registers and 16 KiB a stage.
// CHECK-LABEL: tt.func @small(
tt.func @small(%a: tensor<64x64x!tt.ptr<f16>>, %n: i32) -> tensor<64x64xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.load %a : tensor<64x64x!tt.ptr<f16>>
    %y = tt.load %a : tensor<64x64x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.return %sum : tensor<64x64xf32>
}

// 256×128 sums need eight warps; a stage is 96 KiB.
// CHECK-LABEL: tt.func @large(
tt.func @large(%a: tensor<256x128x!tt.ptr<f16>>, %b: tensor<128x128x!tt.ptr<f16>>, %n: i32) -> tensor<256x128xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
    %x = tt.load %a : tensor<256x128x!tt.ptr<f16>>
    %y = tt.load %b : tensor<128x128x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<256x128xf16> * tensor<128x128xf16> -> tensor<256x128xf32>
    scf.yield %next : tensor<256x128xf32>
  }
  tt.return %sum : tensor<256x128xf32>
}

// 64×64 sums again, but of operands that fill more than half of a processor's
// shared memory: no other program is there for the registers.
// CHECK-LABEL: tt.func @alone(
tt.func @alone(%a: tensor<64x256x!tt.ptr<f32>>, %b: tensor<256x64x!tt.ptr<f32>>, %n: i32) -> tensor<64x64xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.load %a : tensor<64x256x!tt.ptr<f32>>
    %y = tt.load %b : tensor<256x64x!tt.ptr<f32>>
    %next = tt.dot %x, %y, %acc : tensor<64x256xf32> * tensor<256x64xf32> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.return %sum : tensor<64x64xf32>
}

// Without products, the forward's options stay where tiles are small.
// CHECK-LABEL: tt.func @none(
tt.func @none(%p: !tt.ptr<f32>) attributes {autodiff.role = "backward"} {
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %p, %x : !tt.ptr<f32>
  tt.return
}

// Three tiles of 16384 are live: 96 registers for each of 512 threads. Masks,
// addresses and what is broadcast do not count, nor do branches that are not
// taken together.
// CHECK-LABEL: tt.func @long(
tt.func @long(%p: tensor<16384x!tt.ptr<f32>>, %mask: tensor<16384xi1>, %one: tensor<1xf32>, %b: i1) attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<16384x!tt.ptr<f32>>
  %y = tt.load %p, %mask : tensor<16384x!tt.ptr<f32>>
  %scale = tt.broadcast %one : tensor<1xf32> -> tensor<16384xf32>
  %z = arith.mulf %x, %scale : tensor<16384xf32>
  %r = scf.if %b -> (tensor<16384xf32>) {
    %u = arith.mulf %z, %y : tensor<16384xf32>
    scf.yield %u : tensor<16384xf32>
  } else {
    %v = arith.addf %z, %y : tensor<16384xf32>
    scf.yield %v : tensor<16384xf32>
  }
  %s = arith.addf %r, %x : tensor<16384xf32>
  tt.store %p, %s, %mask : tensor<16384x!tt.ptr<f32>>
  tt.return
}
