//===- Target.h - The devices that kernels are derived for ------*- C++ -*-===//
//
// What a device takes, as data: one entry a device, each number with where it
// is from. No derived kernel leaves the compiler that its target does not take
// (autodiff-verify-target).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SUPPORT_TARGET_H
#define AUTODIFF_SUPPORT_TARGET_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Attribute of a module: the name of the target that its kernels are for.
constexpr llvm::StringLiteral kTargetAttr = "autodiff.target";

/// The fewest elements that a product may sum over. Where there are fewer,
/// Triton fills the matrix instruction with copies of them: sums come out
/// 2, 4, 8 or 16 times too large, or its passes fail. (The other two axes may
/// have any length: there, copies are rows and columns that nobody takes.)
struct LeastSums {
  /// Of operands of 8 and of 16 bits.
  int64_t bytes, halves;
  /// Of float32 that is rounded to TF32. As float32 it is not multiplied by
  /// matrix instructions, or by some that take one element at a time.
  int64_t tf32;
  int64_t doubles;
};

struct Target {
  llvm::StringLiteral name;
  LeastSums sums;
  /// Threads of a warp, and of a program at most.
  int64_t warpSize, mostThreads;
  /// Bytes of shared memory that a program may have at most.
  int64_t sharedMemory;

  bool isNvidia() const { return name.starts_with("sm_"); }
  int64_t getMostWarps() const { return mostThreads / warpSize; }
  /// The bytes of shared memory that products may take. Some are left for the
  /// conversion of layouts.
  int64_t getSharedMemoryOfProducts() const { return sharedMemory - 7 * 1024; }
  /// The fewest elements that such a product may sum over.
  int64_t getLeastSum(triton::DotOp dot) const;
  /// Whether a product sums over fewer.
  bool isTooShort(triton::DotOp dot) const;

  /// The target of this name, or the latest one that is older; null if the name
  /// is none of a device.
  static const Target *find(llvm::StringRef name);
  /// That of the module around an operation; sm_90 if it does not say.
  static const Target &of(Operation *op);
};

// Sums: `min_dot_size` of Triton 3.9 (backends/nvidia/compiler.py), confirmed
// by the instructions in the PTX that 3.6 to 3.9 make for sums over 1 to 32
// elements: m16n8k32 (8 bits), m16n8k16 (16), m16n8k8 (TF32), m8n8k4 (64). For
// sm_80 and sm_90, 3.6 and 3.7 take m16n8k16 or four m8n8k4 for float64. Where
// an operand comes of narrower elements in memory, indices and masks of it too,
// a thread has as many neighbours along the sum as 32 bits hold of these
// (`computeOrigBitWidth` in Triton's AccelerateMatmul.cpp), and four threads
// twice as many as the instruction takes for that: the sum may be no shorter.
// On AMD GPUs Triton multiplies short tiles without matrix instructions, but
// its passes fail where float32 is to be rounded to TF32 (16x16x8). Threads and
// shared memory: CUDA programming guide, "Technical Specifications per Compute
// Capability", and AMD's "CDNA 3 Instruction Set Architecture" (LDS). On the
// CPU, nothing of this limits a program; its tiles are divided as sm_90's.
constexpr Target kTargets[] = {
    // name, {bytes, halves, tf32, doubles}, warp, threads, shared memory
    {"sm_80", {32, 16, 8, 16}, 32, 1024, 163 * 1024},
    {"sm_89", {32, 16, 8, 4}, 32, 1024, 99 * 1024},
    {"sm_90", {32, 16, 8, 16}, 32, 1024, 227 * 1024},
    {"sm_100", {32, 16, 8, 4}, 32, 1024, 227 * 1024},
    {"sm_120", {32, 16, 8, 4}, 32, 1024, 99 * 1024},
    {"gfx942", {1, 1, 16, 1}, 64, 1024, 64 * 1024},
    {"cpu", {1, 1, 1, 1}, 1, INT64_MAX, 227 * 1024},
};

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_TARGET_H
