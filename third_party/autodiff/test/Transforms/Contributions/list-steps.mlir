// RUN: triton-autodiff-opt %s -split-input-file -autodiff-list-steps | FileCheck %s

// Numbers and memory first, the kernels in order, and gradients of what they
// leave. As many partial sums of several tensors are added up together, but for
// a type to which PyTorch rounds otherwise.
// CHECK-LABEL: autodiff.plan
// CHECK: autodiff.launch @sums_bwd
// CHECK-NEXT: autodiff.step forward copy [#autodiff.operand<argument 0>]
// CHECK-NEXT: autodiff.step forward allocate [#autodiff.operand<buffer 0>]
// CHECK-NEXT: autodiff.step forward launch_forward @sums_fwd
// CHECK-NEXT: autodiff.step forward keep [#autodiff.operand<argument 0>]
// CHECK-NEXT: autodiff.step forward save [#autodiff.operand<buffer 0>]
// CHECK-NEXT: autodiff.step prepare lay_out [#autodiff.operand<cotangent 4>]
// CHECK-NEXT: autodiff.step prepare evaluate [#autodiff.operand<size 0>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 1>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 2>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 3>]
// CHECK-NEXT: autodiff.step launch launch @sums_bwd
// CHECK-NEXT: autodiff.step finish add_up [#autodiff.operand<gradient 1>, #autodiff.operand<gradient 2>]
// CHECK-NEXT: autodiff.step finish add_up [#autodiff.operand<gradient 3>]
// CHECK-NEXT: autodiff.step finish convert [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step finish return
// CHECK-SAME: [#autodiff.operand<gradient 0>, #autodiff.operand<gradient 1>, #autodiff.operand<gradient 2>, #autodiff.operand<gradient 3>]
// CHECK-NEXT: }
autodiff.plan {
  autodiff.buffer 0 <saved "saved0" : f32, grid0>
  autodiff.host_size 0 <grid0>
  autodiff.gradient <store 0 : f32 init = none returned = true>
  autodiff.gradient <partial 1 : f32 init = none partials grid0 returned = true>
  autodiff.gradient <partial 2 : f32 init = none partials grid0 returned = true>
  autodiff.gradient <partial 3 : f32 init = none partials grid0 returned = true>
  autodiff.launch @sums_fwd
  autodiff.launch @sums_bwd
}
tt.func public @sums(%x: !tt.ptr<f32>, %w: !tt.ptr<f16>, %b: !tt.ptr<f16>, %s: !tt.ptr<f8E5M2>, %y: !tt.ptr<f32>) { tt.return }
tt.func @sums_fwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                  %w: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 1>},
                  %m: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>})
    attributes {autodiff.role = "forward"} { tt.return }
tt.func @sums_bwd(%x: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<argument 0>},
                  %m: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>},
                  %n: i32 {autodiff.operand = #autodiff.operand<size 0>},
                  %cy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<cotangent 4>},
                  %dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>},
                  %dw: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 1>},
                  %db: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 2>},
                  %ds: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 3>})
    attributes {autodiff.role = "backward"} { tt.return }

// -----

// A tape's length is counted first. A sum whose additions are counted is rounded
// afterwards; an integer argument is not copied.
// CHECK-LABEL: autodiff.plan
// CHECK: autodiff.step forward copy [#autodiff.operand<argument 0>]
// CHECK-NEXT: autodiff.step forward launch_forward @loop
// CHECK-NEXT: autodiff.step forward keep [#autodiff.operand<argument 0>]
// CHECK-NEXT: autodiff.step prepare lay_out [#autodiff.operand<cotangent 1>]
// CHECK-NEXT: autodiff.step prepare count @loop_count
// CHECK-NEXT: autodiff.step prepare allocate [#autodiff.operand<buffer 0>]
// CHECK-NEXT: autodiff.step prepare stand_in_for [#autodiff.operand<rounded 0>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step prepare make [#autodiff.operand<gradient 1>]
// CHECK-NEXT: autodiff.step launch tally [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step launch launch @loop_bwd
// CHECK-NEXT: autodiff.step launch round [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step finish convert [#autodiff.operand<gradient 0>]
// CHECK-NEXT: autodiff.step finish convert [#autodiff.operand<gradient 1>]
// CHECK-NEXT: autodiff.step finish return [#autodiff.operand<gradient 0>]
autodiff.plan {
  autodiff.buffer 0 <tape "tape0" : f32, counted(0)>
  autodiff.gradient <atomic 0 : f32 init = zero returned = true>
  autodiff.gradient <store 1 : f32 init = cotangent>
  autodiff.launch @loop_count
  autodiff.launch @loop_bwd
  autodiff.launch @loop_tally
}
tt.func public @loop(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %n: i32) { tt.return }
tt.func @loop_count(%n: i32 {autodiff.operand = #autodiff.operand<argument 2>},
                    %c: !tt.ptr<i32> {autodiff.operand = #autodiff.operand<counters 0>})
    attributes {autodiff.role = "count"} { tt.return }
tt.func @loop_bwd(%x: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<argument 0>},
                  %n: i32 {autodiff.operand = #autodiff.operand<argument 2>},
                  %t: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<buffer 0>},
                  %dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>},
                  %rx: !tt.ptr<f16> {autodiff.operand = #autodiff.operand<rounded 0>},
                  %dy: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 1>})
    attributes {autodiff.role = "backward"} { tt.return }
tt.func @loop_tally(%dx: !tt.ptr<f32> {autodiff.operand = #autodiff.operand<gradient 0>})
    attributes {autodiff.role = "tally"} { tt.return }
