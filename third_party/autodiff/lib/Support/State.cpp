//===- State.cpp - Whether a kernel is what it was ------------------------===//
#include "autodiff/Support/State.h"

using namespace mlir;

llvm::hash_code mlir::autodiff::hashState(Operation *kernel) {
  llvm::hash_code hash(0);
  auto combine = [&](auto... parts) {
    hash = llvm::hash_combine(hash, parts...);
  };
  kernel->walk([&](Operation *op) {
    combine(op, op->getBlock(), op->getRawDictionaryAttrs(),
            op->hashProperties());
    for (Value operand : op->getOperands())
      combine(operand);
    for (Type type : op->getResultTypes())
      combine(type);
  });
  return hash;
}
