//===- PassRecord.h - Which passes have done something ----------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_PASSRECORD_H
#define AUTODIFF_SUPPORT_PASSRECORD_H

namespace mlir {
class PassManager;

namespace autodiff {

/// Makes `pm` append the name of each pass to the file TRITON_AUTODIFF_PASSES,
/// if there is one: "ran NAME" where it first runs, "changed NAME" where it
/// first changes the IR. Tests have to cover what it is that it changes.
void recordPasses(PassManager &pm);

} // namespace autodiff
} // namespace mlir

#endif // AUTODIFF_SUPPORT_PASSRECORD_H
