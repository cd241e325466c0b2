//===- Ties.cpp - Comparisons that hold exactly by construction -----------===//
#include "autodiff/Analysis/Ties.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The floats among `values`.
static SmallVector<Value> keepFloats(ValueRange values) {
  return llvm::to_vector(llvm::make_filter_range(
      values, [](Value value) { return isFloat(value.getType()); }));
}

/// Whether all elements of the results are elements of the operands, maybe
/// rounded or negated.
static bool choosesElements(Operation *op) {
  return triton::takesElements(op) ||
         isa<ResidualOp, StopGradientOp, triton::FpToFpOp, triton::ClampFOp,
             arith::ExtFOp, arith::TruncFOp, arith::SelectOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::NegFOp, math::AbsFOp>(op);
}

/// Whether the combine function of a reduction or scan only selects.
static bool onlyChooses(Region &combine) {
  return llvm::all_of(combine.getOps(), [](Operation &op) {
    return choosesElements(&op) || op.hasTrait<OpTrait::IsTerminator>() ||
           isa<arith::CmpFOp>(op) ||
           llvm::none_of(op.getResultTypes(), isFloat);
  });
}

/// The floats that the elements of `value` are elements of.
static SmallVector<Value> findChoices(Value value) {
  SmallVector<Value> choices;
  Operation *op = value.getDefiningOp();
  if (!op)
    return choices;
  bool chooses = choosesElements(op);
  if (isa<triton::ReduceOp, triton::ScanOp>(op))
    chooses = onlyChooses(op->getRegion(0));
  if (chooses)
    choices = keepFloats(op->getOperands());
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (Block *side : {branch.thenBlock(), branch.elseBlock()})
      choices.push_back(side->getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
  return choices;
}

/// `values` and everything that they were chosen from, each value before those
/// that it was chosen from.
static SmallVector<Value> chosenFrom(ValueRange values) {
  SmallVector<Value> order;
  llvm::DenseSet<Value> seen;
  // Values, each with what is still to be looked at.
  SmallVector<std::pair<Value, SmallVector<Value>>> pending;
  pending.push_back({Value(), llvm::to_vector(values)});
  while (!pending.empty()) {
    auto &[value, choices] = pending.back();
    if (choices.empty()) {
      if (value)
        order.push_back(value);
      pending.pop_back();
      continue;
    }
    Value next = choices.pop_back_val();
    if (seen.insert(next).second)
      pending.push_back({next, findChoices(next)});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

//===----------------------------------------------------------------------===//
// The same bits in every kernel
//===----------------------------------------------------------------------===//

/// Whether a sum with `value` as an operand cannot be fused with a
/// multiplication that computes it.
static bool standsAlone(Value value) {
  return llvm::all_of(chosenFrom(value), [](Value source) {
    Operation *op = source.getDefiningOp();
    return !op || !findChoices(source).empty() ||
           op->hasTrait<OpTrait::ConstantLike>() ||
           isa<triton::LoadOp, arith::AddFOp, arith::SubFOp, arith::SIToFPOp,
               arith::UIToFPOp>(op);
  });
}

bool mlir::autodiff::isReproducible(Value value,
                                    llvm::DenseMap<Value, bool> &known) {
  auto [it, isNew] = known.try_emplace(value, true);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  bool holds = true;
  if (!op) {
    // A carried value of a loop may be a sum.
    holds = !isFloat(value.getType()) ||
            isa<triton::FuncOp>(value.getParentBlock()->getParentOp());
  } else if (isa<triton::ReduceOp, triton::ScanOp>(op)) {
    holds = onlyChooses(op->getRegion(0));
  } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    holds = llvm::all_of(op->getOperands(), standsAlone);
  } else {
    holds = op->getNumRegions() == 0 && !isa<triton::DotOp>(op) &&
            (isPure(op) || isa<triton::LoadOp>(op));
  }
  holds = holds && (!op || llvm::all_of(op->getOperands(), [&](Value operand) {
            return isReproducible(operand, known);
          }));
  return known[value] = holds;
}

bool mlir::autodiff::isReproducible(Value value) {
  llvm::DenseMap<Value, bool> known;
  return isReproducible(value, known);
}

//===----------------------------------------------------------------------===//
// Ties
//===----------------------------------------------------------------------===//

namespace {
class Ties {
public:
  /// Looks at the values that meet in the arithmetic behind `decision`.
  void visit(Operation *decision);

  llvm::DenseSet<Value> found;

private:
  void meet(ValueRange values);

  llvm::DenseSet<Operation *> visited;
  llvm::DenseMap<Value, bool> reproducible;
};
} // namespace

namespace {
/// A value among those that some others were chosen from. In the graph whose
/// edges lead from a value to what it was chosen from, one dominates another if
/// all ways to that go through it.
struct Choice {
  static constexpr int kUnknown = -2, kBegin = -1;

  SmallVector<int, 2> from;
  /// The last choice that dominates this one.
  int dominator = kUnknown;
  unsigned depth = 0;
  /// Whether the bits of this value, or of one it was chosen from, are open.
  bool isOpen = false;
  /// The least depth of a dominator of such a value below this one.
  unsigned highest = std::numeric_limits<unsigned>::max();
};
} // namespace

/// The graph of what `roots` were chosen from; `all` is in order.
static SmallVector<Choice> dominate(ValueRange roots, ArrayRef<Value> all) {
  SmallVector<Choice> choices(all.size());
  llvm::DenseMap<Value, int> places;
  for (auto [place, value] : llvm::enumerate(all))
    places[value] = place;
  for (Value root : roots)
    choices[places[root]].dominator = Choice::kBegin;
  for (auto [place, value] : llvm::enumerate(all)) {
    Choice &choice = choices[place];
    choice.depth = choice.dominator == Choice::kBegin
                       ? 1
                       : choices[choice.dominator].depth + 1;
    for (Value source : findChoices(value)) {
      choice.from.push_back(places[source]);
      // What dominates both ways to the source: dominators come earlier.
      int one = place, other = choices[places[source]].dominator;
      while (other != Choice::kUnknown && one != other) {
        int &later = one > other ? one : other;
        later = choices[later].dominator;
      }
      choices[places[source]].dominator = one;
    }
  }
  return choices;
}

/// A value meets one that it was chosen from if there is a way to that which
/// does not go through it.
void Ties::meet(ValueRange values) {
  SmallVector<Value> all = chosenFrom(values);
  auto isOpen = [&](Value source) {
    return !isReproducible(source, reproducible);
  };
  if (llvm::none_of(all, isOpen))
    return;
  SmallVector<Choice> choices = dominate(values, all);
  for (auto [value, choice] :
       llvm::zip_equal(llvm::reverse(all), llvm::reverse(choices))) {
    choice.isOpen = isOpen(value);
    for (int place : choice.from) {
      const Choice &source = choices[place];
      if (!source.isOpen)
        continue;
      choice.isOpen = true;
      choice.highest =
          std::min({choice.highest, source.highest, source.depth - 1});
    }
    if (choice.highest < choice.depth)
      found.insert(value);
  }
}

void Ties::visit(Operation *op) {
  if (!visited.insert(op).second)
    return;
  SmallVector<Value> floats = keepFloats(op->getOperands());
  if (floats.size() > 1 && !choosesElements(op))
    meet(floats);
  for (Value value : floats)
    if (Operation *source = value.getDefiningOp();
        source && source->getNumRegions() == 0 && isPure(source))
      visit(source);
}

llvm::DenseSet<Value> mlir::autodiff::findTies(Operation *root) {
  Ties ties;
  root->walk([&](Operation *op) {
    if (isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp>(op) &&
        !op->getParentOfType<triton::ReduceOp>() &&
        !op->getParentOfType<triton::ScanOp>())
      ties.visit(op);
  });
  return std::move(ties.found);
}

llvm::DenseSet<Value>
mlir::autodiff::findTieCounts(Operation *root,
                              const llvm::DenseSet<Value> &ties) {
  llvm::DenseSet<Value> counts;
  if (ties.empty())
    return counts;
  auto isTied = [&](Value value) { return ties.contains(value); };
  auto isCount = [&](Value value) { return counts.contains(value); };
  auto isMask = [](Type type) {
    return getElementTypeOrSelf(type).isInteger(1);
  };
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool decides = isa<arith::CmpFOp>(op) &&
                   llvm::any_of(chosenFrom(op->getOperands()), isTied);
    bool passesOn = isa<arith::SelectOp, triton::ReduceOp, ResidualOp>(op) ||
                    triton::takesElements(op) ||
                    llvm::all_of(op->getResultTypes(), isMask);
    if (decides || (passesOn && llvm::any_of(op->getOperands(), isCount)))
      counts.insert_range(op->getResults());
  });
  return counts;
}

