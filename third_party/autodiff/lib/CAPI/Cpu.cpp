//===- Cpu.cpp - tadCompileCpu and its companions -------------------------===//

#include "Session.h"

#include "autodiff/CPU/Compile.h"
#include "autodiff/CPU/Kernel.h"
#include "autodiff/InitAll.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The handle that C code holds.
struct TadKernel {
  std::unique_ptr<cpu::Kernel> kernel;
};

bool tadCompileCpu(const char *ir, size_t irSize, const char *fileName,
                   const char *options, TadSink onObject, TadSink onMetadata,
                   TadSink onError, void *user) {
  auto attempt = [&](bool vectorize, bool *gaveUp) {
    return runEntryPoint(
        irSize,
        [&](std::string &diagnostics) {
          DialectRegistry registry;
          registerTritonDialects(registry);
          cpu::registerDialects(registry);
          Session session(registry, fileName);
          auto compile = [&]() -> FailureOr<cpu::CompiledObject> {
            OwningOpRef<ModuleOp> module = session.parse(ir, irSize);
            if (!module)
              return failure();
            FailureOr<cpu::CompileOptions> choices =
                cpu::parseCompileOptions(module->getLoc(), options);
            if (failed(choices))
              return failure();
            choices->vectorize &= vectorize;
            return cpu::compile(*module, *choices);
          };
          FailureOr<cpu::CompiledObject> result = compile();
          diagnostics = std::move(session.getDiagnostics());
          if (failed(result))
            return false;
          emit(onObject, result->object, user);
          emit(onMetadata, result->metadata, user);
          return true;
        },
        onError, user, gaveUp);
  };
  // LLVM cannot select instructions for some vectors that it makes itself. For
  // scalar loops, it always can.
  bool gaveUp = false;
  if (attempt(/*vectorize=*/true, &gaveUp))
    return true;
  return gaveUp && attempt(/*vectorize=*/false, nullptr);
}

TadKernel *tadLoadCpu(const char *object, size_t size, const char *symbol,
                      TadSink onError, void *user) {
  TadKernel *handle = nullptr;
  runEntryPoint(
      /*textSize=*/0,
      [&](std::string &diagnostics) {
        llvm::Expected<std::unique_ptr<cpu::Kernel>> kernel =
            cpu::Kernel::load(StringRef(object, size), symbol);
        if (!kernel) {
          diagnostics = "error: " + llvm::toString(kernel.takeError()) + "\n";
          return false;
        }
        handle = new TadKernel{std::move(*kernel)};
        return true;
      },
      onError, user);
  return handle;
}

void tadUnloadCpu(TadKernel *kernel) { delete kernel; }

const char *tadKernelSignature(const TadKernel *kernel) {
  return kernel->kernel->getSignature();
}

bool tadLaunchCpu(TadKernel *kernel, uint32_t gx, uint32_t gy, uint32_t gz,
                  void **args, uint32_t threads, TadSink onError, void *user) {
  // Generated code does not call LLVM, so fatal errors need no recovery here.
  llvm::Error error = cpu::launch(*kernel->kernel, gx, gy, gz, args, threads);
  if (!error)
    return true;
  emit(onError, "error: " + llvm::toString(std::move(error)) + "\n", user);
  return false;
}
