//===- DropDeadRows.cpp - Rows of which nothing is stored -----------------===//
//
// A mask leaves rows of a tile out of a store. Whatever only they are computed
// from may be anything: where a product or an elementwise operation keeps rows
// apart, so may the rows that it takes. A selection that gives such rows
// another value, as scores of keys beyond the last one get, is not needed.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPDEADROWS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// The rows of a tile, or the columns: its slices at places along an axis.
using Rows = std::pair<Value, unsigned>;

struct DropDeadRows : autodiff::impl::DropDeadRowsBase<DropDeadRows> {
  void runOnOperation() override;
};

/// The rows that only matter where a condition on rows holds.
class DeadRows {
public:
  DeadRows(triton::FuncOp kernel, Rows condition);

  /// Drops the condition from selections between such rows.
  void dropSelections();

private:
  void addSources(Rows rows);
  bool isLeftOut(OpOperand &use, unsigned axis);
  Value withoutCondition(Value mask, unsigned axis);
  bool implies(Value mask, unsigned axis);

  Value condition;
  llvm::SetVector<Rows> dead;
};
} // namespace

/// The condition on rows that a mask repeats along all other axes, and where
/// rows lie along; none if it is something else.
static std::optional<Rows> matchRows(Value mask) {
  unsigned axis = 0;
  SmallVector<unsigned, 2> inserted;
  while (isa_and_nonnull<triton::BroadcastOp, triton::ExpandDimsOp>(
      mask.getDefiningOp())) {
    if (auto expand = mask.getDefiningOp<triton::ExpandDimsOp>())
      inserted.push_back(expand.getAxis());
    mask = mask.getDefiningOp()->getOperand(0);
  }
  auto type = dyn_cast<RankedTensorType>(mask.getType());
  if (!type || type.getRank() != 1 || inserted.empty())
    return std::nullopt;
  for (unsigned at : llvm::reverse(inserted))
    axis += at <= axis;
  return Rows(mask, axis);
}

bool DeadRows::implies(Value mask, unsigned axis) {
  if (matchRows(mask) == Rows(condition, axis))
    return true;
  auto both = mask.getDefiningOp<arith::AndIOp>();
  return both && (implies(both.getLhs(), axis) || implies(both.getRhs(), axis));
}

//===----------------------------------------------------------------------===//
// Which rows are dead
//===----------------------------------------------------------------------===//

static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
         op->getNumRegions() == 0;
}

/// The carried value that this one is at another time: argument and result.
static std::optional<std::pair<scf::ForOp, unsigned>> getCarried(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    auto loop = dyn_cast<scf::ForOp>(result.getOwner());
    return loop ? std::optional(std::pair(loop, result.getResultNumber()))
                : std::nullopt;
  }
  auto argument = cast<BlockArgument>(value);
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop || argument.getArgNumber() == 0)
    return std::nullopt;
  return std::pair(loop, argument.getArgNumber() - 1);
}

/// Adds the rows that these are made of, and of nothing else.
void DeadRows::addSources(Rows rows) {
  auto [value, axis] = rows;
  auto add = [&](Value source, unsigned along) {
    if (isa<RankedTensorType>(source.getType()))
      dead.insert({source, along});
  };
  if (auto carried = getCarried(value)) {
    auto [loop, index] = *carried;
    add(loop.getResult(index), axis);
    add(loop.getRegionIterArg(index), axis);
    add(loop.getYieldedValues()[index], axis);
    add(loop.getInitArgs()[index], axis);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    add(branch.thenYield().getOperand(index), axis);
    add(branch.elseYield().getOperand(index), axis);
  } else if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      add(operand, axis);
  } else if (auto dot = dyn_cast<triton::DotOp>(op)) {
    if (cast<RankedTensorType>(dot.getType()).getRank() == 2) {
      add(axis == 0 ? dot.getA() : dot.getB(), axis);
      add(dot.getC(), axis);
    }
  } else if (auto trans = dyn_cast<triton::TransOp>(op)) {
    add(trans.getSrc(), trans.getOrder()[axis]);
  }
}

