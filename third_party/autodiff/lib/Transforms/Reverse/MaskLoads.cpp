//===- MaskLoads.cpp - Loads of lanes that outputs depend on --------------===//
//
// A kernel may load more than it uses: rows behind the end of a batch,
// positions behind the end of a tensor. Memory there may hold anything, or
// belong to nobody. A backward need not load it: it would multiply zeros by it,
// and store gradients of zero. So each load gets a mask for the live lanes
// (LiveLanes.h), as far as these are known for the elements that it reads, in
// any program and iteration. Lanes that decide something are live, too: a
// selection, an address, a branch.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LaneBounds.h"
#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MASKLOADS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using Kind = Dimension::Kind;

/// The width of the integers that a kernel compares; bounds need the same.
static unsigned findWidth(triton::FuncOp kernel) {
  unsigned width = 32;
  kernel.walk([&](arith::CmpIOp compare) {
    if (auto type = dyn_cast<IntegerType>(
            getElementTypeOrSelf(compare.getLhs().getType())))
      width = std::max(width, type.getWidth());
  });
  return width;
}

namespace {
struct MaskLoads : autodiff::impl::MaskLoadsBase<MaskLoads> {
  using MaskLoadsBase::MaskLoadsBase;

  void transform() override;
};

/// Emits a bound for the lanes of a load, in front of it.
class BoundEmitter {
public:
  explicit BoundEmitter(triton::LoadOp load)
      : b(load), load(load), loc(load.getLoc()),
        kernel(load->getParentOfType<triton::FuncOp>()),
        type(b.getIntegerType(findWidth(kernel))) {
    if (auto tile = dyn_cast<RankedTensorType>(load.getType()))
      shape.assign(tile.getShape().begin(), tile.getShape().end());
  }

  static bool canEmit(const Constraint &constraint, triton::LoadOp load);
  Value emit(const Constraint &constraint);

private:
  Value emit(const ScalarExpr &number) {
    return cast(number.emit(b, loc, kernel.getArguments()));
  }
  Value cast(Value number) { return castInteger(b, loc, number, type); }
  Value add(Value sum, Value term);
  Value emit(const LinearForm::Term &term);

  OpBuilder b;
  triton::LoadOp load;
  Location loc;
  triton::FuncOp kernel;
  Type type;
  SmallVector<int64_t> shape;
};
} // namespace

bool BoundEmitter::canEmit(const Constraint &constraint, triton::LoadOp load) {
  // Later passes may change a kernel's grid.
  auto isEmittable = [](const ScalarExpr &number) {
    return !number.readsMemory() && !number.dependsOnGrid();
  };
  return isEmittable(constraint.bound) &&
         llvm::all_of(constraint.form.terms, [&](const LinearForm::Term &term) {
           const Dimension &dimension = term.dimension;
           if (!isEmittable(term.coefficient))
             return false;
           switch (dimension.kind) {
           case Kind::Axis:
             return true;
           case Kind::Program:
             return isEmittable(*dimension.digit);
           case Kind::Index:
             return dimension.loop->isAncestor(load);
           case Kind::Loop: {
             auto loop = llvm::cast<scf::ForOp>(dimension.loop);
             return loop->isAncestor(load) &&
                    term.coefficient.dividedBy(*ScalarExpr::of(loop.getStep()));
           }
           default:
             return false;
           }
         });
}

/// The sum of integers, of which tiles have one axis each; null is zero.
Value BoundEmitter::add(Value sum, Value term) {
  if (!sum)
    return term;
  auto tileOf = [](Value value) {
    return dyn_cast<RankedTensorType>(value.getType());
  };
  if (auto tile = tileOf(sum); tile && !tileOf(term))
    term = triton::SplatOp::create(b, loc, tile, term);
  if (auto tile = tileOf(term); tile && !tileOf(sum))
    sum = triton::SplatOp::create(b, loc, tile, sum);
  return arith::AddIOp::create(b, loc, sum, term);
}

