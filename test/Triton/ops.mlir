// Every operation in the form that Triton 3.6 prints.
// RUN: triton-autodiff-opt %s -o %t
// RUN: sed -n '/^module/,$p' %s | diff - %t

module {
  tt.func public @memory(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: tensor<64x!tt.ptr<f32>>, %arg2: tensor<64xi1>, %arg3: tensor<64xf32>) attributes {noinline = false} {
    %0 = tt.load %arg0 : !tt.ptr<f32>
    %1 = tt.load %arg1 {isVolatile = true} : tensor<64x!tt.ptr<f32>>
    %2 = tt.load %arg1, %arg2 cacheModifier = cg : tensor<64x!tt.ptr<f32>>
    %3 = tt.load %arg1, %arg2, %arg3 evictionPolicy = evict_last : tensor<64x!tt.ptr<f32>>
    %4 = tt.load %arg1, %arg2, %arg3 cacheModifier = ca evictionPolicy = evict_first {tt.latency = 2 : i32} : tensor<64x!tt.ptr<f32>>
    tt.store %arg0, %0 : !tt.ptr<f32>
    tt.store %arg1, %1, %arg2 : tensor<64x!tt.ptr<f32>>
    tt.store %arg1, %2, %arg2 cacheModifier = wt : tensor<64x!tt.ptr<f32>>
    tt.store %arg1, %3 cacheModifier = cs evictionPolicy = evict_first : tensor<64x!tt.ptr<f32>>
    tt.return
  }
  tt.func @pointers(%arg0: !tt.ptr<f16>, %arg1: tensor<8xi32>, %arg2: i64) {
    %0 = tt.splat %arg0 : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
    %1 = tt.addptr %0, %arg1 : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
    %2 = tt.addptr %arg0, %arg2 : !tt.ptr<f16>, i64
    %3 = tt.ptr_to_int %1 : tensor<8x!tt.ptr<f16>> -> tensor<8xi64>
    %4 = tt.int_to_ptr %arg2 : i64 -> !tt.ptr<f16>
    %5 = tt.bitcast %1 : tensor<8x!tt.ptr<f16>> -> tensor<8x!tt.ptr<i16>>
    tt.return
  }
  tt.func @block_pointers(%arg0: !tt.ptr<f16>, %arg1: i64, %arg2: i32) {
    %0 = tt.make_tensor_ptr %arg0, [%arg1, %arg1], [%arg1, %arg1], [%arg2, %arg2] {order = array<i32: 1, 0>} : <tensor<16x32xf16>>
    %1 = tt.advance %0, [%arg2, %arg2] : <tensor<16x32xf16>>
    %2 = tt.load %1 {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<16x32xf16>>
    tt.store %1, %2 cacheModifier = cs {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<16x32xf16>>
    tt.return
  }
  tt.func @descriptors(%arg0: !tt.ptr<f16>, %arg1: i32, %arg2: i64, %arg3: tensor<32xi32>) {
    %0 = tt.make_tensor_descriptor %arg0, [%arg1, %arg1], [%arg2, %arg2] {padding = 2 : i32} : <f16>, <tensor<1x64xf16>>
    %1 = tt.descriptor_load %0[%arg1, %arg1] cacheModifier = ca evictionPolicy = evict_last : !tt.tensordesc<tensor<1x64xf16>> -> tensor<1x64xf16>
    tt.descriptor_store %0[%arg1, %arg1], %1 : !tt.tensordesc<tensor<1x64xf16>>, tensor<1x64xf16>
    tt.descriptor_reduce add, %0[%arg1, %arg1], %1 : !tt.tensordesc<tensor<1x64xf16>>, tensor<1x64xf16>
    tt.descriptor_reduce min, %0[%arg1, %arg1], %1 : !tt.tensordesc<tensor<1x64xf16>>, tensor<1x64xf16>
    %2 = tt.descriptor_gather %0[%arg3, %arg1] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32) -> tensor<32x64xf16>
    tt.descriptor_scatter %0[%arg3, %arg1], %2 : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32>, i32, tensor<32x64xf16>
    tt.return
  }
  tt.func @atomics(%arg0: tensor<8x!tt.ptr<f32>>, %arg1: tensor<8xf32>, %arg2: tensor<8xi1>, %arg3: !tt.ptr<i32>, %arg4: i32) {
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %arg0, %arg1, %arg2 : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
    %1 = tt.atomic_rmw exch, acq_rel, sys, %arg3, %arg4 : (!tt.ptr<i32>, i32) -> i32
    %2 = tt.atomic_cas acquire, cta, %arg3, %arg4, %1 : (!tt.ptr<i32>, i32, i32) -> i32
    tt.return
  }
  tt.func @tiles(%arg0: f32, %arg1: tensor<4x8xf32>, %arg2: tensor<16xi1>) {
    %0 = tt.splat %arg0 : f32 -> tensor<1x1xf32>
    %1 = tt.unsplat %0 : tensor<1x1xf32>
    %2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %3 = tt.expand_dims %2 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %4 = tt.broadcast %3 : tensor<16x1xi32> -> tensor<16x4xi32>
    %5 = tt.reshape %4 : tensor<16x4xi32> -> tensor<64xi32>
    %6 = tt.reshape %4 allow_reorder efficient_layout : tensor<16x4xi32> -> tensor<64xi32>
    %7 = tt.trans %arg1 {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
    %8 = tt.cat %2, %2 : tensor<16xi32> -> tensor<32xi32>
    %9 = tt.join %arg1, %arg1 : tensor<4x8xf32> -> tensor<4x8x2xf32>
    %outLHS, %outRHS = tt.split %9 : tensor<4x8x2xf32> -> tensor<4x8xf32>
    %10 = tt.gather %arg1[%4] {axis = 0 : i32} : (tensor<4x8xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>
    %11 = tt.histogram %2, %arg2 : tensor<16xi32> -> tensor<8xi32>
    tt.return
  }
  tt.func @arithmetic(%arg0: tensor<8xf32>, %arg1: tensor<8xi32>) {
    %0 = tt.fp_to_fp %arg0, rounding = rtz : tensor<8xf32> -> tensor<8xf8E4M3FN>
    %1 = tt.fp_to_fp %0 : tensor<8xf8E4M3FN> -> tensor<8xf32>
    %2 = tt.clampf %1, %arg0, %arg0, propagateNan = all : tensor<8xf32>
    %3 = tt.precise_sqrt %2 : tensor<8xf32>
    %4 = tt.precise_divf %2, %3 : tensor<8xf32>
    %5 = tt.mulhiui %arg1, %arg1 : tensor<8xi32>
    %6 = tt.extern_elementwise %4 {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_tanhf"} : (tensor<8xf32>) -> tensor<8xf32>
    %7:2 = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,=r,r", packed_element = 2 : i32, pure = false} %6 : tensor<8xf32> -> tensor<8xf32>, tensor<8xi32>
    tt.return
  }
  tt.func @products(%arg0: tensor<32x64xf16>, %arg1: tensor<64x32xf16>, %arg2: tensor<32x32xf32>, %arg3: tensor<32x2xi8>, %arg4: tensor<2x32x64xf8E5M2>, %arg5: tensor<2x64x32xf8E5M2>, %arg6: tensor<2x32x32xf32>) {
    %0 = tt.dot %arg0, %arg1, %arg2 : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
    %1 = tt.dot %arg4, %arg5, %arg6, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : tensor<2x32x64xf8E5M2> * tensor<2x64x32xf8E5M2> -> tensor<2x32x32xf32>
    %2 = tt.dot_scaled %arg0 scale %arg3, %arg1, %0 lhs = fp16 rhs = fp16 {fastMath = false} : tensor<32x64xf16>, tensor<32x2xi8> * tensor<64x32xf16> -> tensor<32x32xf32>
    tt.return
  }
  tt.func @combining(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
    %0:2 = "tt.reduce"(%arg0, %arg1) <{axis = 0 : i32}> ({
    ^bb0(%arg2: f32, %arg3: i32, %arg4: f32, %arg5: i32):
      tt.reduce.return %arg2, %arg5 : f32, i32
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
    %1 = "tt.reduce"(%0#0) <{axis = 0 : i32}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      %4 = arith.addf %arg2, %arg3 : f32
      tt.reduce.return %4 : f32
    }) : (tensor<8xf32>) -> f32
    %2 = "tt.scan"(%arg0) <{axis = 1 : i32, reverse = true}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      %4 = arith.mulf %arg2, %arg3 : f32
      tt.scan.return %4 : f32
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "tt.map_elementwise"(%2, %arg1) <{pack = 1 : i32}> ({
    ^bb0(%arg2: f32, %arg3: i32):
      %4 = arith.sitofp %arg3 : i32 to f32
      tt.map_elementwise.return %4 : f32
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
    tt.return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
  }
  tt.func @programs(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>) {
    %0 = tt.get_program_id x : i32
    %1 = tt.get_num_programs z : i32
    %2 = arith.cmpi slt, %0, %1 : i32
    llvm.intr.assume %2 : i1
    tt.assert %arg0, "bound" : tensor<4xi1>
    tt.print " x: " {hex = false, isSigned = array<i32: 1, 0>} : %0, %arg1 : i32, tensor<4xf32>
    tt.print " nothing" {hex = true, isSigned = array<i32>}
    gpu.barrier
    tt.return
  }
  tt.func @calls(%arg0: i32) -> i32 attributes {noinline = false} {
    %0:2 = tt.call @"__main__.f__(1,)c"(%arg0) : (i32) -> (i32, i32)
    cf.br ^bb1(%0#1 : i32)
  ^bb1(%1: i32):  // pred: ^bb0
    tt.return %1 : i32
  }
  tt.func private @"__main__.f__(1,)c"(%arg0: i32) -> (i32, i32) attributes {noinline = true} {
    tt.return %arg0, %arg0 : i32, i32
  }
  tt.func @loops(%arg0: i32, %arg1: i32, %arg2: tensor<4xf32>) -> tensor<4xf32> {
    %0 = scf.for %arg3 = %arg0 to %arg1 step %arg0 iter_args(%arg4 = %arg2) -> (tensor<4xf32>)  : i32 {
      %1 = arith.addf %arg4, %arg4 {tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {tt.disallow_acc_multi_buffer, tt.num_stages = 3 : i32, tt.warp_specialize}
    tt.return %0 : tensor<4xf32>
  }
}

