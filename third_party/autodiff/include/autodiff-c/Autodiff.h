//===- Autodiff.h - C interface of libtriton_autodiff -----------*- C++ -*-===//
//
// Text in, text or bytes out. These are the only symbols that the library
// exports. No function aborts the process, throws, or keeps state between
// calls; every function may be called from several threads at once.
//
// A sink receives its data in one call; the bytes are valid during that call
// only. `onError` receives diagnostics, one per line, as
// "file:line:col: error: message" with notes below the error that they belong
// to. A function that fails always calls it; one that succeeds calls it when
// there are warnings.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_C_AUTODIFF_H
#define AUTODIFF_C_AUTODIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAD_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*TadSink)(const char *data, size_t size, void *user);

/// Parses and verifies a module, runs a textual pass pipeline over it ("" for
/// none) and prints it with its locations.
TAD_API bool tadRunPipeline(const char *ir, size_t irSize, const char *fileName,
                            const char *pipeline, TadSink onResult,
                            TadSink onError, void *user);

/// Prints the kernels of a TTIR module as Triton Python.
TAD_API bool tadPrintSource(const char *ir, size_t irSize, const char *fileName,
                            TadSink onResult, TadSink onError, void *user);

/// Differentiates the one public function of a TTIR module. Request and plan
/// are JSON; docs/plan.md describes both.
TAD_API bool tadDifferentiate(const char *ir, size_t irSize,
                              const char *fileName, const char *request,
                              TadSink onPlan, TadSink onError, void *user);

/// Compiles TTIR to a relocatable object for this host. Options and metadata
/// are JSON.
TAD_API bool tadCompileCpu(const char *ir, size_t irSize, const char *fileName,
                           const char *options, TadSink onObject,
                           TadSink onMetadata, TadSink onError, void *user);

/// A kernel that was loaded into this process.
typedef struct TadKernel TadKernel;

/// Links an object that tadCompileCpu made and finds kernel `symbol` in it.
TAD_API TadKernel *tadLoadCpu(const char *object, size_t size,
                              const char *symbol, TadSink onError, void *user);
TAD_API void tadUnloadCpu(TadKernel *kernel);

/// Types of the kernel's arguments as TTIR spells them, comma separated, every
/// pointer as "ptr": "ptr,ptr,i32,f32". Lives as long as the kernel.
TAD_API const char *tadKernelSignature(const TadKernel *kernel);

/// Runs gx * gy * gz programs over `threads` threads (0: one per core).
/// args[i] points at the value of argument i.
TAD_API bool tadLaunchCpu(TadKernel *kernel, uint32_t gx, uint32_t gy,
                          uint32_t gz, void **args, uint32_t threads,
                          TadSink onError, void *user);

/// Release and content hash of this library, for cache keys; and, behind the
/// last dot, a hash of the code that makes objects of kernels for the CPU.
TAD_API const char *tadVersion(void);

/// The table of differentiation rules, for the documentation.
TAD_API const char *tadRulesMarkdown(void);

#ifdef __cplusplus
}
#endif

#endif // AUTODIFF_C_AUTODIFF_H
