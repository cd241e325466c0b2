//===- FitProducts.cpp - Products that the matrix unit takes --------------===//
//
// The adjoint of a product sums over rows or columns of the forward's, and
// these may be few. Triton's frontend refuses a product over too few elements.
// Such a product becomes a float32 product without the matrix unit, or is
// padded with zeros between its elements: a₀ 0 a₁ 0 … · b₀ 0 b₁ 0 ….
//
//===----------------------------------------------------------------------===//
#include "BroadcastProduct.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Products.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_FITPRODUCTS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// A·B + C in float32, which represents A and B exactly.
static Value multiplyAsFloats(OpBuilder &b, Location loc, Value lhs, Value rhs,
                              Value c) {
  return triton::DotOp::create(
      b, loc, c.getType(), castFloat(b, loc, lhs, b.getF32Type()),
      castFloat(b, loc, rhs, b.getF32Type()), c, triton::InputPrecision::IEEE,
      /*maxNumImpreciseAcc=*/0);
}

static void multiplyAsFloats(triton::DotOp dot) {
  OpBuilder b(dot);
  Location loc = dot.getLoc();
  Value c = castFloat(b, loc, dot.getC(), b.getF32Type());
  Value product = multiplyAsFloats(b, loc, dot.getA(), dot.getB(), c);
  dot.replaceAllUsesWith(
      castFloat(b, loc, product, getElementTypeOrSelf(dot.getType())));
  dot.erase();
}

static void fit(triton::DotOp dot, const Target &target,
                int64_t mostMultiplyAdds) {
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  Type element = lhs.getElementType();
  int64_t length = lhs.getShape().back();
  bool isExact = isa<FloatType>(element) && !element.isF64();
  if (isExact && elementsOf(dot.getType()) * length <= mostMultiplyAdds)
    multiplyAsFloats(dot);
  else
    spreadSum(dot, target.getLeastSum(dot) / length);
}

/// Rewrites a sum so that Triton does not turn it into a wrong product; a real
/// product becomes a float32 product.
static void fit(BroadcastProduct found) {
  triton::ReduceOp sum = found.sum;
  if (!found.isProduct()) {
    // In place, since CSE would merge a new operation with the old one.
    arith::MulFOp factors = found.factors;
    Value lhs = factors.getLhs();
    factors.getLhsMutable().assign(factors.getRhs());
    factors.getRhsMutable().assign(lhs);
    return;
  }
  OpBuilder b(sum);
  Location loc = sum.getLoc();
  Type type = sum->getResult(0).getType();
  Value zero = constantOf(b, loc, withElementType(type, b.getF32Type()), 0.0);
  Value product = multiplyAsFloats(b, loc, found.lhs, found.rhs, zero);
  sum->getResult(0).replaceAllUsesWith(
      castFloat(b, loc, product, getElementTypeOrSelf(type)));
  sum.erase();
}

namespace {
struct FitProducts : autodiff::impl::FitProductsBase<FitProducts> {
  using FitProductsBase::FitProductsBase;

  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kRoleAttr))
      return;
    const Target &target = Target::of(kernel);
    kernel.walk([](triton::ReduceOp sum) {
      if (auto found = BroadcastProduct::match(sum))
        fit(*found);
    });
    kernel.walk([&](triton::DotOp dot) {
      if (target.isTooShort(dot))
        fit(dot, target,
            mostMultiplyAdds < 0 ? target.getMostMultiplyAdds()
                                 : mostMultiplyAdds);
    });
  }
};
} // namespace
