//===- Target.h - The devices that kernels are derived for ------*- C++ -*-===//
//
// What a device can do, as data: one entry for each device, each number with
// its unit and its source. Passes that choose (what to save, how to sum, tiles,
// warps, stages) ask here. autodiff-verify-target refuses derived kernels that
// their target cannot run.
//
// Sources. What the comments call
//   measured    was measured on an H100, by the command that is named beside
//   it.
//               Results are on the page that is named, too. Nobody has measured
//               it on the other devices.
//   documented  is from the vendor: for NVIDIA, the CUDA C++ Programming Guide
//               (Technical Specifications per Compute Capability; Throughput of
//               Native Arithmetic Instructions) and the data sheet of the board
//               that the entry names; for AMD, "AMD GPU specifications" of
//               ROCm's documentation, and the CDNA 3 white paper and
//               instruction set architecture.
//   scaled      is what was measured on the H100, in proportion to documented
//               numbers.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SUPPORT_TARGET_H
#define AUTODIFF_SUPPORT_TARGET_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Attribute of a module: the name of the target that its kernels are for.
constexpr llvm::StringLiteral kTargetAttr = "autodiff.target";

/// The fewest elements that a product may sum over. Triton fills the matrix
/// instruction with copies of shorter operands: sums come out 2, 4, 8 or 16
/// times too large, or its passes fail. (The other two axes may have any
/// length: copies there are rows and columns that nobody reads.)
struct LeastSums {
  /// For operands of 8 and of 16 bits.
  int64_t bytes, halves;
  /// For float32 that is rounded to TF32. Plain float32 is not multiplied by
  /// matrix instructions, or by some that take one element at a time.
  int64_t tf32;
  int64_t doubles;
};

/// What a processor (a streaming multiprocessor, a compute unit) shares among
/// the programs that run on it. Documented.
struct Processor {
  /// Registers of 32 bits.
  int64_t registers;
  /// In bytes.
  int64_t sharedMemory;
  /// Multiply-adds of float32 in a cycle, without the matrix unit.
  int64_t multiplyAdds;
};

/// How products are laid out in warps. Documented, and as Triton does it.
struct MatrixUnit {
  /// The rows and columns of a product for which operands are read from shared
  /// memory once. That is the tile of one instruction, if it reads them there.
  /// Otherwise it is the tile of a warp, which loads operands into registers.
  int64_t rows, columns;
  /// The fewest rows of a product of four warps, if each warp has rows of its
  /// own.
  int64_t rowsOfFourWarps;
  /// Whether warps load operands into registers. Then the first pipeline stage
  /// takes no shared memory: it is in registers while others are being loaded.
  /// Seen in what Triton 3.6 allocates for a product in 1, 2 and 3 stages
  /// (python/test/unit/test_target_choices.py).
  bool takesRegisters;
};

/// How many operations take as long as memory takes to move a byte: documented
/// peak rates divided by documented bandwidth.
struct Rates {
  /// Of the matrix unit, with operands of 16 bits.
  double multiplyAdds;
  /// Operations on float32 and on integers of 32 bits.
  double floats, integers;
  /// Exponentials and other instructions of the special function unit.
  double specials;
};

/// What hides the latency of memory, and what moving it takes, in bytes.
struct Traffic {
  /// How many bytes should be in flight to a processor. Measured: 48 KiB,
  /// `python benchmarks/run.py --only "layer norm"`; scaled by bandwidth for
  /// each processor. See docs/decisions/reading-ahead.md.
  int64_t onItsWay;
  /// How many bytes a program may read ahead at most. Measured: 128 KiB,
  /// `--only recurrence`; scaled by shared memory. See
  /// docs/decisions/reading-ahead.md.
  int64_t mostAhead;
  /// The bytes that are moved in the time of the additional launches of
  /// autodiff-tally-sums. Measured: 16 MiB, `--only embedding`; scaled by
  /// bandwidth. See docs/decisions/embedding-tally.md.
  int64_t ofTally;
  /// The smallest transfer of memory, in bytes. Documented.
  int64_t sector;
};

