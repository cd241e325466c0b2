//===- Faults.cpp - The table of others' faults ---------------------------===//
#include "autodiff/Support/Faults.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Fault {
  StringRef name, right;
};
} // namespace

constexpr Fault kFaults[] = {
#include "autodiff/Support/Faults.inc"
};

StringRef mlir::autodiff::getRightVersion(StringRef fault) {
  const Fault *found = llvm::find_if(
      kFaults, [&](const Fault &each) { return each.name == fault; });
  return found == std::end(kFaults) ? StringRef() : found->right;
}
