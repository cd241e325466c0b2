//===- Loader.cpp - Linking objects into this process ---------------------===//

#include "Runtime.h"

#include "autodiff/CPU/Kernel.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <mutex>

using namespace llvm;
using namespace mlir::autodiff::cpu;

namespace {

/// The linker for all kernels of the process; each gets its own library.
struct Linker {
  std::unique_ptr<orc::LLJIT> jit;
  std::atomic<unsigned> count{0};

  static Expected<Linker *> get() {
    static std::mutex mutex;
    static Linker *instance = nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    if (instance)
      return instance;
    initializeHost();
    auto linker = std::make_unique<Linker>();
    Expected<std::unique_ptr<orc::LLJIT>> jit = orc::LLJITBuilder().create();
    if (!jit)
      return jit.takeError();
    linker->jit = std::move(*jit);
    // Never destroyed: kernels may still run while the process exits.
    return instance = linker.release();
  }
};

} // namespace

struct Kernel::Code {
  Linker *linker;
  orc::JITDylib *library;

  ~Code() {
    if (library)
      consumeError(linker->jit->getExecutionSession().removeJITDylib(*library));
  }
};

Kernel::Kernel(std::unique_ptr<Code> code) : code(std::move(code)) {}
Kernel::~Kernel() = default;

/// Symbols that generated code may call: the runtime, the C library's
/// mathematics and its vector versions.
static Error addLibraries(orc::LLJIT &jit, orc::JITDylib &library) {
  char prefix = jit.getDataLayout().getGlobalPrefix();
  orc::SymbolMap symbols;
  for (const RuntimeFunction &function : llvm::concat<const RuntimeFunction>(
           getRuntimeFunctions(), getSpecialFunctions(), getRoundedFunctions()))
    symbols[jit.mangleAndIntern(function.name)] = {
        orc::ExecutorAddr::fromPtr(function.address),
        JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols))))
    return error;
  // On a system without vector library, the code generator does not use one
  // either, or the lookup reports what is missing.
  for (const char *name : {"libmvec.so.1", "libm.so.6", "libc.so.6"}) {
    auto generator = orc::DynamicLibrarySearchGenerator::Load(name, prefix);
    if (generator)
      library.addGenerator(std::move(*generator));
    else
      consumeError(generator.takeError());
  }
  auto process =
      orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix);
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  return Error::success();
}

Expected<std::unique_ptr<Kernel>> Kernel::load(StringRef object,
                                               StringRef symbol) {
  Expected<Linker *> linker = Linker::get();
  if (!linker)
    return linker.takeError();
  orc::LLJIT &jit = *(*linker)->jit;
  auto code = std::make_unique<Code>(Code{*linker, nullptr});
  Expected<orc::JITDylib &> library = jit.getExecutionSession().createJITDylib(
      ("kernel" + Twine((*linker)->count++)).str());
  if (!library)
    return library.takeError();
  code->library = &*library;
  if (Error error = addLibraries(jit, *library))
    return std::move(error);
  if (Error error = jit.addObjectFile(
          *library, MemoryBuffer::getMemBufferCopy(object, symbol)))
    return std::move(error);

  auto find = [&](const Twine &name) {
    return jit.lookup(*library, name.str());
  };
  auto entry = find(symbol);
  if (!entry)
    return entry.takeError();
  auto signature = find(symbol + ".signature");
  if (!signature)
    return signature.takeError();
  auto stack = find(symbol + ".stack");
  if (!stack)
    return stack.takeError();
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(code)));
  kernel->entry = entry->toPtr<EntryPoint>();
  kernel->signature = signature->toPtr<const char *>();
  kernel->stackSize = *stack->toPtr<const uint64_t *>();
  return kernel;
}
