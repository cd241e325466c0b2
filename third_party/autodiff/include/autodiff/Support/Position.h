//===- Position.h - Where in the user's file something is -------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_POSITION_H
#define AUTODIFF_SUPPORT_POSITION_H

#include "mlir/IR/Location.h"
#include <string>

namespace mlir::autodiff {

/// The file position that stands for `loc`, if it has any. For inlined code
/// that is the innermost position, where the operation was written.
FileLineColLoc findPosition(Location loc);

/// Where in the user's code `loc` is, as "file:line:column": the innermost
/// position that is not in Triton's own library. Empty if there is none.
std::string spellPosition(Location loc);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_POSITION_H