/// Whether all threads have the same bits of a sum: no operand is fused with
/// it, and the order of its two operands does not matter.
static bool hasEqualCopies(triton::ReduceOp reduce) {
  Block &combine = reduce.getCombineOp().front();
  return llvm::hasNItems(combine, 2) && isa<arith::AddFOp>(combine.front()) &&
         standsAlone(reduce.getSrcs()[0]);
}

/// Adds the reductions and scans that `value` is computed from. (`tt.dot` does
/// not count: its result has one copy.)
static void collectSums(Value value, llvm::DenseSet<Value> &seen,
                        llvm::SetVector<Operation *> &sums) {
  if (!seen.insert(value).second)
    return;
  auto collect = [&](Value source) { collectSums(source, seen, sums); };
  if (auto handedOn = findHandedOn(value)) {
    llvm::for_each(*handedOn, collect);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!op || isa<triton::DotOp>(op))
    return;
  if (isa<triton::ReduceOp, triton::ScanOp>(op) &&
      !onlyChooses(op->getRegion(0)))
    sums.insert(op);
  llvm::for_each(keepFloats(op->getOperands()), collect);
}

bool mlir::autodiff::dependsOnOrder(Value value) {
  llvm::SetVector<Operation *> sums;
  llvm::DenseSet<Value> seen;
  collectSums(value, seen, sums);
  return !sums.empty();
}

llvm::SetVector<triton::ReduceOp>
mlir::autodiff::findTiedSums(Operation *root) {
  llvm::SetVector<Operation *> sums;
  llvm::DenseSet<Value> seen;
  llvm::DenseSet<Value> ties = findTies(root);
  root->walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (ties.contains(value))
        collectSums(value, seen, sums);
  });
  llvm::SetVector<triton::ReduceOp> tied;
  for (Operation *sum : sums)
    if (auto reduce = dyn_cast<triton::ReduceOp>(sum);
        reduce && !hasEqualCopies(reduce))
      tied.insert(reduce);
  return tied;
}
