//===- PtxProgram.h - Straight-line PTX as it is written --------*- C++ -*-===//
//
// Parses inline assembly into registers with their scopes, and instructions
// with their guards and operands. What instructions mean is left to
// lib/Assembly.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SUPPORT_PTXPROGRAM_H
#define AUTODIFF_SUPPORT_PTXPROGRAM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::autodiff::ptx {

/// An operand of an instruction: "%r1", "$2", "!p", "1.5", "{lo, hi}", "p|q".
struct Operand {
  enum class Kind {
    Register,
    Integer,
    /// A decimal number, which is a double.
    Float,
    /// The bits of a float of 32 or 64 bits: 0f3F800000, 0d3FF0000000000000.
    FloatBits,
    /// "{a, b}", the lowest bits first.
    Vector,
    /// "p|q": two predicates that an instruction sets.
    Pair,
    /// "_": a result that is dropped.
    Sink
  };
  Kind kind = Kind::Sink;
  /// "!p", of a predicate.
  bool isNegated = false;
  /// An index into the program's registers.
  unsigned index = 0;
  /// The bits of an integer or a float, in two's complement.
  uint64_t bits = 0;
  /// The width of a float's bits.
  unsigned width = 0;
  double number = 0;
  std::vector<Operand> parts;
};

struct Register {
  std::string name;
  /// In bits; 1 for a predicate.
  unsigned width;
  bool isPredicate = false;
  /// The k of "$k", for registers that hold operands and results of the
  /// assembly.
  std::optional<unsigned> outer;
};

struct Instruction {
  /// The predicate in front of an instruction: "@p" or "@!p".
  std::optional<Operand> guard;
  llvm::StringRef opcode;
  llvm::SmallVector<llvm::StringRef> modifiers;
  std::vector<Operand> operands;
  /// Opcode and modifiers as they are written: "ex2.approx.ftz.f32".
  std::string name;

  llvm::StringRef lastModifier() const {
    return modifiers.empty() ? "" : modifiers.back();
  }
  bool has(llvm::StringRef modifier) const;
};

struct Program {
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
};

/// Parses assembly whose operands are in `outer` registers of these widths
/// ("$0", "$1", …). The error names what cannot be parsed.
llvm::Expected<Program> parseProgram(llvm::StringRef text,
                                     llvm::ArrayRef<unsigned> outer);

/// An error with this message.
llvm::Error makeError(const llvm::Twine &message);

} // namespace mlir::autodiff::ptx

#endif // AUTODIFF_SUPPORT_PTXPROGRAM_H
