//===- SharedRegisters.cpp - Results that overwrite operands --------------===//
#include "autodiff/Assembly/SharedRegisters.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::ptx;

//===----------------------------------------------------------------------===//
// What assembly reads and writes
//===----------------------------------------------------------------------===//

/// Calls `visit` for each register of an operand.
template <typename OperandT, typename Visit>
static void forEachRegister(OperandT &operand, Visit visit) {
  if (operand.kind == Operand::Kind::Register)
    visit(operand);
  for (auto &part : operand.parts)
    forEachRegister(part, visit);
}

void mlir::autodiff::ptx::tieRegisters(Program &program,
                                       ArrayRef<Constraint> constraints) {
  if (mutation::isMade("assembly:tied operands have registers of their own"))
    return;
  auto tie = [&](Operand &operand) {
    if (operand.index < constraints.size())
      operand.index = constraints[operand.index].tied.value_or(operand.index);
  };
  for (Instruction &instruction : program.instructions)
    for (Operand &operand : instruction.operands)
      forEachRegister(operand, tie);
}

namespace {
/// A guard, and how often its predicate had been written before.
struct Condition {
  unsigned predicate = 0, version = 0;
  bool isNegated = false;

  bool excludes(const Condition &other) const {
    return predicate == other.predicate && version == other.version &&
           isNegated != other.isNegated;
  }
};

/// A result's register is written.
struct Write {
  unsigned result;
  std::optional<Condition> condition;
};
} // namespace

llvm::Error mlir::autodiff::ptx::checkRegisters(
    const Program &program, ArrayRef<Constraint> constraints, unsigned results,
    llvm::function_ref<bool(unsigned result, unsigned operand)> mayShare) {
  std::vector<unsigned> versions(program.registers.size());
  SmallVector<Write> writes;
  llvm::Error error = llvm::Error::success();
  auto fail = [&](const Instruction &instruction, const Twine &reason) {
    if (!error)
      error = makeError("'" + instruction.name + "': " + reason);
  };
  auto nameOf = [&](unsigned index) {
    return "'" + program.registers[index].name + "'";
  };
  for (const Instruction &instruction : program.instructions) {
    std::optional<Condition> condition;
    if (instruction.guard)
      condition = Condition{instruction.guard->index,
                            versions[instruction.guard->index],
                            instruction.guard->isNegated};
    auto read = [&](const Operand &operand) {
      if (operand.index < results || operand.index >= constraints.size())
        return;
      for (const Write &write : writes) {
        if (constraints[write.result].isEarly ||
            (condition && write.condition &&
             condition->excludes(*write.condition)) ||
            !mayShare(write.result, operand.index))
          continue;
        fail(instruction, nameOf(operand.index) + " is read after " +
                              nameOf(write.result) +
                              " is written, and both may be in one register, "
                              "since the one is carried to the other; write "
                              "\"=&\" in the constraint of " +
                              nameOf(write.result));
      }
    };
    auto write = [&](const Operand &operand) {
      ++versions[operand.index];
      if (operand.index < results)
        writes.push_back(Write{operand.index, condition});
      else if (operand.index < constraints.size())
        fail(instruction, "it writes " + nameOf(operand.index) +
                              ", which is an operand's register");
    };
    ArrayRef<Operand> operands = instruction.operands;
    for (const Operand &operand : operands.drop_front(!operands.empty()))
      forEachRegister(operand, read);
    if (!operands.empty())
      forEachRegister(operands[0], write);
  }
  return error;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Copies::Copies(Operation *root) {
  root->walk([&](Operation *op) { visit(op); });
}

void Copies::visit(Operation *op) {
  if (mutation::isMade("assembly:no registers are shared"))
    return;
  if (followFlow(op, [&](Value from, Value to) { unite(from, to); }))
    return;
  if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i) {
      SuccessorOperands operands = branch.getSuccessorOperands(i);
      for (BlockArgument argument : op->getSuccessor(i)->getArguments())
        if (Value operand = operands[argument.getArgNumber()])
          unite(operand, argument);
    }
  } else if (isa<arith::SelectOp>(op)) {
    // Copies to and from the results of a branch.
    for (Value side : op->getOperands().drop_front())
      unite(side, op->getResult(0));
  } else if (isa<arith::BitcastOp, triton::BitcastOp>(op) ||
             (triton::takesElements(op) && !isa<triton::GatherOp>(op))) {
    // (What a gather takes, another thread may have.)
    for (Value operand : op->getOperands())
      for (Value result : op->getResults())
        unite(operand, result);
  }
}
