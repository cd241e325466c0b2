//===- UsedValues.h - What an operation computes with -----------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_USEDVALUES_H
#define AUTODIFF_SUPPORT_USEDVALUES_H

#include "mlir/IR/Operation.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// The values that an operation and its regions use.
inline SetVector<Value> getUsedValues(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_USEDVALUES_H
