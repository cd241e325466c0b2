//===- PlaceMaxima.cpp - Maxima of sums, found by their place -------------===//
//
// The gradient of a maximum goes to the elements that are equal to it. Triton
// may compute a tile twice, for two layouts; where sums went into it, each
// layout adds in an order of its own, and the last bits differ. The maximum is
// then taken of one copy and looked for in the other: it is found nowhere, and
// its gradient is lost. A place is an integer, so all copies agree on it:
//
//   xᵢ = max x   becomes   i = argmax x, the first of equal ones
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Rules/Axis.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Target/Passes.h"

#include "llvm/ADT/SmallVector.h"

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

  /// Where its tile is compared with it for equality.
  SmallVector<arith::CmpFOp> findSearches();
  void place(ArrayRef<arith::CmpFOp> searches);

private:
  bool isIt(Value value);
  bool isOfTile(Value value);
  Value isTaken(OpBuilder &b, ValueRange left, ValueRange right);

  triton::ReduceOp reduce;
  Value x;
  Operation *step;
};

struct PlaceMaxima : autodiff::impl::PlaceMaximaBase<PlaceMaxima> {
  void runOnOperation() override;
};
} // namespace

/// Without conversions to a wider type, which change no order.
static Value stripExtension(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// Whether `value` is the extremum in all elements along the axis.
bool Extremum::isIt(Value value) {
  std::optional<Repeated> repeated = matchRepeated(stripExtension(value));
  return repeated && repeated->axis == reduce.getAxis() &&
         stripExtension(repeated->source) == reduce->getResult(0);
}

bool Extremum::isOfTile(Value value) {
  return stripExtension(value) == stripExtension(x);
}

SmallVector<arith::CmpFOp> Extremum::findSearches() {
  SmallVector<arith::CmpFOp> searches;
  Value tile = stripExtension(x);
  SmallVector<Value> forms = {tile};
  for (unsigned next = 0; next < forms.size(); ++next)
    for (Operation *user : forms[next].getUsers()) {
      if (isa<arith::ExtFOp>(user))
        forms.push_back(user->getResult(0));
      auto test = dyn_cast<arith::CmpFOp>(user);
      if (test && test.getPredicate() == arith::CmpFPredicate::OEQ &&
          ((isOfTile(test.getLhs()) && isIt(test.getRhs())) ||
           (isOfTile(test.getRhs()) && isIt(test.getLhs()))))
        searches.push_back(test);
    }
  return searches;
}

/// Whether (value, place) on the left is taken: as the extremum itself takes
/// values, and of equal ones, the first.
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
  SmallVector<triton::ReduceOp> extrema;
  kernel.walk([&](triton::ReduceOp reduce) {
    if (reduce.getSrcs().size() != 1)
      return;
    Combiner combiner = classifyCombiner(reduce.getCombineOp());
    if ((combiner == Combiner::Max || combiner == Combiner::Min) &&
        isFloat(reduce.getSrcs()[0].getType()) &&
        dependsOnOrder(reduce.getSrcs()[0]))
      extrema.push_back(reduce);
  });
  for (triton::ReduceOp reduce : extrema) {
    Extremum extremum(reduce);
    SmallVector<arith::CmpFOp> searches = extremum.findSearches();
    if (!searches.empty())
      extremum.place(searches);
  }
}
