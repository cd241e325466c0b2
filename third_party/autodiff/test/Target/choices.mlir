// What is chosen for a target is its own: one kernel of each kind, for four.
//
// RUN: sed s/TARGET/sm_90/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-options,tt.func(autodiff-pipeline-loads))' | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: sed s/TARGET/sm_89/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-options,tt.func(autodiff-pipeline-loads))' | FileCheck %s --check-prefixes=CHECK,SM89
// RUN: sed s/TARGET/sm_100/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-options,tt.func(autodiff-pipeline-loads))' | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: sed s/TARGET/gfx942/ %s | triton-autodiff-opt --pass-pipeline='builtin.module(autodiff-choose-options,tt.func(autodiff-pipeline-loads))' | FileCheck %s --check-prefixes=CHECK,GFX942

// SM90: autodiff.launch @product options {num_stages = 3 : i32, num_warps = 4 : i32}
// SM89: autodiff.launch @product options {num_stages = 2 : i32, num_warps = 4 : i32}
// SM100: autodiff.launch @product options {num_stages = 3 : i32, num_warps = 4 : i32}
// GFX942: autodiff.launch @product options {num_stages = 2 : i32, num_warps = 4 : i32}
// SM90: autodiff.launch @wide options {{.*}}num_warps = 8 : i32
// SM89: autodiff.launch @wide options {{.*}}num_warps = 8 : i32
// SM100: autodiff.launch @wide options {{.*}}num_warps = 8 : i32
// GFX942: autodiff.launch @wide options {{.*}}num_warps = 4 : i32
// SM90: autodiff.launch @persistent grid [1, 1, 1] options {num_warps = 16 : i32}
// SM89: autodiff.launch @persistent grid [1, 1, 1] options {num_warps = 16 : i32}
// SM100: autodiff.launch @persistent grid [1, 1, 1] options {num_warps = 16 : i32}
// GFX942: autodiff.launch @persistent grid [1, 1, 1] options {num_warps = 8 : i32}
// CHECK: autodiff.launch @tiles options {least_warps = 16 : i32}

module attributes {autodiff.target = "TARGET"} {
autodiff.plan {
  autodiff.launch @persistent grid [1, 1, 1]
}

// A stage is 24 KiB. Half of a processor's shared memory holds four, or one; a
// further one is in registers where products take operands from these.
// CHECK-LABEL: tt.func @product(
tt.func @product(%a: tensor<64x64x!tt.ptr<f16>>, %b: tensor<64x128x!tt.ptr<f16>>, %n: i32) -> tensor<64x128xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %x = tt.load %a : tensor<64x64x!tt.ptr<f16>>
    %y = tt.load %b : tensor<64x128x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  tt.return %sum : tensor<64x128xf32>
}

// 256×128 sums are 32768 registers: eight warps, half as many of 64 lanes.
// CHECK-LABEL: tt.func @wide(
tt.func @wide(%a: tensor<256x16x!tt.ptr<f16>>, %b: tensor<16x128x!tt.ptr<f16>>, %n: i32) -> tensor<256x128xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32>) : i32 {
    %x = tt.load %a : tensor<256x16x!tt.ptr<f16>>
    %y = tt.load %b : tensor<16x128x!tt.ptr<f16>>
    %next = tt.dot %x, %y, %acc : tensor<256x16xf16> * tensor<16x128xf16> -> tensor<256x128xf32>
    scf.yield %next : tensor<256x128xf32>
  }
  tt.return %sum : tensor<256x128xf32>
}

// Few programs that go through rows: 16 warps for three tiles of 16384, half as
// many of 64 lanes, and as many loads ahead as hide the latency of a memory.
// CHECK-LABEL: tt.func @persistent(
tt.func @persistent(%p: tensor<16384x!tt.ptr<f32>>, %n: i32) -> tensor<16384xf32> attributes {autodiff.role = "backward"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16384xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16384xf32>) : i32 {
    %x = tt.load %p : tensor<16384x!tt.ptr<f32>>
    %square = arith.mulf %x, %x : tensor<16384xf32>
    %scaled = arith.mulf %square, %x : tensor<16384xf32>
    %next = arith.addf %acc, %scaled : tensor<16384xf32>
    scf.yield %next : tensor<16384xf32>
  }
  tt.return %sum : tensor<16384xf32>
}

// Tiles in any other kernel: warps of 32 threads, whatever those of the target.
// CHECK-LABEL: tt.func @tiles(
tt.func @tiles(%p: tensor<16384x!tt.ptr<f32>>) attributes {autodiff.role = "backward"} {
  %x = tt.load %p : tensor<16384x!tt.ptr<f32>>
  %y = tt.load %p : tensor<16384x!tt.ptr<f32>>
  %z = arith.mulf %x, %y : tensor<16384xf32>
  %s = arith.addf %z, %x : tensor<16384xf32>
  tt.store %p, %s : tensor<16384x!tt.ptr<f32>>
  tt.store %p, %y : tensor<16384x!tt.ptr<f32>>
  tt.return
}

// 4 KiB in an iteration, and 48, 15, 102 or 33 KiB on their way.
// CHECK-LABEL: tt.func @rows(
// SM90: tt.num_stages = 7 : i32
// SM89: tt.num_stages = 3 : i32
// SM100: tt.num_stages = 12 : i32
// GFX942: tt.num_stages = 6 : i32
tt.func @rows(%p: tensor<1024x!tt.ptr<f32>>, %n: i32) -> tensor<1024xf32> attributes {autodiff.role = "backward"} {
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

}
