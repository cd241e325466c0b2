// What Triton 3.9 prints in another form than 3.6, or did not have before.
// RUN: triton-autodiff-opt %s -o %t
// RUN: sed -n '/^module/,$p' %s | diff - %t

module {
  tt.func @cache_policies(%arg0: tensor<64x!tt.ptr<f32>>, %arg1: tensor<64xi1>, %arg2: !tt.tensordesc<4x8xf32>, %arg3: i32) {
    %0 = tt.load %arg0, %arg1 {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : tensor<64x!tt.ptr<f32>>
    tt.store %arg0, %0, %arg1 {cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>} : tensor<64x!tt.ptr<f32>>
    %1 = tt.descriptor_load %arg2[%arg3, %arg3] {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
    tt.return
  }
  tt.func @descriptors(%arg0: !tt.ptr<i32>, %arg1: i32, %arg2: i64) {
    %0 = tt.make_tensor_descriptor %arg0, [%arg1, %arg1], [%arg2, %arg2] : <i32>, <1x64xsi32>
    %1 = tt.descriptor_load %0[%arg1, %arg1] : !tt.tensordesc<1x64xsi32> -> tensor<1x64xi32>
    tt.descriptor_reduce xor, %0[%arg1, %arg1], %1 : !tt.tensordesc<1x64xsi32>, tensor<1x64xi32>
    tt.return
  }
  tt.func @atomics(%arg0: tensor<8x!tt.ptr<i32>>, %arg1: tensor<8xi1>, %arg2: !tt.ptr<i32>, %arg3: i32, %arg4: i64) {
    %0 = tt.atomic_load acquire, gpu, %arg0, %arg1 : (tensor<8x!tt.ptr<i32>>, tensor<8xi1>) -> tensor<8xi32>
    %1 = tt.atomic_load relaxed, sys, %arg2 : (!tt.ptr<i32>) -> i32
    tt.atomic_store release, gpu, %arg0, %0, %arg1 : tensor<8x!tt.ptr<i32>>
    tt.atomic_store relaxed, cta, %arg2, %1 : !tt.ptr<i32>
    %2 = tt.atomic_poll acquire, gpu, %arg2, %arg3 : !tt.ptr<i32>, i32 -> i1
    %3 = tt.atomic_poll relaxed, gpu, %arg2, %arg3 timeout %arg4 : !tt.ptr<i32>, i32 -> i1
    tt.return
  }
  tt.func @others(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = tt.approx_divf %arg0, %arg0 : tensor<8xf32>
    tt.grid_dependency_wait
    tt.grid_dependency_launch_dependents
    ttg.barrier all
    ttg.barrier local|global_read
    tt.return %0 : tensor<8xf32>
  }
}

