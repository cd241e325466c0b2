//===- Runtime.cpp - What generated code calls ----------------------------===//

#include "Runtime.h"

#include "autodiff/Support/Mutation.h"
#include "llvm/ADT/bit.h"

#include <cinttypes>
#include <cstdio>

using namespace mlir::autodiff::cpu;
namespace mutation = mlir::autodiff::mutation;

/// The program that a message comes from, in Triton's format.
static std::string describeProgram(const ProgramContext &context) {
  char text[64];
  std::snprintf(text, sizeof(text), "pid (%d, %d, %d)", context.programId[0],
                context.programId[1], context.programId[2]);
  return text;
}

static void failAssertion(ProgramContext *context, const char *message) {
  LaunchState &launch = *context->launch;
  std::lock_guard<std::mutex> lock(launch.mutex);
  if (launch.failure.empty() && !mutation::isMade("cpu-assert:nothing is said"))
    launch.failure = std::string(message) + " in " + describeProgram(*context);
}

static void printText(ProgramContext *context, const char *prefix) {
  std::printf("%s %s\n", describeProgram(*context).c_str(), prefix);
  std::fflush(stdout);
}

static void printFloat(ProgramContext *context, const char *prefix,
                       int32_t operand, int64_t position, double value) {
  std::printf("%s idx (%" PRId64 ") %s(operand %d) %f\n",
              describeProgram(*context).c_str(), position, prefix, operand,
              value);
  std::fflush(stdout);
}

static void printInt(ProgramContext *context, const char *prefix,
                     int32_t operand, int64_t position, int64_t value,
                     bool isSigned, bool isHex) {
  const char *format =
      isHex      ? "%s idx (%" PRId64 ") %s(operand %d) 0x%" PRIx64 "\n"
      : isSigned ? "%s idx (%" PRId64 ") %s(operand %d) %" PRId64 "\n"
                 : "%s idx (%" PRId64 ") %s(operand %d) %" PRIu64 "\n";
  std::printf(format, describeProgram(*context).c_str(), position, prefix,
              operand, value);
  std::fflush(stdout);
}

static float widenBFloat16(uint16_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest even; subnormal numbers stay, as they do in compiled code
/// (Numerics.cpp).
static uint16_t roundToBFloat16(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  uint32_t rounded =
      bits + (mutation::isMade("cpu-atomic:bf16 sums are cut off")
                  ? 0
                  : 0x7fff + (bits >> 16 & 1));
  uint32_t quiet = bits | 0x400000;
  return (value != value ? quiet : rounded) >> 16;
}

/// Adds to a bf16 in memory, and returns the bits that were there.
static uint16_t addBFloat16(uint16_t *place, uint16_t summand) {
  uint16_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
  uint16_t sum;
  do
    sum = roundToBFloat16(widenBFloat16(old) + widenBFloat16(summand));
  while (!__atomic_compare_exchange_n(place, &old, sum, /*weak=*/true,
                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return old;
}

llvm::ArrayRef<RuntimeFunction> mlir::autodiff::cpu::getRuntimeFunctions() {
  static const RuntimeFunction functions[] = {
      {"tad_cpu_assert", reinterpret_cast<void *>(failAssertion)},
      {"tad_cpu_print_text", reinterpret_cast<void *>(printText)},
      {"tad_cpu_print_float", reinterpret_cast<void *>(printFloat)},
      {"tad_cpu_print_int", reinterpret_cast<void *>(printInt)},
      {"tad_cpu_add_bf16", reinterpret_cast<void *>(addBFloat16)},
  };
  return functions;
}
