//===- LibraryNames.h - Names of device library functions -------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_LIBRARYNAMES_H
#define AUTODIFF_SUPPORT_LIBRARYNAMES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace mlir::autodiff {

/// The plain name of a device library's function: without the library's prefix,
/// the element type, a rounding mode and "fast". __nv_tanhf, __nv_fast_tanhf
/// and __ocml_tanh_f64 are all "tanh"; __nv_fadd_rz is "add".
///
/// A final "f" is part of a name if `isKnown` knows it (erf), and CUDA's mark
/// of f32 otherwise (tanhf). "" for a symbol of no device library.
std::string getPlainName(StringRef symbol,
                         llvm::function_ref<bool(StringRef)> isKnown);

/// The symbol of function `name` in the library that `like` is from, for
/// operands of `width` bits: "__nv_j1f" for "j1", like "__nv_j0f".
std::string getSiblingSymbol(StringRef like, StringRef name, unsigned width);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_LIBRARYNAMES_H
