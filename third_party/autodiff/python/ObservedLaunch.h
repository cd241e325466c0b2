//===- ObservedLaunch.h - A launch function that notes what is written ----===//

#ifndef AUTODIFF_PYTHON_OBSERVEDLAUNCH_H
#define AUTODIFF_PYTHON_OBSERVEDLAUNCH_H

#include <pybind11/pybind11.h>

/// Adds `observed_launch` to the module.
void addObservedLaunch(pybind11::module_ &m);

#endif // AUTODIFF_PYTHON_OBSERVEDLAUNCH_H
