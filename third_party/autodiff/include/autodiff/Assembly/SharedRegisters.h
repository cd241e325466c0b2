//===- SharedRegisters.h - Results that overwrite operands ------*- C++ -*-===//
//
// A compiler may put a result into the register of an operand, unless "=&" says
// that it is written early. It does where the one is copied to the other: what
// a loop carries, what branches meet in. Then "mul $0, $1, $1; add $0, $0, $1"
// adds the product, and is not what it seems.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ASSEMBLY_SHAREDREGISTERS_H
#define AUTODIFF_ASSEMBLY_SHAREDREGISTERS_H

#include "autodiff/Support/PtxProgram.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::autodiff::ptx {

/// What the constraints say of one register.
struct Constraint {
  unsigned width;
  /// The result's register that an operand comes in.
  std::optional<unsigned> tied;
  /// "=&": no operand is in the result's register.
  bool isEarly = false;
};

/// Lets operands of a program name the result's register that they come in.
void tieRegisters(Program &program, ArrayRef<Constraint> constraints);

/// Fails where an operand's register is written, or is read after that of a
/// result that may be the same one, as `mayShare` says of the two.
llvm::Error checkRegisters(
    const Program &program, ArrayRef<Constraint> constraints, unsigned results,
    llvm::function_ref<bool(unsigned result, unsigned operand)> mayShare);

/// Values between which there are nothing but copies.
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
