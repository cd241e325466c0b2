//===- Unbuilt.cpp - Entry points whose library is not part of this build -===//

#include "Session.h"

using namespace mlir::autodiff;

static bool refuse(TadSink onError, void *user) {
  emit(onError, "error: this build lacks that part of the compiler\n", user);
  return false;
}

bool tadCompileCpu(const char *, size_t, const char *, const char *, TadSink,
                   TadSink, TadSink onError, void *user) {
  return refuse(onError, user);
}
TadKernel *tadLoadCpu(const char *, size_t, const char *, TadSink onError,
                      void *user) {
  refuse(onError, user);
  return nullptr;
}
void tadUnloadCpu(TadKernel *) {}
const char *tadKernelSignature(const TadKernel *) { return ""; }
bool tadLaunchCpu(TadKernel *, uint32_t, uint32_t, uint32_t, void **, uint32_t,
                  TadSink onError, void *user) {
  return refuse(onError, user);
}
