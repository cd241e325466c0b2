//===- PlaceMaxima.cpp - Maxima of sums, found by their place -------------===//
//
// The gradient of a maximum goes to the elements that are equal to it. Triton
// may compute a tile twice, in two layouts. If elements are sums, each layout
// adds in its own order, and last bits differ. If the maximum of one copy is
// then compared with the other copy, no element is equal, and the gradient is
// lost. A position is an integer, on which both copies agree:
//
//   xᵢ = max x   becomes   i = argmax x, the first of equal ones
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Builders/Axis.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Target/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PLACEMAXIMA
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A maximum, or minimum, of a tile along an axis.
class Extremum {
public:
  Extremum(triton::ReduceOp reduce)
      : reduce(reduce), x(reduce.getSrcs()[0]),
        step(&reduce.getCombineOp().front().front()) {}

  /// Replaces comparisons of elements with the extremum by comparisons of
  /// positions.
  void place(ArrayRef<arith::CmpFOp> searches);

private:
  Value isTaken(OpBuilder &b, ValueRange left, ValueRange right);

  triton::ReduceOp reduce;
  Value x;
  Operation *step;
};

struct PlaceMaxima : autodiff::impl::PlaceMaximaBase<PlaceMaxima> {
  void runOnOperation() override;
};
} // namespace

/// Looks through conversions to a wider type, which do not change the order.
static Value stripExtension(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// The extremum that a comparison looks for in the tile it was taken from. Null
/// if it looks for none, or if all copies of the tile are equal.
static triton::ReduceOp findSought(arith::CmpFOp test) {
  if (test.getPredicate() != arith::CmpFPredicate::OEQ)
    return {};
  for (auto [tile, other] : {std::pair(test.getLhs(), test.getRhs()),
                             std::pair(test.getRhs(), test.getLhs())}) {
    auto repeated = matchRepeated(stripExtension(other));
    auto reduce =
        repeated
            ? stripExtension(repeated->source).getDefiningOp<triton::ReduceOp>()
            : triton::ReduceOp();
    if (!reduce || reduce.getSrcs().size() != 1 ||
        repeated->axis != reduce.getAxis())
      continue;
    Value x = reduce.getSrcs()[0];
    Combiner combiner = classifyCombiner(reduce.getCombineOp());
    if ((combiner == Combiner::Max || combiner == Combiner::Min) &&
        isFloat(x.getType()) && stripExtension(tile) == stripExtension(x) &&
        dependsOnOrder(x))
      return reduce;
  }
  return {};
}

/// Whether the (value, position) on the left is taken, in the order of the
/// extremum; of equal values, the first one.
Value Extremum::isTaken(OpBuilder &b, ValueRange left, ValueRange right) {
  using arith::CmpFPredicate;
  Location loc = reduce.getLoc();
  auto test = [&](CmpFPredicate predicate, Value lhs, Value rhs) -> Value {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  };
  bool isMaximum = isa<arith::MaximumFOp, arith::MaxNumFOp>(step);
  bool takesNaN = isa<arith::MaximumFOp, arith::MinimumFOp>(step);
  Value isBeyond = test(isMaximum ? CmpFPredicate::OGT : CmpFPredicate::OLT,
                        left[0], right[0]);
  Value isEarlier = arith::AndIOp::create(
      b, loc, test(CmpFPredicate::OEQ, left[0], right[0]),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, left[1],
                            right[1]));
  Value unordered = takesNaN ? left[0] : right[0];
  Value isByNaN = test(CmpFPredicate::UNO, unordered, unordered);
  return arith::OrIOp::create(
      b, loc, arith::OrIOp::create(b, loc, isBeyond, isEarlier), isByNaN);
}

void Extremum::place(ArrayRef<arith::CmpFOp> searches) {
  OpBuilder b(reduce);
  Location loc = reduce.getLoc();
  unsigned axis = reduce.getAxis();
  auto tile = cast<RankedTensorType>(x.getType());
  Value position = Axis(b, loc, tile.getShape(), axis).position();
  SmallVector<Value> found =
      reduceWith(b, loc, {x, position}, axis,
                 [&](OpBuilder &inside, ValueRange left, ValueRange right) {
                   Value isLeft = isTaken(inside, left, right);
                   SmallVector<Value> taken;
                   for (auto [one, other] : llvm::zip_equal(left, right))
                     taken.push_back(arith::SelectOp::create(
                         inside, loc, isLeft, one, other));
                   return taken;
                 });
  reduce->getResult(0).replaceAllUsesWith(found[0]);
  auto integers = cast<RankedTensorType>(position.getType());
  Value place = repeatAlong(b, loc, found[1], axis, integers);
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, position, place);
  for (arith::CmpFOp search : searches) {
    search->getResult(0).replaceAllUsesWith(isThere);
    search->erase();
  }
  reduce->erase();
}

void PlaceMaxima::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  if (!kernel->hasAttr(kRoleAttr) || mutation::isMade("place-maxima:none"))
    return;
  llvm::MapVector<triton::ReduceOp, SmallVector<arith::CmpFOp>> searches;
  kernel.walk([&](arith::CmpFOp test) {
    if (triton::ReduceOp sought = findSought(test))
      searches[sought].push_back(test);
  });
  for (auto &[extremum, tests] : searches)
    Extremum(extremum).place(tests);
}
