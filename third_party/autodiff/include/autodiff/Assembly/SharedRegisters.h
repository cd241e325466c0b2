//===- SharedRegisters.h - Results that overwrite operands ------*- C++ -*-===//
//
// A compiler may put a result of inline assembly into the register of an
// operand, unless "=&" says that it is written early. It does so where one is
// copied to the other, as a carried value of a loop or a result of a branch.
// Then "mul $0, $1, $1; add $0, $0, $1" adds the product instead of the
// operand, and does not do what it seems to.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ASSEMBLY_SHAREDREGISTERS_H
#define AUTODIFF_ASSEMBLY_SHAREDREGISTERS_H

#include "autodiff/Support/PtxProgram.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::autodiff::ptx {

/// The constraint of one register.
struct Constraint {
  unsigned width;
  /// The result in whose register an operand is passed.
  std::optional<unsigned> tied;
  /// "=&": no operand shares the result's register.
  bool isEarly = false;
};

/// Replaces operands that share a result's register by that register.
void tieRegisters(Program &program, ArrayRef<Constraint> constraints);

/// Fails if the program writes to an operand's register, or reads one after
/// writing to a result's register that may be the same, as `mayShare` says.
llvm::Error checkRegisters(
    const Program &program, ArrayRef<Constraint> constraints, unsigned results,
    llvm::function_ref<bool(unsigned result, unsigned operand)> mayShare);

/// Finds out between which values there are only copies.
class Copies {
public:
  explicit Copies(Operation *root);

  bool areConnected(Value a, Value b) const {
    return a == b ||
           classes.isEquivalent(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }

private:
  void unite(Value a, Value b) {
    classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }
  void visit(Operation *op);

  llvm::EquivalenceClasses<const void *> classes;
};

} // namespace mlir::autodiff::ptx

#endif // AUTODIFF_ASSEMBLY_SHAREDREGISTERS_H
