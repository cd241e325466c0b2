//===- Deciders.cpp - What tells stored values apart ----------------------===//
#include "autodiff/Analysis/Deciders.h"

#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include <set>

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// For each axis of a tile, the axis of the store whose lanes have these
/// elements; kInner if every lane of the store depends on all of them.
using Axes = SmallVector<int64_t>;
constexpr int64_t kInner = -1;

/// Collects the sums that a value is computed from.
class DeciderFinder {
public:
  DeciderFinder(triton::StoreOp store, triton::FuncOp kernel)
      : store(store), kernel(kernel) {}

  bool visit(Value value, const Axes &axes);

  SmallVector<LinearForm> sums;
  /// Whether a lane depends on elements of several lanes.
  bool mixesLanes = false;

private:
  bool visitAll(ValueRange values, const Axes &axes);
  bool visitMixed(Operation *op);
  bool visitSum(LinearForm form, const Axes &axes);
  bool visitLoad(triton::LoadOp load, const Axes &axes);
  bool visitCarried(scf::ForOp loop, unsigned number, const Axes &axes);
  bool visitPassed(scf::WhileOp loop, unsigned number, const Axes &axes);
  bool visitArgument(BlockArgument argument, const Axes &axes);
  bool visitResult(OpResult result, const Axes &axes);
  std::optional<bool> visitShape(Operation *op, const Axes &axes);

  triton::StoreOp store;
  triton::FuncOp kernel;
  std::set<std::pair<void *, Axes>> visited;
};
} // namespace

/// Scalars have no axes.
bool DeciderFinder::visitAll(ValueRange values, const Axes &axes) {
  return llvm::all_of(values, [&](Value value) {
    return visit(value, isa<RankedTensorType>(value.getType()) ? axes : Axes());
  });
}

/// An operation that moves elements: the store may depend on all of them.
bool DeciderFinder::visitMixed(Operation *op) {
  mixesLanes |=
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  used.insert_range(op->getOperands());
  return llvm::all_of(used, [&](Value value) {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    return visit(value, Axes(tile ? tile.getRank() : 0, kInner));
  });
}

/// Loops around the load that do not contain the store have the same iterations
/// for all lanes.
bool DeciderFinder::visitSum(LinearForm form, const Axes &axes) {
  LinearForm sum;
  if (!form.unfold())
    return false;
  for (const LinearForm::Term &term : form.terms) {
    Dimension dimension = term.dimension;
    bool isAxis = dimension.kind == Dimension::Kind::Axis;
    if (isAxis ? axes[dimension.axis] == kInner
               : dimension.loop && !dimension.loop->isAncestor(store))
      continue;
    if (isAxis)
      dimension.axis = axes[dimension.axis];
    sum.terms.push_back({dimension, term.coefficient});
  }
  if (!sum.terms.empty() && !llvm::is_contained(sums, sum))
    sums.push_back(std::move(sum));
  return true;
}

/// Memory that the kernel does not change is the same for all programs.
bool DeciderFinder::visitLoad(triton::LoadOp load, const Axes &axes) {
  SmallVector<BlockArgument> bases = getBaseArguments(load.getPtr());
  auto isChanged = [](BlockArgument base) {
    return mayBeAccessed(
        base, [](Operation *op) { return !isa<triton::LoadOp>(op); });
  };
  return !load.getIsVolatile() && !bases.empty() &&
         llvm::none_of(bases, isChanged) && visitAll(load->getOperands(), axes);
}

/// What a loop around the store carries has another value in each iteration.
bool DeciderFinder::visitCarried(scf::ForOp loop, unsigned number,
                                 const Axes &axes) {
  bool changes =
      loop.getYieldedValues()[number] != Value(loop.getRegionIterArg(number));
  if (changes && loop->isAncestor(store)) {
    Dimension iteration{Dimension::Kind::Loop};
    iteration.loop = loop;
    LinearForm sum{ScalarExpr::constant(0),
                   {{iteration, ScalarExpr::constant(1)}}};
    if (!llvm::is_contained(sums, sum))
      sums.push_back(std::move(sum));
  }
  return visit(loop.getLowerBound(), {}) && visit(loop.getUpperBound(), {}) &&
         visit(loop.getStep(), {}) && visit(loop.getInitArgs()[number], axes) &&
         visit(loop.getYieldedValues()[number], axes);
}

bool DeciderFinder::visitPassed(scf::WhileOp loop, unsigned number,
                                const Axes &axes) {
  return visit(loop.getConditionOp().getCondition(), {}) &&
         visit(loop.getConditionOp().getArgs()[number], axes);
}

