//===- Mutation.cpp - Deliberate mistakes, to test the tests --------------===//
#include "autodiff/Support/Mutation.h"

#ifdef TAD_MUTATION

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <set>
#include <string>

using namespace mlir::autodiff;

bool mutation::isMade(llvm::StringRef name) {
  const char *setting = std::getenv("TAD_MUTATION");
  llvm::StringRef chosen = setting ? setting : "";
  if (!chosen.consume_front("trace:"))
    return chosen == name;
  static std::set<std::string> seen;
  if (seen.insert((chosen + " " + name).str()).second) {
    std::error_code error;
    llvm::raw_fd_ostream os(chosen, error, llvm::sys::fs::OF_Append);
    os << name << "\n";
  }
  return false;
}

#endif
