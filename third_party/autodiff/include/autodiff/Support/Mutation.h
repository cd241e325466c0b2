//===- Mutation.h - Deliberate mistakes, to test the tests ------*- C++ -*-===//
//
// For mutation testing. A build with TAD_MUTATION makes one mistake, whose name
// is in the environment variable TAD_MUTATION. With `trace:PATH` it makes none,
// and appends the names of mistakes that it could have made to that file.
// scripts/mutation.py checks that a test notices each. In every other build all
// of this is empty.
//
// Mistakes in what rules emit have names of their own (Rules/RuleMutation.h);
// all others have the name that stands in the source.
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
