//===- PlanJson.h - Attributes as the JSON of a plan ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_PLAN_PLANJSON_H
#define AUTODIFF_LIB_PLAN_PLANJSON_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "llvm/Support/JSON.h"

namespace mlir::autodiff {

/// A fact about a launch, or a list of such, as docs/plan.md describes it.
llvm::json::Value toJSON(Attribute attribute);
llvm::json::Value toJSON(MLIRContext *context, const ScalarExpr &number);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_PLAN_PLANJSON_H
