//===- LaunchKey.h - What tells launches of one kernel apart --------------===//
//
// A kernel that was launched before is launched again in the same way, if
// nothing has changed that Triton or a plan looks at: then the keys are equal.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_PYTHON_LAUNCHKEY_H
#define AUTODIFF_PYTHON_LAUNCHKEY_H

#include <pybind11/pybind11.h>

/// Adds `launch_signature`, `launch_key`, `layouts` and `form` to the module.
void addLaunchKey(pybind11::module_ &m);

#endif // AUTODIFF_PYTHON_LAUNCHKEY_H
