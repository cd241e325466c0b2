//===- Machine.h - Registers that hold tiles --------------------*- C++ -*-===//
//
// Interprets assembly symbolically, once for all elements of a tile. A register
// may hold several packed elements, each in a *field*. A float in a field stays
// a float as long as it is only moved.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ASSEMBLY_MACHINE_H
#define AUTODIFF_ASSEMBLY_MACHINE_H

#include "autodiff/Assembly/Emitter.h"
#include "autodiff/Support/PtxProgram.h"

namespace mlir::autodiff::ptx {

/// The packed elements that a bit depends on, as a bit set.
using Lanes = uint32_t;

/// Some bits of a register as one SSA value.
struct Field {
  /// Null if nothing has been written.
  Value value;
  /// One entry for each bit, the lowest first.
  SmallVector<Lanes, 32> lanes;

  unsigned width() const { return lanes.size(); }
  /// The elements that any bit of the field depends on.
  Lanes all() const;
};

/// A field in which every bit depends on `lanes`.
Field makeField(Value value, unsigned width, Lanes lanes);

/// The fields of a register, the lowest bits first.
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

  /// Interprets the program; the error names an instruction that is not known.
  llvm::Error run();

  /// Sets a register before the program runs.
  void initialize(unsigned index, Fields fields) {
    registers[index].fields = std::move(fields);
  }
  /// After the program: `width` bits of a register, from bit `low` on.
  llvm::Expected<Field> readBits(unsigned index, unsigned low, unsigned width);

  // Operands of the current instruction, as its guard sees them.
  llvm::Expected<Fields> readFields(const Operand &operand, unsigned width);
  /// The lowest `width` bits as one integer.
  llvm::Expected<Field> readInteger(const Operand &operand, unsigned width);
  /// Float number `part` of those packed in the operand.
  llvm::Expected<Field> readFloat(const Operand &operand, FloatType type,
                                  unsigned part = 0);
  llvm::Expected<Field> readPredicate(const Operand &operand);
  /// The value of an operand that is an immediate.
  static std::optional<uint64_t> getImmediate(const Operand &operand);

  // Writes the results of the current instruction.
  llvm::Error write(const Operand &operand, Fields fields);
  llvm::Error write(const Operand &operand, Field field) {
    return write(operand, Fields{std::move(field)});
  }
  llvm::Error writePredicate(const Operand &operand, Field predicate);
  /// The width of the register that an operand names, or of all registers in a
  /// vector.
  unsigned widthOf(const Operand &operand) const;
  bool isPredicate(const Operand &operand) const;

  /// Bits [low, low + width) of a register.
  llvm::Expected<Field> slice(ArrayRef<Field> fields, unsigned low,
                              unsigned width);
  /// Splits the fields of both at the same bits.
  llvm::Error align(Fields &a, Fields &b);
  /// Selects a where the condition holds, else b.
  llvm::Expected<Fields> select(const Field &condition, Fields a, Fields b);

  /// Emits an instruction on floats that TTIR has no operation for, as inline
  /// assembly; `before` is text in front of the operands.
  llvm::Expected<Value> emitInstruction(const Twine &name, Type result,
                                        ArrayRef<Value> operands,
                                        StringRef before = {});

private:
  struct Content {
    Fields fields;
    /// The guard under which alone the register has been set so far.
    std::optional<Guard> only;
  };

  llvm::Error execute(const Instruction &instruction);
  llvm::Error merge(unsigned index, Fields fields);
  llvm::Expected<Guard> readGuard(const Operand &operand);
  llvm::Error checkDefined(const Content &content, StringRef name);
  Value chosen(Value value) const;

  const Program &program;
  std::vector<Content> registers;
  /// The guard of the current instruction.
  std::optional<Guard> guard;
};

/// A function that interprets an instruction.
using Semantics = llvm::Error (*)(Machine &, const Instruction &);
/// The function for an opcode, or null.
Semantics findSemantics(StringRef opcode);

// Each interprets one family of instructions.
llvm::Error runFloat(Machine &machine, const Instruction &instruction);
llvm::Error runInteger(Machine &machine, const Instruction &instruction);
llvm::Error runBits(Machine &machine, const Instruction &instruction);
llvm::Error runConversion(Machine &machine, const Instruction &instruction);
llvm::Error runMove(Machine &machine, const Instruction &instruction);
llvm::Error runComparison(Machine &machine, const Instruction &instruction);
llvm::Error runSelection(Machine &machine, const Instruction &instruction);

/// The float type that a modifier names; null for other modifiers.
FloatType getFloatType(Emitter &e, StringRef modifier);
/// How many packed floats an instruction with modifier "f16x2" works on.
unsigned countParts(StringRef modifier);
/// The integer type that a modifier names ("s32").
struct IntegerKind {
  unsigned width;
  bool isSigned;
};
std::optional<IntegerKind> getIntegerKind(StringRef modifier);

/// Fails unless `instruction` has `count` operands, and besides its types only
/// modifiers of `known`.
llvm::Error checkSignature(const Instruction &instruction, unsigned count,
                           ArrayRef<StringRef> known, unsigned types = 1);

// Float functions that several families use. Clamps to [0, 1]; NaN becomes
// zero.
Value saturate(Emitter &e, Value x);
/// max(x, 0); NaN stays.
Value rectify(Emitter &e, Value x);
/// Replaces numbers below the smallest normal one by zero.
Value flushSubnormal(Emitter &e, Value x);

} // namespace mlir::autodiff::ptx

#endif // AUTODIFF_ASSEMBLY_MACHINE_H
