//===- StoredFunctions.h - Stores of the same function ----------*- C++ -*-===//
//
// A kernel for a symmetric product stores a tile of it, and the same tile
// transposed. Tiles that cross the diagonal overlap: programs store to one
// element what they have computed from other rows and columns. Both are
// x(i) · x(j), so whichever memory keeps, the gradient is the same.
//
// To see that, a stored value is taken as a function of integers, its
// *arguments*: sums of program numbers, lanes and iterations that addresses and
// masks are made of. All else in it is the same for all programs. Two stores
// have the same function if one's expression turns into the other's when
// arguments take the place of arguments, and factors that of one another. It
// has an *exchange* if it turns into itself when pairs of arguments swap.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_STOREDFUNCTIONS_H
#define AUTODIFF_ANALYSIS_STOREDFUNCTIONS_H

#include "autodiff/Analysis/LinearForm.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

struct StoredFunction {
  /// Which of the stores is the first with this function.
  unsigned number;
  llvm::SmallVector<LinearForm> arguments;
  /// The argument that each swaps with (maybe itself); empty without exchange.
  /// Only functions of several stores are searched for one.
  llvm::SmallVector<int64_t> exchange;
};

/// The functions of stores; none for a store whose value has no such function,
/// as that of memory which the kernel changes.
llvm::SmallVector<std::optional<StoredFunction>>
findStoredFunctions(llvm::ArrayRef<triton::StoreOp> stores);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_STOREDFUNCTIONS_H
