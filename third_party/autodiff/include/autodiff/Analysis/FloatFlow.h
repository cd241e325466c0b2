//===- FloatFlow.h - Which inputs' floats reach which outputs ---*- C++ -*-===//
//
// PyTorch gives a tensor a history if it is computed from floats of another one
// that has a history, whatever the derivative is: sign(x) and 0·x have one.
// Comparisons, conversions to integers and indices end it: a count or an
// arg-max has none. This analysis says the same of what a kernel stores.
// (Activity.h says which values have an adjoint. These are fewer: floor(x) has
// a history, and no adjoint.)
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_FLOATFLOW_H
#define AUTODIFF_ANALYSIS_FLOATFLOW_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include <map>

namespace mlir::autodiff {

/// What a kernel's stores depend on: for each output of floats its `argument`
/// number and its `inputs`, the arguments whose floats reach it.
constexpr llvm::StringLiteral kHistoryAttr = "autodiff.history";

class MemoryFlow;

class FloatFlow {
public:
  explicit FloatFlow(triton::FuncOp kernel);

  /// The float tensors that `kernel` stores to, and for each the float tensors
  /// whose content reaches what is stored, as bits by argument.
  const std::map<unsigned, llvm::SmallBitVector> &getOutputs() const {
    return outputs;
  }

private:
  void propagate(triton::FuncOp kernel, const MemoryFlow &memory);
  bool flow(Value from, Value to);
  bool add(Value value, const llvm::SmallBitVector &inputs);
  bool addMemory(Operation *read, const MemoryFlow &memory);

  llvm::DenseMap<Value, llvm::SmallBitVector> reaching;
  std::map<unsigned, llvm::SmallBitVector> outputs;
};

/// The values that `op` computes with: its operands, and those from outside
/// that its regions use.
SmallVector<Value> getComputedWith(Operation *op);

/// Whether `op` passes the bits of the float `operand` on to an integer. Bits
/// are followed until they become a float again. A library function or assembly
/// may do this unless its rule says otherwise.
bool passesBits(Operation *op, Value operand);

/// Whether `argument` is a pointer to floats.
bool isFloatTensor(BlockArgument argument);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_FLOATFLOW_H
