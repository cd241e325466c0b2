// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics

tt.func @f() {
  // expected-error @+1 {{custom op 'tt.no_such_thing' is unknown}}
  tt.no_such_thing
}

// -----

// expected-error @+1 {{a pointer to 'none' is not supported}}
tt.func @f(%p: !tt.ptr<none>) { tt.return }

// -----

// expected-error @+1 {{unknown address space "shared"}}
tt.func @f(%p: !tt.ptr<f32, "shared">) { tt.return }

// -----

// expected-error @+1 {{a block pointer needs a static shape}}
tt.func @f(%p: !tt.ptr<tensor<?xf32>>) { tt.return }

// -----

// expected-error @+1 {{expected a ranked tensor type of static shape}}
tt.func @f(%p: !tt.tensordesc<f32>) { tt.return }

// -----

// expected-error @+2 {{expected ::mlir::triton::CacheModifier to be one of: none, ca, cg, wb, cs, wt, cv}}
// expected-error @+1 {{failed to parse TT_CachePolicyAttr parameter 'cache_modifier'}}
tt.func @f() attributes {tt.x = #tt.cache_policy<cache_modifier = xx, eviction_policy = evict_last>} { tt.return }

// -----

tt.func @f(%x: f32) {
  // expected-error @+1 {{'ptr' must be a pointer, a tensor of pointers or a block pointer}}
  %0 = tt.load %x : f32
  tt.return
}

// -----

tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<4xi1>) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses: 'tensor<8xi1>' vs 'tensor<4xi1>'}}
  %0 = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %v: tensor<8xf32>, %m: tensor<4xi1>) {
  // expected-error @+1 {{mask is i1 of the pointer's shape}}
  "tt.store"(%p, %v, %m) : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<4xi1>) -> ()
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %v: f16) {
  // expected-error @+1 {{value has the pointer's element type}}
  "tt.store"(%p, %v) : (!tt.ptr<f32>, f16) -> ()
  tt.return
}

// -----

tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %v: f32) {
  // expected-error @+1 {{val has the pointer's element type}}
  %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %v : (tensor<8x!tt.ptr<f32>>, f32) -> f32
  tt.return
}

// -----

tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<4xi32>) {
  // expected-error @+1 {{must have the same shape}}
  %0 = tt.addptr %p, %o : tensor<8x!tt.ptr<f32>>, tensor<4xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{types of different widths}}
  %0 = tt.bitcast %x : tensor<8xf32> -> tensor<8xi16>
  tt.return
}

// -----

tt.func @f(%x: i64) {
  // expected-error @+1 {{cannot cast between a pointer and a non-pointer}}
  %0 = tt.bitcast %x : i64 -> !tt.ptr<f32>
  tt.return
}

// -----

tt.func @f(%x: f32) {
  // expected-error @+1 {{a narrowing conversion needs a rounding mode}}
  %0 = tt.fp_to_fp %x : f32 -> f8E5M2
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{only dimensions of size one can be repeated}}
  %0 = tt.broadcast %x : tensor<4xf32> -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{cannot change the number of elements}}
  %0 = tt.reshape %x : tensor<4xf32> -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{axis 2 is out of range}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.expand_dims %x {axis = 2 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{order is not a permutation}}
  %0 = tt.trans %x {order = array<i32: 0, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{the last dimension must have size two}}
  // expected-error @+1 {{failed to infer returned types}}
  %a, %b = tt.split %x : tensor<4x8xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{start (8) must be less than end (0)}}
  %0 = tt.make_range {end = 0 : i32, start = 8 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{has 8 values, the result type is 'tensor<4xi32>'}}
  %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<4xi32>
  tt.return
}

// -----

tt.func @f(%a: tensor<32x64xf16>, %b: tensor<32x64xf16>, %c: tensor<32x32xf32>) {
  // expected-error @+1 {{shapes do not fit}}
  %0 = tt.dot %a, %b, %c : tensor<32x64xf16> * tensor<32x64xf16> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<32x64xf16>, %b: tensor<2x64x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error @+1 {{needs operands of rank 2, or all of rank 3}}
  %0 = tt.dot %a, %b, %c : tensor<32x64xf16> * tensor<2x64x32xf16> -> tensor<32x32xf32>
  tt.return
}

// -----

