//===- Mutation.h - Deliberate mistakes, to test the tests ------*- C++ -*-===//
//
// A build with TAD_MUTATION can be told to make one mistake, by name, in the
// environment variable of that name; `trace:PATH` makes none and appends the
// names of those that it could have made to a file instead. scripts/mutation.py
// checks that a test notices each. In every other build all of this is empty.
//
// Mistakes in what rules emit have names of their own (Rules/RuleMutation.h),
// all others are named as they stand in the source.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SUPPORT_MUTATION_H
#define AUTODIFF_SUPPORT_MUTATION_H

#include "llvm/ADT/StringRef.h"

namespace mlir::autodiff::mutation {

#ifdef TAD_MUTATION

/// Whether to make the mistake `name`.
bool isMade(llvm::StringRef name);

#else

inline bool isMade(llvm::StringRef) { return false; }

#endif

} // namespace mlir::autodiff::mutation

#endif // AUTODIFF_SUPPORT_MUTATION_H
