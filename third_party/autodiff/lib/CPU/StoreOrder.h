//===- StoreOrder.h - Code that LLVM's SROA breaks --------------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CPU_STOREORDER_H
#define AUTODIFF_LIB_CPU_STOREORDER_H

namespace llvm {
class PassInstrumentationCallbacks;
} // namespace llvm

namespace mlir::autodiff::cpu {

/// Skips SROA in functions where it would use vectors before they are defined.
void skipUnsoundSROA(llvm::PassInstrumentationCallbacks &callbacks);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CPU_STOREORDER_H