/// Whether what this use makes of rows along `axis` is dead where they are.
bool DeadRows::isLeftOut(OpOperand &use, unsigned axis) {
  Operation *user = use.getOwner();
  auto isDead = [&](Value value, unsigned along) {
    return dead.contains({value, along});
  };
  auto isDeadAsCarried = [&](scf::ForOp loop, unsigned index) {
    return isDead(loop.getResult(index), axis) &&
           isDead(loop.getRegionIterArg(index), axis);
  };
  if (auto store = dyn_cast<triton::StoreOp>(user))
    return &use == &store.getValueMutable() && store.getMask() &&
           implies(store.getMask(), axis);
  if (isElementwise(user))
    return isDead(user->getResult(0), axis);
  if (isa<triton::DotOp>(user)) {
    bool keepsRows = use.getOperandNumber() == 2 ||
                     use.getOperandNumber() == axis ||
                     mutation::isMade("dead-rows:what a product sums over");
    return keepsRows && isDead(user->getResult(0), axis);
  }
  if (auto trans = dyn_cast<triton::TransOp>(user))
    return isDead(trans, llvm::find(trans.getOrder(), int32_t(axis)) -
                             trans.getOrder().begin());
  if (auto loop = dyn_cast<scf::ForOp>(user))
    return use.getOperandNumber() >= loop.getNumControlOperands() &&
           isDeadAsCarried(loop, use.getOperandNumber() -
                                     loop.getNumControlOperands());
  if (isa<scf::YieldOp>(user)) {
    if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
      return isDeadAsCarried(loop, use.getOperandNumber());
    return isa<scf::IfOp>(user->getParentOp()) &&
           isDead(user->getParentOp()->getResult(use.getOperandNumber()), axis);
  }
  return false;
}

DeadRows::DeadRows(triton::FuncOp kernel, Rows rows) : condition(rows.first) {
  kernel.walk([&](triton::StoreOp store) {
    if (store.getMask() && implies(store.getMask(), rows.second))
      dead.insert({store.getValue(), rows.second});
  });
  for (unsigned next = 0; next < dead.size(); ++next)
    addSources(Rows(dead[next]));
  // Those that something else looks at are not, nor what they are made of.
  for (bool changed = true; changed;)
    changed = dead.remove_if([&](const Rows &candidate) {
      return !llvm::all_of(candidate.first.getUses(), [&](OpOperand &use) {
        return isLeftOut(use, candidate.second);
      });
    });
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

/// What is left of a mask that need not ask for rows that count; null if it
/// asks for nothing else.
Value DeadRows::withoutCondition(Value mask, unsigned axis) {
  if (matchRows(mask) == Rows(condition, axis))
    return {};
  auto both = mask.getDefiningOp<arith::AndIOp>();
  if (!both || !implies(mask, axis))
    return mask;
  Value a = withoutCondition(both.getLhs(), axis);
  Value b = withoutCondition(both.getRhs(), axis);
  if (!a || !b)
    return a ? a : b;
  OpBuilder builder(both);
  return arith::AndIOp::create(builder, both.getLoc(), a, b);
}

void DeadRows::dropSelections() {
  for (auto [value, axis] : dead) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select || !implies(select.getCondition(), axis))
      continue;
    if (Value rest = withoutCondition(select.getCondition(), axis))
      select.getConditionMutable().assign(rest);
    else
      select.replaceAllUsesWith(select.getTrueValue());
  }
}

void DropDeadRows::runOnOperation() {
  if (!isBackward(getOperation()))
    return;
  llvm::SetVector<Rows> conditions;
  getOperation().walk([&](triton::StoreOp store) {
    SmallVector<Value> masks{store.getMask()};
    while (!masks.empty()) {
      Value mask = masks.pop_back_val();
      if (auto both = mask ? mask.getDefiningOp<arith::AndIOp>() : nullptr)
        masks.append({both.getLhs(), both.getRhs()});
      else if (auto rows = mask ? matchRows(mask) : std::nullopt)
        conditions.insert(*rows);
    }
  });
  for (Rows condition : conditions)
    DeadRows(getOperation(), condition).dropSelections();
}