struct Target {
  llvm::StringLiteral name;
  LeastSums sums;
  /// Threads of a warp (lanes of a wave), and the most threads of a program.
  /// Documented.
  int64_t warpSize, mostThreads;
  /// The most bytes of shared memory of a program. Documented.
  int64_t sharedMemory;
  Processor processor;
  MatrixUnit matrixUnit;
  Rates rates;
  Traffic traffic;

  //===--------------------------------------------------------------------===//
  // The same for all devices, since nobody has measured others
  //===--------------------------------------------------------------------===//

  /// Registers of a thread at which a processor still has enough warps to hide
  /// latencies. Measured: with twice as many it has not, `--only norm`. See
  /// docs/decisions/persistent-programs.md.
  static constexpr int64_t kRegistersPerThread = 128;
  /// How many of a thread's registers hold addresses. An estimate.
  static constexpr int64_t kAddressesPerThread = 8;
  /// How many of the 255 registers of a thread (256 on AMD, without those that
  /// only matrix instructions use) can hold elements of products. Measured:
  /// `--only attention`. See docs/decisions/attention-tiles.md.
  static constexpr int64_t kElementsPerThread = 192;
  /// The most elements of a tile that a thread should have, where there are no
  /// products. Measured: `python -m arena`, grpo of liger. See
  /// docs/decisions/elements-of-thread.md.
  static constexpr int64_t kElementsOfTilePerThread = 32;
  /// The most registers of a thread, plus one: a processor's registers divided
  /// by the threads of a program that uses all of them. Documented.
  static constexpr int64_t kMostRegistersPerThread = 256;
  /// The number of warps that Triton uses by default.
  static constexpr int64_t kUsualWarps = 4;
  /// How many programs of a processor sum in registers for others: at least
  /// kFewestPrograms, or kFewestWarps warps, and at most kMostPrograms. There
  /// are more than the least only while each sums for kSummedForMost others.
  /// Measured: `--only norm`. See docs/decisions/persistent-programs.md.
  static constexpr int64_t kFewestPrograms = 2, kFewestWarps = 8,
                           kMostPrograms = 4, kSummedForMost = 128;
  /// How much elementwise arithmetic memory accesses hide: this many times what
  /// an operation takes. Measured: a quarter is noticeable, `--only
  /// elementwise`. See docs/decisions/arithmetic-costs.md.
  static constexpr double kHiddenArithmetic = 4;
  /// The rows of a product that a warp multiplies at a time (m16n8k16 and its
  /// like, a warp's part of wgmma, MFMA of 16 rows). Documented.
  static constexpr int64_t kRowsOfWarp = 16;
  /// The length of a step along the summed axis in a loop of products, and the
  /// number of rows or columns beyond which a longer product does not pay.
  /// Measured: `--only matmul`. See docs/decisions/product-tiles.md.
  static constexpr int64_t kAdvance = 64, kLongestProduct = 256;
  /// The most pipeline stages of a loop of products. Measured: a fourth does
  /// not help, `--only matmul`. See docs/decisions/product-tiles.md.
  static constexpr int kMostStagesOfProducts = 3;
  /// Pipeline stages of other loops. Measured: two wait for each other, `--only
  /// "layer norm"`, and twelve are enough, `--only recurrence`. See
  /// docs/decisions/reading-ahead.md.
  static constexpr int kFewestStages = 3, kMostStages = 12;
  /// The shortest piece into which autodiff-divide-tiles cuts the tiles of
  /// products. An estimate.
  static constexpr int64_t kShortestPiece = 32;
  /// How many loads, with the arithmetic on their results, take as long as an
  /// atomic addition. Measured: three loads for each contribution take a third
  /// of the time of atomics, five 1.4 times as long (`--only convolution`). See
  /// docs/decisions/overlapping-windows.md.
  static constexpr int64_t kLoadsOfAtomic = 4;
  /// How many elements are moved in the time of an atomic addition to an
  /// address that others add to. An estimate, confirmed by `--only norm`. See
  /// docs/decisions/persistent-programs.md.
  static constexpr int64_t kMovedOfAtomic = 8;
  /// The fewest lanes for which a loop that sums them is faster than an atomic
  /// addition each. An estimate, confirmed by `--only "group norm"`. See
  /// docs/decisions/summed-runs.md.
  static constexpr int64_t kShortestRun = 64;
  /// For autodiff-tally-sums: the elements of a group of blocks that get
  /// several additions, and the groups of a program. 32 groups take twice as
  /// long where some blocks are shared, 2 where none is. Measured: `--only
  /// embedding`. See docs/decisions/embedding-tally.md.
  static constexpr int64_t kElementsOfGroup = 2048, kGroups = 8;
  /// The most cycles of multiply-adds without the matrix unit for a product
  /// that is too short for it; longer ones are padded with zeros. An estimate,
  /// which `python benchmarks/short_products.py` measures. See
  /// docs/decisions/short-products.md.
  static constexpr int64_t kCyclesOfShortProduct = 32;

