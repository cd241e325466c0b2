// RUN: triton-autodiff-opt %s -cpu-split-kernels=longest=2 | FileCheck %s

// Four loops are too many. Equal nests are one function, of the values and
// buffers that they use; constants they have for themselves. Buffers do not
// overlap.

// CHECK:      func.func private @long.part0(
// CHECK-SAME:   %{{.*}}: f32, %[[TO:.*]]: memref<16xf32> {llvm.align = 64 : i64, llvm.noalias}
// CHECK:        arith.constant 16 : index
// CHECK:        scf.for
// CHECK:          memref.store %{{.*}}, %[[TO]]
// CHECK:      func.func private @long.part1(
// CHECK-SAME:   -> f32
// CHECK:        %[[SUM:.*]] = scf.for
// CHECK:        return %[[SUM]] : f32
// CHECK-NOT:  @long.part2

// CHECK-LABEL: func.func @long(
// CHECK:        %[[A:.*]] = memref.alloca()
// CHECK:        %[[B:.*]] = memref.alloca()
// CHECK:        call @long.part0(%{{.*}}, %[[A]])
// CHECK:        call @long.part0(%{{.*}}, %[[B]])
// CHECK:        %[[X:.*]] = call @long.part1(%{{.*}}, %[[A]])
// CHECK:        %[[Y:.*]] = call @long.part1(%{{.*}}, %[[B]])
// CHECK:        arith.addf %[[X]], %[[Y]]
func.func @long(%x: f32, %y: f32) -> f32 {
  %a = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
  %b = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %x, %a[%i] : memref<16xf32>
  }
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %y, %b[%i] : memref<16xf32>
  }
  %s = scf.for %i = %c0 to %c16 step %c1 iter_args(%r = %x) -> f32 {
    %v = memref.load %a[%i] : memref<16xf32>
    %n = arith.addf %r, %v : f32
    scf.yield %n : f32
  }
  %t = scf.for %i = %c0 to %c16 step %c1 iter_args(%r = %y) -> f32 {
    %v = memref.load %b[%i] : memref<16xf32>
    %n = arith.addf %r, %v : f32
    scf.yield %n : f32
  }
  %sum = arith.addf %s, %t : f32
  return %sum : f32
}

// CHECK-LABEL: func.func @short
// CHECK-NOT:    call
func.func @short(%x: f32) {
  %a = memref.alloca() : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %x, %a[%i] : memref<16xf32>
  }
  return
}

// Where a part of a buffer comes in, the function would not know that it
// overlaps: the nest stays.

// CHECK-LABEL: func.func @views
// CHECK:        memref.subview
// CHECK:        scf.for
func.func @views(%n: index, %x: f32) {
  %a = memref.alloca() : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %v = memref.subview %a[%n] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: ?>>
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %x, %v[%i] : memref<8xf32, strided<[1], offset: ?>>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %x, %v[%i] : memref<8xf32, strided<[1], offset: ?>>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %x, %v[%i] : memref<8xf32, strided<[1], offset: ?>>
  }
  return
}
