//===- AccessSpaces.h - Access spaces of a module ---------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ACCESSSPACES_H
#define AUTODIFF_ANALYSIS_ACCESSSPACES_H

#include "autodiff/Analysis/AccessSpace.h"
#include "mlir/Pass/AnalysisManager.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// The access spaces of a module (AccessSpace.h), as an analysis that MLIR
/// keeps from pass to pass. Each is found once for each version of its kernel.
/// Most passes that ask look at the differentiated kernel, and change others.
/// Which kernels a pass has changed is noticed when the next one asks, so a
/// pass must not change a kernel whose spaces it asks for.
class AccessSpaces {
public:
  using From = ScalarExpr::From;

  explicit AccessSpaces(Operation *) {}

  /// The functions of AccessSpace of the same names.
  ReasonOr<AccessSpace> of(Operation *access, From from = From::Launch);
  ReasonOr<AccessSpace> reachOf(Operation *access);
  ReasonOr<AccessSpace> ofAll(llvm::ArrayRef<Operation *> accesses) {
    return AccessSpace::ofAll(accesses, From::Launch, this);
  }
  ReasonOr<AccessSpace> findFor(llvm::ArrayRef<Operation *> accesses) {
    return AccessSpace::findFor(accesses, this);
  }

  /// Results are kept; whether a kernel has changed is found out at the next
  /// query.
  bool isInvalidated(const AnalysisManager::PreservedAnalyses &) {
    current.clear();
    return false;
  }

private:
  enum class Kind { Launch, Memory, Reach };
  struct Version {
    llvm::hash_code state = 0;
    llvm::DenseMap<std::pair<Operation *, int>, ReasonOr<AccessSpace>> spaces{};
  };

  ReasonOr<AccessSpace>
  find(Operation *access, Kind kind,
       llvm::function_ref<ReasonOr<AccessSpace>()> compute);

  llvm::DenseMap<Operation *, Version> versions; ///< of kernels
  llvm::DenseSet<Operation *> current;           ///< kernels looked at since
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ACCESSSPACES_H
