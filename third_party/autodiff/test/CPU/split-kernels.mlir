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

// Two calls and what is between them are a function, too, which returns what
// is used behind it; the next two another one.

// CHECK:      func.func private @long.part2(
// CHECK-SAME:   %[[X:.*]]: f32, %[[A:.*]]: memref<16xf32> {llvm.align = 64 : i64, llvm.noalias},
// CHECK-SAME:   %[[Y:.*]]: f32, %[[B:.*]]: memref<16xf32> {llvm.align = 64 : i64, llvm.noalias})
// CHECK-NEXT:   call @long.part0(%[[X]], %[[A]])
// CHECK-NEXT:   call @long.part0(%[[Y]], %[[B]])
// CHECK:      func.func private @long.part3(
// CHECK:        %[[S:.*]] = call @long.part1(
// CHECK:        %[[P:.*]] = arith.mulf %[[S]],
// CHECK:        %[[T:.*]] = call @long.part1(%[[P]],
// CHECK:        return %[[P]], %[[T]] : f32, f32

// CHECK-LABEL: func.func @long(
// CHECK:        %[[A:.*]] = memref.alloca()
// CHECK:        %[[B:.*]] = memref.alloca()
// CHECK:        call @long.part2(%{{.*}}, %[[A]], %{{.*}}, %[[B]])
// CHECK:        %[[ST:.*]]:2 = call @long.part3(
// CHECK:        arith.addf %[[ST]]#0, %[[ST]]#1
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
  %p = arith.mulf %s, %s : f32
  %t = scf.for %i = %c0 to %c16 step %c1 iter_args(%r = %p) -> f32 {
    %v = memref.load %b[%i] : memref<16xf32>
    %n = arith.addf %r, %v : f32
    scf.yield %n : f32
  }
  %sum = arith.addf %p, %t : f32
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