// Two values of the first operand share an element along K.
tt.func @f(%a: tensor<32x64xi8>, %s: tensor<32x4xi8>, %b: tensor<64x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error @+1 {{shapes do not fit}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = fp16 {fastMath = false} : tensor<32x64xi8>, tensor<32x4xi8> * tensor<64x32xf16> -> tensor<32x32xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<2x32x64xf16>, %s: tensor<2x32x2xi8>, %b: tensor<4x64x32xf16>, %c: tensor<2x32x32xf32>) {
  // expected-error @+1 {{shapes do not fit}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = fp16 rhs = fp16 {fastMath = false} : tensor<2x32x64xf16>, tensor<2x32x2xi8> * tensor<4x64x32xf16> -> tensor<2x32x32xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{axis 2 is out of range}}
  %0 = "tt.reduce"(%a) <{axis = 2 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    tt.reduce.return %x : f32
  }) : (tensor<4x4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{the region must take two elements of each source}}
  %0 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%x: f32):
    tt.reduce.return %x : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  %0 = "tt.scan"(%a) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    // expected-error @+1 {{must return one element of each source}}
    tt.scan.return %x, %y : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  %0 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    // expected-error @+1 {{block with no terminator}}
    %1 = arith.addf %x, %y : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<8x8xf32>, %i: i32) {
  // expected-error @+1 {{needs 2 indices, got 1}}
  %0 = tt.descriptor_load %d[%i] : !tt.tensordesc<8x8xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<8x8xf32>, %i: i32) {
  // expected-error @+1 {{the descriptor's elements are 'f32', the tensor's 'f16'}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<8x8xf32> -> tensor<8x8xf16>
  tt.return
}

// -----

tt.func @f(%x: i32) {
  // expected-error @+1 {{'missing' is not a tt.func}}
  tt.call @missing(%x) : (i32) -> ()
  tt.return
}

// -----

tt.func private @g(%x: i64)
tt.func @f(%x: i32) {
  // expected-error @+1 {{has type '(i32) -> ()', 'g' has '(i64) -> ()'}}
  tt.call @g(%x) : (i32) -> ()
  tt.return
}

// -----

tt.func @f(%x: i32) -> i64 {
  // expected-error @+1 {{returns ('i32'), 'f' is declared to return ('i64')}}
  tt.return %x : i32
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{the region must end with tt.reduce.return}}
  %0 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    ub.unreachable
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{the region must take 2 element(s) of each source}}
  %0 = "tt.map_elementwise"(%a) <{pack = 2 : i32}> ({
  ^bb0(%x: f32):
    tt.map_elementwise.return %x : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<4x8xf32>, %r: tensor<4xi32>, %i: i32) {
  // expected-error @+1 {{blocks must be single rows}}
  %0 = tt.descriptor_gather %d[%r, %i] : (!tt.tensordesc<4x8xf32>, tensor<4xi32>, i32) -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @+1 {{the base points to 'f32', the blocks hold 'f16'}}
  %0 = tt.make_tensor_descriptor %p, [%n], [%s] : <f32>, <64xf16>
  tt.return
}

// -----

// A newer syntax is an error at its place.
tt.func @f(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{expected ':'}}
  %0 = tt.load %p future = 3 : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @map_elementwise_pack(%a: tensor<4xf32>) {
  // expected-error @+1 {{pack must be positive, got -8388608}}
  %0 = "tt.map_elementwise"(%a) <{pack = -8388608 : i32}> ({
  ^bb0(%x: f32):
    tt.map_elementwise.return %x : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @map_elementwise_large_pack(%a: tensor<4xf32>) {
  // expected-error @+1 {{the region must take 2147483647 element(s) of each source}}
  %0 = "tt.map_elementwise"(%a) <{pack = 2147483647 : i32}> ({
  ^bb0(%x: f32):
    tt.map_elementwise.return %x : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @inline_asm_packed(%a: tensor<4xi8>) {
  // expected-error @+1 {{packed_element must be positive, got 0}}
  %0 = tt.elementwise_inline_asm "nop" {constraints = "=r,r", packed_element = 0 : i32, pure = true} %a : tensor<4xi8> -> tensor<4xi8>
  tt.return
}

// -----

tt.func @f(%x: tensor<9223372036854775807xi32>) {
  // expected-error @+1 {{the result must have as many elements as both sources together}}
  %y = tt.cat %x, %x : tensor<9223372036854775807xi32> -> tensor<16xi32>
  tt.return
}

// -----

// It would be printed as a load with a mask.
tt.func @f(%p: !tt.ptr<i1>, %x: i1) {
  // expected-error @+1 {{other is given with a mask}}
  %0 = tt.load %p, , %x : !tt.ptr<i1>
  tt.return
}