Value BoundEmitter::emit(const LinearForm::Term &term) {
  const Dimension &dimension = term.dimension;
  ScalarExpr coefficient = term.coefficient;
  auto times = [&](Value value) -> Value {
    if (coefficient.getConstant() == 1)
      return value;
    return arith::MulIOp::create(
        b, loc, value, splatTo(b, loc, emit(coefficient), value.getType()));
  };
  switch (dimension.kind) {
  case Kind::Axis:
    return times(
        cast(triton::MakeRangeOp::create(b, loc, 0, shape[dimension.axis])));
  case Kind::Program:
    return times(emit(*dimension.digit));
  case Kind::Index:
    return times(
        cast(llvm::cast<scf::ForOp>(dimension.loop).getInductionVar()));
  default: {
    auto loop = llvm::cast<scf::ForOp>(dimension.loop);
    coefficient = *coefficient.dividedBy(*ScalarExpr::of(loop.getStep()));
    Value distance = arith::SubIOp::create(b, loc, loop.getInductionVar(),
                                           loop.getLowerBound());
    return times(cast(distance));
  }
  }
}

Value BoundEmitter::emit(const Constraint &constraint) {
  Value scalars;
  for (const LinearForm::Term &term : constraint.form.terms)
    if (term.dimension.kind != Kind::Axis)
      scalars = add(scalars, emit(term));
  // Axes are broadcast at the end, since most bounds have one.
  Value sum = scalars;
  SmallVector<unsigned> axes;
  for (const LinearForm::Term &term : constraint.form.terms) {
    if (term.dimension.kind != Kind::Axis)
      continue;
    Value lanes = emit(term);
    if (axes.empty()) {
      sum = add(sum, lanes);
    } else {
      if (axes.size() == 1)
        sum = repeatOver(b, loc, sum, axes, shape);
      sum = add(sum, repeatOver(b, loc, lanes, {term.dimension.axis}, shape));
    }
    axes.push_back(term.dimension.axis);
  }
  Value bound = splatTo(b, loc, emit(constraint.bound), sum.getType());
  Value holds =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, sum, bound);
  return axes.size() > 1 ? holds : repeatOver(b, loc, holds, axes, shape);
}

/// Restricts a load to lanes for which bounds hold.
static void addBounds(triton::LoadOp load, ArrayRef<Constraint> bounds) {
  OpBuilder b(load);
  Value mask = load.getMask();
  for (const Constraint &bound : bounds) {
    Value holds = BoundEmitter(load).emit(bound);
    mask = bothHold(b, load.getLoc(), mask, holds);
  }
  if (!load.getOther())
    load.getOtherMutable().assign(zeroOf(b, load.getLoc(), load.getType()));
  load.getMaskMutable().assign(mask);
  load->setAttr(kNarrowedAttr, b.getUnitAttr());
}

void MaskLoads::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp kernel = getDifferentiated(module);
  if (!kernel || mutation::isMade("loads:of lanes that nobody needs"))
    return;
  Activity activity(kernel, findWanted(kernel, allWanted, wanted),
                    findWithCotangents(kernel, allCotangents, cotangents));
  if (failed(activity.check()))
    return signalPassFailure();
  bool isUnaware = mutation::isMade("loads:of lanes that decide");
  LiveLanes lanes(kernel, activity, repeated,
                  isUnaware ? LiveLanes::Effects::Differentiable
                            : LiveLanes::Effects::All);
  SmallVector<std::pair<triton::LoadOp, SmallVector<Constraint>>> missing;
  SmallVector<ScalarExpr> assumed;
  kernel.walk([&](triton::LoadOp load) {
    Value value = load.getResult();
    if (!isDifferentiable(value.getType()) || !activity.isUseful(value) ||
        load.getIsVolatile())
      return;
    Constraints bounds = findMissingBounds(
        load, lanes.without(lanes.ifAllRun(lanes.of(value)), load.getMask()),
        assume ? &assumed : nullptr);
    if (bounds)
      llvm::erase_if(*bounds, [&](const Constraint &bound) {
        return bound.form.terms.empty() || !BoundEmitter::canEmit(bound, load);
      });
    if (bounds && !bounds->empty())
      missing.push_back({load, *bounds});
  });
  if (missing.empty())
    return;
  // The forward's loads stay; bounds refer to loops of the copy.
  if (kernel == getPrimal(module)) {
    (void)getOrCreateDifferentiated(module);
    return transform();
  }
  for (auto &[load, bounds] : missing)
    addBounds(load, bounds);
  assumeNotNegative(module, assumed);
}
