// RUN: triton-autodiff-opt %s | FileCheck %s
// RUN: triton-autodiff-opt %s | triton-autodiff-opt | FileCheck %s

// CHECK-LABEL: tt.func public @pointers
// CHECK-SAME: %{{.*}}: !tt.ptr<f32> {tt.divisibility = 16 : i32}
// CHECK-SAME: %{{.*}}: !tt.ptr<i1>, %{{.*}}: !tt.ptr<f8E5M2>, %{{.*}}: !tt.ptr<f16, 3>
// CHECK-SAME: %{{.*}}: tensor<4x!tt.ptr<bf16>>, %{{.*}}: !tt.ptr<!tt.ptr<f32>>
// CHECK-SAME: %{{.*}}: !tt.ptr<tensor<8x16xf64>>
tt.func public @pointers(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i1>,
    %c: !tt.ptr<f8E5M2>, %d: !tt.ptr<f16, 3>, %e: tensor<4x!tt.ptr<bf16, 1>>,
    %f: !tt.ptr<!tt.ptr<f32>>, %g: !tt.ptr<tensor<8x16xf64>>) attributes {noinline = false} {
  tt.return
}

// CHECK-LABEL: tt.func @constant
// CHECK-SAME: %{{.*}}: !tt.ptr<f32, "constant">, %{{.*}}: !tt.ptr<f32>)
tt.func @constant(%a: !tt.ptr<f32, "constant">, %b: !tt.ptr<f32, "global">) {
  tt.return
}

// Both ways of writing a descriptor's type, each kept.
// CHECK-LABEL: tt.func @descriptors
// CHECK-SAME: !tt.tensordesc<tensor<64x32xf16>>, %{{.*}}: !tt.tensordesc<64x32xf16>
// CHECK-SAME: !tt.tensordesc<tensor<4xsi8>>, %{{.*}}: !tt.tensordesc<4xui8>
tt.func @descriptors(%a: !tt.tensordesc<tensor<64x32xf16>>, %b: !tt.tensordesc<64x32xf16>,
    %c: !tt.tensordesc<tensor<4xsi8>>, %d: !tt.tensordesc<4xui8>) {
  tt.return
}

// CHECK: #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>
tt.func @attributes() attributes {tt.x = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>} {
  tt.return
}
