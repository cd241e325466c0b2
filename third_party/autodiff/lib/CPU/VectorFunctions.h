//===- VectorFunctions.h - The C library's functions of vectors -*- C++ -*-===//

#ifndef AUTODIFF_LIB_CPU_VECTORFUNCTIONS_H
#define AUTODIFF_LIB_CPU_VECTORFUNCTIONS_H

namespace llvm {
class Module;
class TargetLibraryInfoImpl;
class TargetMachine;
} // namespace llvm

namespace mlir::autodiff::cpu {

/// Tells the vectorizer of the vector functions that this machine has.
void addVectorFunctions(llvm::TargetLibraryInfoImpl &library,
                        const llvm::TargetMachine &target);
/// Uses them for scalar calls that were not vectorized, too.
void useVectorFunctions(llvm::Module &module,
                        const llvm::TargetMachine &target);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CPU_VECTORFUNCTIONS_H
