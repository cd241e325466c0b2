//===- Autodiff.cpp - The autodiff dialect --------------------------------===//
#include "autodiff/Dialect/Autodiff.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "autodiff/Dialect/AutodiffDialect.cpp.inc"
#include "autodiff/Dialect/AutodiffEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "autodiff/Dialect/AutodiffAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "autodiff/Dialect/AutodiffOps.cpp.inc"

void mlir::autodiff::ResidualOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (getPinned())
    effects.emplace_back(MemoryEffects::Write::get());
}

void mlir::autodiff::AutodiffDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autodiff/Dialect/AutodiffAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autodiff/Dialect/AutodiffOps.cpp.inc"
      >();
}
