//===- Maxima.cpp - What is a maximum, and how it may move ----------------===//
#include "Maxima.h"

#include "autodiff/Rules/Combiner.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::autodiff;

Operation *mlir::autodiff::getCarriedMaximum(scf::ForOp loop, unsigned index) {
  Operation *next = loop.getYieldedValues()[index].getDefiningOp();
  return isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(next) ? next
                                                                    : nullptr;
}

bool mlir::autodiff::isMaximum(Value value) {
  Operation *source = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<triton::ReduceOp>(source))
    return reduce.getSrcs().size() == 1 &&
           classifyCombiner(reduce.getCombineOp()) == Combiner::Max;
  auto loop = dyn_cast_or_null<scf::ForOp>(source);
  return loop &&
         getCarriedMaximum(loop, cast<OpResult>(value).getResultNumber());
}

SmallVector<unsigned, 2> mlir::autodiff::seedAxes(Value maximum) {
  auto tile = dyn_cast<RankedTensorType>(maximum.getType());
  return llvm::to_vector<2>(llvm::seq<unsigned>(0, tile ? tile.getRank() : 0));
}