bool DeciderFinder::visitArgument(BlockArgument argument, const Axes &axes) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return number > 0
               ? visitCarried(loop, number - 1, axes)
               : visit(loop.getLowerBound(), {}) && visit(loop.getStep(), {});
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (argument.getOwner() == loop.getAfterBody())
      return visitPassed(loop, number, axes);
    return visit(loop.getInits()[number], axes) &&
           visit(loop.getYieldedValues()[number], axes);
  }
  return parent == kernel;
}

/// For operations whose result has the operand's elements, along the same or
/// other axes, or sums of them. None for other operations.
std::optional<bool> DeciderFinder::visitShape(Operation *op, const Axes &axes) {
  if (!isa<triton::ReduceOp>(op) && !triton::AxisMap::ofMove(op))
    return std::nullopt;
  auto map = *triton::AxisMap::of(op->getOpOperand(0));
  Axes source;
  for (unsigned axis : llvm::seq(map.getOperandRank())) {
    std::optional<unsigned> moved = map.toResult(axis);
    source.push_back(moved ? axes[*moved] : kInner);
  }
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return visitAll(used.getArrayRef(), {}) &&
         visitAll(op->getOperands(), source);
}

bool DeciderFinder::visitResult(OpResult result, const Axes &axes) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return visitLoad(load, axes);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitCarried(loop, number, axes);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitPassed(loop, number, axes);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visit(branch.getCondition(), {}) &&
           visit(branch.thenYield().getOperand(number), axes) &&
           visit(branch.elseYield().getOperand(number), axes);
  if (!isMemoryEffectFree(op))
    return false;
  if (std::optional<bool> found = visitShape(op, axes))
    return *found;
  if (auto custom = dyn_cast<CustomVjpOp>(op))
    return visit(custom.getValues()[number], axes);
  bool isElementwise =
      op->hasTrait<OpTrait::Elementwise>() || isa<StopGradientOp, HeldOp>(op);
  return isElementwise && op->getNumRegions() == 0
             ? visitAll(op->getOperands(), axes)
             : visitMixed(op);
}

bool DeciderFinder::visit(Value value, const Axes &axes) {
  if (!visited.insert({value.getAsOpaquePointer(), axes}).second)
    return true;
  if (!isa<FloatType>(getElementTypeOrSelf(value.getType())))
    if (std::optional<LinearForm> form = LinearForm::of(value))
      return visitSum(*form, axes);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return visitArgument(argument, axes);
  return visitResult(cast<OpResult>(value), axes);
}

/// Whether all of `sums` contain these two dimensions of the address in the
/// same proportion.
static bool moveAlike(const LinearForm::Term &a, const LinearForm::Term &b,
                      ArrayRef<LinearForm> sums) {
  auto zero = ScalarExpr::constant(0);
  return llvm::all_of(sums, [&](const LinearForm &sum) {
    ScalarExpr x = sum.coefficientOf(a.dimension).value_or(zero);
    ScalarExpr y = sum.coefficientOf(b.dimension).value_or(zero);
    return (x * b.coefficient - y * a.coefficient).getConstant() == 0;
  });
}

static bool isIn(ArrayRef<LinearForm> sums, const Dimension &dimension) {
  return llvm::any_of(sums, [&](const LinearForm &sum) {
    return sum.coefficientOf(dimension).has_value();
  });
}

std::optional<SmallVector<LinearForm>>
mlir::autodiff::findDeciders(triton::StoreOp store, triton::FuncOp kernel) {
  Value value = store.getValue();
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  Axes axes = llvm::to_vector(llvm::seq<int64_t>(tile ? tile.getRank() : 0));
  DeciderFinder finder(store, kernel);
  std::optional<LinearForm> address = LinearForm::of(store.getPtr());
  if (!address || !address->unfold() || !finder.visit(value, axes))
    return std::nullopt;
  SmallVector<LinearForm> &sums = finder.sums, deciders;
  auto zero = ScalarExpr::constant(0);
  // Where a lane depends on others, lanes are deciders, too.
  if (finder.mixesLanes)
    for (int64_t axis : axes)
      if (findLaneStep(value, axis) != 0) {
        Dimension lane{Dimension::Kind::Axis, unsigned(axis)};
        sums.push_back({zero, {{lane, ScalarExpr::constant(1)}}});
      }
  for (const LinearForm::Term &term : address->terms) {
    if (!isIn(sums, term.dimension) || term.coefficient.getConstant() == 0)
      continue;
    auto same = llvm::find_if(deciders, [&](const LinearForm &decider) {
      return !finder.mixesLanes && moveAlike(term, decider.terms.front(), sums);
    });
    if (same == deciders.end())
      deciders.push_back({zero, {term}});
    else
      same->terms.push_back(term);
  }
  for (const LinearForm &sum : sums)
    for (const LinearForm::Term &term : sum.terms)
      if (!isIn(deciders, term.dimension))
        deciders.push_back({zero, {term}});
  return deciders;
}
