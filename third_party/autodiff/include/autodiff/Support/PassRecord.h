//===- PassRecord.h - Which passes have done something ----------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_PASSRECORD_H
#define AUTODIFF_SUPPORT_PASSRECORD_H

namespace mlir {
class PassManager;

namespace autodiff {

/// Makes `pm` append the name of each pass to the file that the environment
/// variable TRITON_AUTODIFF_PASSES names, if it is set: "ran NAME" when it
/// first runs, "changed NAME" when it first changes the IR. Tests have to cover
/// each change.
void recordPasses(PassManager &pm);

} // namespace autodiff
} // namespace mlir

#endif // AUTODIFF_SUPPORT_PASSRECORD_H
