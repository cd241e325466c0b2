//===- Machine.h - Registers that hold tiles --------------------*- C++ -*-===//
//
// A machine runs assembly once for all elements of a tile. A register that
// elements are packed in holds each of them in a field of its own, which stays
// the float that it is while it is only moved.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ASSEMBLY_MACHINE_H
#define AUTODIFF_ASSEMBLY_MACHINE_H

#include "autodiff/Assembly/Emitter.h"
#include "autodiff/Support/PtxProgram.h"

namespace mlir::autodiff::ptx {

/// Which of the packed elements a bit depends on: one bit for each.
using Lanes = uint32_t;

/// Some bits of a register, as one value.
struct Field {
  /// Null where nothing has been written.
  Value value;
  /// One for each bit, the lowest first.
  SmallVector<Lanes, 32> lanes;

  unsigned width() const { return lanes.size(); }
  /// The elements that the field depends on.
  Lanes all() const;
};

/// A field of which every bit depends on `lanes`.
Field makeField(Value value, unsigned width, Lanes lanes);

/// What a register holds, the lowest bits first.
using Fields = SmallVector<Field, 2>;

/// The condition under which an instruction has an effect.
struct Guard {
  Value condition;
  bool isNegated = false;
  Lanes lanes = 0;

  bool operator==(const Guard &other) const {
    return condition == other.condition && isNegated == other.isNegated;
  }
};

class Machine {
public:
  Machine(const Program &program, Emitter &emitter);

  Emitter &e;

  /// Runs the program; the error names the instruction that is not understood.
  llvm::Error run();

  /// Sets a register before the program runs.
  void initialize(unsigned index, Fields fields) {
    registers[index].fields = std::move(fields);
  }
  /// `width` bits of a register from bit `low` on, at the end.
  llvm::Expected<Field> readBits(unsigned index, unsigned low, unsigned width);

  // What instructions read, as of the guard that they run under.
  llvm::Expected<Fields> readFields(const Operand &operand, unsigned width);
  /// The lowest `width` bits as one integer.
  llvm::Expected<Field> readInteger(const Operand &operand, unsigned width);
  /// The float of this type that is number `part` of those in the operand.
  llvm::Expected<Field> readFloat(const Operand &operand, FloatType type,
                                  unsigned part = 0);
  llvm::Expected<Field> readPredicate(const Operand &operand);
  /// The number that an operand is, if it is written out.
  static std::optional<uint64_t> getImmediate(const Operand &operand);

  // What instructions write.
  llvm::Error write(const Operand &operand, Fields fields);
  llvm::Error write(const Operand &operand, Field field) {
    return write(operand, Fields{std::move(field)});
  }
  llvm::Error writePredicate(const Operand &operand, Field predicate);
  /// The width of the register that an operand names, or of all in a vector.
  unsigned widthOf(const Operand &operand) const;
  bool isPredicate(const Operand &operand) const;

  /// Bits [low, low + width) of what a register holds.
  llvm::Expected<Field> slice(ArrayRef<Field> fields, unsigned low,
                              unsigned width);
  /// Both divided in the same places.
  llvm::Error align(Fields &a, Fields &b);
  /// a where a condition holds, else b.
  llvm::Expected<Fields> select(const Field &condition, Fields a, Fields b);

  /// One instruction of floats that TTIR has no operation for, as assembly;
  /// `before` is written before the operands.
  llvm::Expected<Value> emitInstruction(const Twine &name, Type result,
                                        ArrayRef<Value> operands,
                                        StringRef before = {});

private:
  struct Content {
    Fields fields;
    /// Set only under this guard so far.
    std::optional<Guard> only;
  };

  llvm::Error execute(const Instruction &instruction);
  llvm::Error merge(unsigned index, Fields fields);
  llvm::Expected<Guard> readGuard(const Operand &operand);
  llvm::Error checkDefined(const Content &content, StringRef name);
  Value chosen(Value value) const;

  const Program &program;
  std::vector<Content> registers;
  /// That of the instruction that runs.
  std::optional<Guard> guard;
};

/// What an instruction does.
using Semantics = llvm::Error (*)(Machine &, const Instruction &);
/// The semantics of an opcode, or null.
Semantics findSemantics(StringRef opcode);

// A family of instructions in each file.
llvm::Error runFloat(Machine &machine, const Instruction &instruction);
llvm::Error runInteger(Machine &machine, const Instruction &instruction);
llvm::Error runBits(Machine &machine, const Instruction &instruction);
llvm::Error runConversion(Machine &machine, const Instruction &instruction);
llvm::Error runMove(Machine &machine, const Instruction &instruction);
llvm::Error runComparison(Machine &machine, const Instruction &instruction);
llvm::Error runSelection(Machine &machine, const Instruction &instruction);

/// The type that a modifier names, for floats; null for others.
FloatType getFloatType(Emitter &e, StringRef modifier);
/// How many floats an instruction on "f16x2" works on at once.
unsigned countParts(StringRef modifier);
/// Whether a modifier names integers ("s32"), and what they are.
struct IntegerKind {
  unsigned width;
  bool isSigned;
};
std::optional<IntegerKind> getIntegerKind(StringRef modifier);

/// Fails where `instruction` has not `count` operands, or modifiers besides
/// its types that are not among `known`.
llvm::Error checkSignature(const Instruction &instruction, unsigned count,
                           ArrayRef<StringRef> known, unsigned types = 1);

// Floats that more than one family computes.
/// Between zero and one; NaN becomes zero.
Value saturate(Emitter &e, Value x);
/// Not below zero; NaN stays.
Value rectify(Emitter &e, Value x);
/// Zero for what is below the smallest normal number.
Value flushSubnormal(Emitter &e, Value x);

} // namespace mlir::autodiff::ptx

#endif // AUTODIFF_ASSEMBLY_MACHINE_H
