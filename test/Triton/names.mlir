// Values keep the names that Triton gives them, and their locations.
// RUN: triton-autodiff-opt %s | FileCheck %s
// RUN: triton-autodiff-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG

// CHECK: tt.func public @k(%x_ptr: !tt.ptr<f32>)
// CHECK: %value = tt.load %x_ptr
// DEBUG: %value = tt.load %x_ptr : !tt.ptr<f32> loc(#[[L:.*]])
// DEBUG: #[[F:.*]] = loc("kernel.py":3:9)
// DEBUG: #[[L]] = loc("value"(#[[F]]))
#loc = loc("kernel.py":1:0)
tt.func public @k(%x_ptr: !tt.ptr<f32> loc("x_ptr"(#loc))) {
  %value = tt.load %x_ptr : !tt.ptr<f32> loc("value"("kernel.py":3:9))
  tt.store %x_ptr, %value : !tt.ptr<f32>
  tt.return
}
