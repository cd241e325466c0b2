//===- IndexVisitor.cpp - What arithmetic makes of indices ----------------===//
#include "autodiff/Analysis/IndexVisitor.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct IsArithmetic : IndexVisitor<IsArithmetic, bool> {
  bool ofSum(Value, Value) { return true; }
  bool ofDifference(Value, Value) { return true; }
  bool ofProduct(Value, Value) { return true; }
  bool ofSame(Value) { return true; }
  bool ofMoved(Value, const triton::AxisMap &) { return true; }
  bool ofRange(triton::MakeRangeOp) { return true; }
  bool ofOther(Operation *) { return false; }
};
} // namespace

bool mlir::autodiff::isIndexArithmetic(Operation *op) {
  return op && IsArithmetic().visit(op);
}
