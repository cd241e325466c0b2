//===- Persist.cpp - Few programs do the work of many ---------------------===//
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PERSIST
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Persist : autodiff::impl::PersistBase<Persist> {
  using PersistBase::PersistBase;
  void runOnOperation() override {}
};
} // namespace