  //===--------------------------------------------------------------------===//

  bool isNvidia() const { return name.starts_with("sm_"); }
  int64_t getMostWarps() const { return mostThreads / warpSize; }
  /// The bytes of shared memory that products may take. The rest is for the
  /// conversion of layouts.
  int64_t getSharedMemoryOfProducts() const { return sharedMemory - 7 * 1024; }
  /// The same if two programs are to share a processor, so that one computes
  /// while the other waits. Measured: `--only attention`. See
  /// docs/decisions/attention-tiles.md.
  int64_t getSharedMemoryOfTwo() const {
    return processor.sharedMemory / 2 - 6 * 1024;
  }
  /// The fewest warps that can use all of a processor's registers.
  int64_t getWarpsOfAllRegisters() const {
    return processor.registers / (kMostRegistersPerThread * warpSize);
  }
  /// The elements of products that `warps` warps can hold.
  int64_t getElementsOf(int64_t warps) const {
    return warps * warpSize * kElementsPerThread;
  }
  /// The longest row, in elements of a tile, that is held in registers together
  /// with its gradient. With sums over all rows (weights of a norm) twice as
  /// many spill; without, longer ones do not pay. Measured: 8192 and 16384,
  /// `--only norm` and `--only softmax`; scaled by registers. See
  /// docs/decisions/batched-loops.md.
  int64_t getLongestRow(bool besideSums) const {
    return processor.registers / (besideSums ? 8 : 4);
  }
  /// The registers that tiles may need before they are cut into pieces:
  /// compilers find an order of operations that fits. And the registers of a
  /// piece, so that several programs fit. Measured: 128 Ki and 16 Ki, `--only
  /// "group norm"`; scaled. See docs/decisions/pieces-of-tiles.md.
  int64_t getMostRegisters() const { return 2 * processor.registers; }
  int64_t getRegistersOfPiece() const { return processor.registers / 4; }
  /// The cost of a special function, in bytes that could be moved in the time
  /// that is noticeable beside memory accesses.
  double getBytesOfSpecial() const {
    return 1 / (rates.specials * kHiddenArithmetic);
  }
  /// The most multiply-adds of a product that is computed without the matrix
  /// unit, since it is too short for it.
  int64_t getMostMultiplyAdds() const {
    return kCyclesOfShortProduct * processor.multiplyAdds;
  }
  /// The most programs along an axis of the grid. Documented; AMD's and the
  /// CPU's launches would take more.
  static int64_t getMostPrograms(unsigned axis) {
    return axis == 0 ? std::numeric_limits<int32_t>::max() : 65535;
  }
  /// The fewest elements that a product of this type may sum over.
  int64_t getLeastSum(triton::DotOp dot) const;
  /// Whether a product sums over fewer elements than that.
  bool isTooShort(triton::DotOp dot) const;

