// RUN: triton-autodiff-opt %s -split-input-file -verify-diagnostics -cpu-integer-bfloats | FileCheck %s

// Memory, constants, carried values, selections and signs hold the bits of a
// bf16: no value of the type is left for LLVM to round again.

// CHECK-NOT:     bf16
// CHECK-LABEL: llvm.func @bits(%{{.*}}: !llvm.ptr, %{{.*}}: i16, %{{.*}}: i1) -> i16
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(16256 : i16) : i16
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(dense<[16256, 16384]> : vector<2xi16>) : vector<2xi16>
// CHECK:         %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK:         llvm.br ^[[NEXT:.*]](%[[X]] : i16)
// CHECK:       ^[[NEXT]](%[[CARRIED:.*]]: i16):
// CHECK:         %[[SIGN:.*]] = llvm.mlir.constant(-32768 : i16) : i16
// CHECK:         %[[MINUS:.*]] = llvm.xor %[[CARRIED]], %[[SIGN]] : i16
// CHECK:         llvm.select %{{.*}}, %[[MINUS]], %[[ONE]] : i1, i16
// CHECK:         llvm.mlir.constant(dense<-32768> : vector<2xi16>) : vector<2xi16>
// CHECK:         llvm.xor %[[TWO]], %{{.*}} : vector<2xi16>
// CHECK:         llvm.atomicrmw xchg %{{.*}}, %{{.*}} monotonic : !llvm.ptr, i16
// CHECK-NOT:     bf16
llvm.func @bits(%place: !llvm.ptr, %other: bf16, %flag: i1) -> bf16 {
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  %two = llvm.mlir.constant(dense<[1.0, 2.0]> : vector<2xbf16>) : vector<2xbf16>
  %x = llvm.load %place : !llvm.ptr -> bf16
  llvm.br ^next(%x : bf16)
^next(%carried: bf16):
  %minus = llvm.fneg %carried : bf16
  %chosen = llvm.select %flag, %minus, %one : i1, bf16
  %both = llvm.fneg %two : vector<2xbf16>
  llvm.store %both, %place : vector<2xbf16>, !llvm.ptr
  %bits = llvm.bitcast %chosen : bf16 to i16
  %same = llvm.bitcast %bits : i16 to bf16
  %old = llvm.atomicrmw xchg %place, %same monotonic : !llvm.ptr, bf16
  llvm.return %old : bf16
}

// -----

llvm.func @sum(%x: bf16, %y: bf16) -> bf16 {
  // expected-error @+1 {{the CPU backend has no bf16 arithmetic here}}
  %sum = llvm.fadd %x, %y : bf16
  llvm.return %sum : bf16
}

// -----

llvm.func @rounded(%x: f32) -> bf16 {
  // expected-error @+1 {{the CPU backend has no bf16 arithmetic here}}
  %narrow = llvm.fptrunc %x : f32 to bf16
  llvm.return %narrow : bf16
}
