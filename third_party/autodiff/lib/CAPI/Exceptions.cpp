//===- Exceptions.cpp - No exception leaves the library -------------------===//
//
// The library contains its own C++ runtime, so that it works beside any other
// one, and its code is compiled without exceptions. If the standard library
// throws (out of memory, say), the exception must not reach callers, who have
// another runtime. Instead, the call ends as it does for LLVM's fatal errors
// (Session.cpp).
//
// The linker replaces `__cxa_throw` by the function below (`--wrap`), so that
// nothing is ever thrown, and unwind tables are not needed. It also replaces
// `malloc`, since MLIR does not check whether it fails.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdio>
#include <cxxabi.h>
#include <typeinfo>

extern "C" [[noreturn]] void __wrap___cxa_throw(void *, std::type_info *type,
                                                void (*)(void *)) {
  char reason[256];
  const char *name =
      abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
  std::snprintf(reason, sizeof(reason), "%s", name ? name : type->name());
  llvm::report_fatal_error(reason, /*gen_crash_diag=*/false);
}

extern "C" void *__real_malloc(size_t size);

extern "C" void *__wrap_malloc(size_t size) {
  void *memory = __real_malloc(size);
  if (!memory && size)
    mlir::autodiff::giveUp("Allocation failed");
  return memory;
}

/// Called in place of functions that the linker left out (Unused.c).
extern "C" [[noreturn]] void tadUnused(const char *name) {
  llvm::report_fatal_error(llvm::Twine("not in this build: ") + name,
                           /*gen_crash_diag=*/false);
}
