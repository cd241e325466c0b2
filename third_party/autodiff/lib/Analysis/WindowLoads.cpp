//===- WindowLoads.cpp - Loads of neighbouring elements -------------------===//
#include "autodiff/Analysis/WindowLoads.h"

#include "autodiff/Analysis/Pointers.h"

using namespace mlir;
using namespace mlir::autodiff;

static std::optional<LinearForm> findAddress(triton::LoadOp load) {
  return LinearForm::of(load.getPtr(), {}, ScalarExpr::From::Memory);
}

/// How much an address grows when the bounded index grows by one; none if the
/// address is not a multiple of that plus other terms.
static std::optional<ScalarExpr> findStep(const LinearForm &address,
                                          const LinearForm &bounded) {
  std::optional<ScalarExpr> step;
  for (const LinearForm::Term &term : bounded.terms) {
    auto coefficient = address.coefficientOf(term.dimension);
    auto here =
        coefficient ? coefficient->dividedBy(term.coefficient) : std::nullopt;
    if (!here || (step && !(*step == *here)))
      return std::nullopt;
    step = here;
  }
  return step;
}

bool mlir::autodiff::isReadBefore(triton::LoadOp load,
                                  const LinearForm &bounded, int64_t count) {
  std::optional<LinearForm> address = findAddress(load);
  auto step = address ? findStep(*address, bounded) : std::nullopt;
  BlockArgument base = getBaseArgument(load.getPtr());
  if (!step || !base)
    return false;
  ScalarExpr distance = *step * ScalarExpr::constant(count);
  auto isAhead = [&](triton::LoadOp other) {
    auto there = getBaseArgument(other.getPtr()) == base ? findAddress(other)
                                                         : std::nullopt;
    if (!there)
      return false;
    LinearForm apart = *there - *address;
    return apart.isConstant() && (apart.constant - distance).getConstant() == 0;
  };
  return load->getParentOfType<triton::FuncOp>()
      .walk([&](triton::LoadOp other) {
        return isAhead(other) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