  /// The target of this name, or the latest older one; null if the name is no
  /// device's.
  static const Target *find(llvm::StringRef name);
  /// The target of the module around an operation; sm_90 if it does not say.
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
// its passes fail where float32 is to be rounded to TF32 (16x16x8).
//
// Boards, with bandwidth, processors, clock, and 16-bit multiply-adds with sums
// in float32, from their data sheets:
//   sm_80   A100 80GB SXM  2039 GB/s  108  1.41 GHz   156 T/s
//   sm_89   RTX 4090       1008 GB/s  128  2.52 GHz    83 T/s
//   sm_90   H100 SXM       3350 GB/s  132  1.83 GHz   495 T/s
//   sm_100  B200           8000 GB/s  148  1.85 GHz  1125 T/s
//   sm_120  RTX 5090       1792 GB/s  170  2.41 GHz   105 T/s
//   gfx942  MI300X         5300 GB/s  304  2.10 GHz   654 T/s
// In a cycle, a processor does 128 operations on float32 (sm_80, and gfx942
// without packing: 64), 64 on integers (sm_120: 128), and 16 exponentials. The
// rates of sm_90 are rounded to what its choices were measured with.
//
// A processor of gfx942 has 512 KiB of registers: 512 in each of four times 64
// lanes. On the CPU, nothing of this limits a program. It gets the kernels of
// sm_90, but for the shortest sums: what is tested there is what runs on GPUs.
constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;
constexpr Target kTargets[] = {
    {"sm_80",
     /*sums=*/{32, 16, 8, 16},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/163 * kKiB,
     /*processor=*/{64 * 1024, 164 * kKiB, 64},
     /*matrixUnit=*/{64, 64, 16, true},
     /*rates=*/{76, 4.8, 4.8, 1.2},
     /*traffic=*/{36 * kKiB, 92 * kKiB, 10 * kMiB, 32}},
    {"sm_89",
     /*sums=*/{32, 16, 8, 4},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/99 * kKiB,
     /*processor=*/{64 * 1024, 100 * kKiB, 128},
     /*matrixUnit=*/{64, 64, 16, true},
     /*rates=*/{82, 41, 20, 5.1},
     /*traffic=*/{15 * kKiB, 56 * kKiB, 5 * kMiB, 32}},
    {"sm_90",
     /*sums=*/{32, 16, 8, 16},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/227 * kKiB,
     /*processor=*/{64 * 1024, 228 * kKiB, 128},
     /*matrixUnit=*/{64, 256, 64, false},
     /*rates=*/{150, 8, 4, 1},
     /*traffic=*/{48 * kKiB, 128 * kKiB, 16 * kMiB, 32}},
    {"sm_100",
     /*sums=*/{32, 16, 8, 4},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/227 * kKiB,
     /*processor=*/{64 * 1024, 228 * kKiB, 128},
     /*matrixUnit=*/{128, 256, 64, false},
     /*rates=*/{140, 4.4, 2.2, 0.55},
     /*traffic=*/{102 * kKiB, 128 * kKiB, 38 * kMiB, 32}},
    {"sm_120",
     /*sums=*/{32, 16, 8, 4},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/99 * kKiB,
     /*processor=*/{64 * 1024, 100 * kKiB, 128},
     /*matrixUnit=*/{64, 64, 16, true},
     /*rates=*/{58, 29, 29, 3.7},
     /*traffic=*/{20 * kKiB, 56 * kKiB, 9 * kMiB, 32}},
    {"gfx942",
     /*sums=*/{1, 1, 16, 1},
     /*warpSize=*/64,
     /*mostThreads=*/1024,
     /*sharedMemory=*/64 * kKiB,
     /*processor=*/{128 * 1024, 64 * kKiB, 64},
     /*matrixUnit=*/{64, 64, 16, true},
     /*rates=*/{123, 7.7, 7.7, 1.9},
     /*traffic=*/{33 * kKiB, 36 * kKiB, 25 * kMiB, 64}},
    {"cpu",
     /*sums=*/{1, 1, 1, 1},
     /*warpSize=*/32,
     /*mostThreads=*/1024,
     /*sharedMemory=*/227 * kKiB,
     /*processor=*/{64 * 1024, 228 * kKiB, 128},
     /*matrixUnit=*/{64, 256, 64, false},
     /*rates=*/{150, 8, 4, 1},
     /*traffic=*/{48 * kKiB, 128 * kKiB, 16 * kMiB, 32}},
};

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_TARGET_H
