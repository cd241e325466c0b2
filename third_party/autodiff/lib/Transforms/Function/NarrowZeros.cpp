//===- NarrowZeros.cpp - Zeros only where a product is no number ----------===//
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_NARROWZEROS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static void narrow(arith::SelectOp select) {
  OpBuilder b(select);
  Location loc = select.getLoc();
  bool isZeroIf = matchPattern(select.getTrueValue(), m_AnyZeroFloat());
  if (!isZeroIf && !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return;
  Value product = isZeroIf ? select.getFalseValue() : select.getTrueValue();
  auto is = [&](arith::CmpFPredicate predicate) -> Value {
    return arith::CmpFOp::create(b, loc, predicate, product, product);
  };
  Value condition = select.getCondition();
  condition = isZeroIf
                  ? Value(arith::AndIOp::create(b, loc, condition,
                                                is(arith::CmpFPredicate::UNE)))
                  : Value(arith::OrIOp::create(b, loc, condition,
                                               is(arith::CmpFPredicate::OEQ)));
  select.getConditionMutable().assign(condition);
}

namespace {
struct NarrowZeros : autodiff::impl::NarrowZerosBase<NarrowZeros> {
  void runOnOperation() override {
    getOperation().walk([](arith::SelectOp select) {
      if (select->removeDiscardableAttr(kUnlessZeroAttr) &&
          !mutation::isMade("zeros:wherever a cotangent is zero"))
        narrow(select);
    });
  }
};
} // namespace
