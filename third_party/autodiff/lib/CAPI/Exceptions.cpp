//===- Exceptions.cpp - No exception leaves the library -------------------===//
//
// The library has a C++ runtime of its own, so that it runs beside any other
// one, and its code is compiled without exceptions. What the standard library
// throws (memory that cannot be had, say) must not reach callers, who have
// another runtime: it ends the call as LLVM's fatal errors do (Session.cpp).
//
// The linker replaces `__cxa_throw` by the function below (`--wrap`), so that
// nothing is ever thrown, and tables for unwinding are left out. It replaces
// `malloc`, too, of which MLIR takes for granted that it finds memory.
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

/// A function that was left out (Unused.c) was called.
extern "C" [[noreturn]] void tadUnused(const char *name) {
  llvm::report_fatal_error(llvm::Twine("not in this build: ") + name,
                           /*gen_crash_diag=*/false);
}
