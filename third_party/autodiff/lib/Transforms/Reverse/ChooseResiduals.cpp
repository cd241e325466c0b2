//===- ChooseResiduals.cpp - What the backward reloads -------------------===//
#include "CotangentFactors.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Decisions.h"
#include "autodiff/Analysis/FinalStores.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Analysis/StoredCopies.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Analysis/ValueNetwork.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UsedValues.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CHOOSERESIDUALS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("choose-residuals");

//===----------------------------------------------------------------------===//
// Reloading outputs
//===----------------------------------------------------------------------===//

/// Whether an operation loads an integer that is never overwritten.
static bool loadsElement(Operation *op) {
  return isa<triton::LoadOp>(op) &&
         ScalarExpr::of(op->getResult(0), ScalarExpr::From::Memory);
}

/// Whether `value` can be computed from arguments, and integers that they point
/// to.
static bool isCheapSlice(Value value, SetVector<Operation *> &slice) {
  return collectSlice(value, slice, [](Value each) {
    Operation *op = each.getDefiningOp();
    if (!op)
      return isa<triton::FuncOp>(each.getParentBlock()->getParentOp())
                 ? Elsewhere::Known
                 : Elsewhere::Never;
    return (isMemoryEffectFree(op) || loadsElement(op)) &&
                   op->getNumRegions() == 0 && !isa<ResidualOp>(op) &&
                   isa<triton::FuncOp>(op->getParentOp())
               ? Elsewhere::Computed
               : Elsewhere::Never;
  });
}

/// The stores of a residual, rounded or not, or of another residual of the same
/// value; notes whether it has other uses.
static SmallVector<triton::StoreOp> collectStores(ResidualOp residual,
                                                  bool &onlyUse) {
  SmallVector<triton::StoreOp> stores;
  SmallVector<Value> pending;
  for (Operation *user : residual.getValue().getUsers())
    if (isa<ResidualOp>(user))
      pending.push_back(user->getResult(0));
  onlyUse = pending.size() == 1;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    onlyUse &= value.hasOneUse();
    for (Operation *user : value.getUsers())
      if (auto store = dyn_cast<triton::StoreOp>(user))
        stores.push_back(store);
      else if (isa<arith::TruncFOp, triton::FpToFpOp>(user))
        pending.push_back(user->getResult(0));
  }
  return stores;
}

/// The forward's stores of this residual to memory that still has the value at
/// the end. The store is the only access to its argument. It is unmasked, or
/// the residual's only use, so that its adjoint is zero where the mask is
/// false.
///
/// The adjoint of a scan reads the value in other lanes, too.
static SmallVector<triton::StoreOp> findStores(ResidualOp residual) {
  bool isLocal = !residual.getValue().getDefiningOp<triton::ScanOp>();
  bool onlyUse;
  SmallVector<triton::StoreOp> stores = collectStores(residual, onlyUse);
  return llvm::filter_to_vector(stores, [&](triton::StoreOp store) {
    if (store->getBlock() != residual->getBlock() ||
        (store.getMask() && !(onlyUse && isLocal)))
      return false;
    BlockArgument base = getBaseArgument(store.getPtr());
    auto isAnother = [&](Operation *op) { return op != store; };
    SetVector<Operation *> slice;
    return base && !mayBeAccessed(base, isAnother) &&
           isCheapSlice(store.getPtr(), slice) &&
           (!store.getMask() || isCheapSlice(store.getMask(), slice));
  });
}

//===----------------------------------------------------------------------===//
// The cut
//===----------------------------------------------------------------------===//

namespace {
/// The part of a backward that computes the forward's values again, and those
/// of them that the adjoint needs.
class Recomputation : public ValueNetwork {
public:
  Recomputation(triton::FuncOp backward,
                llvm::function_ref<double(ResidualOp)> costOfSaving,
                llvm::function_ref<bool(ResidualOp)> mustBeTaken)
      : body(backward.getBody().front()), costOfSaving(costOfSaving),
        mustBeTaken(mustBeTaken) {}

  /// The residuals to load; fails if one can neither be loaded nor computed.
  FailureOr<SmallVector<ResidualOp>> chooseResiduals();

private:
  LogicalResult refuse();
  bool isAtHand(Value value) override;
  double costOfTaking(Value value) override;
  double costOfComputing(Value value) override;

  Block &body;
  llvm::function_ref<double(ResidualOp)> costOfSaving;
  llvm::function_ref<bool(ResidualOp)> mustBeTaken;
};
} // namespace

/// The cost of computing `op` in bytes: those it moves, or the equivalent of
/// its time.
static double costOfOperation(Operation *op) {
  if (isa<LoopLikeOpInterface>(op))
    return ValueNetwork::kImpossible / 4;
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return bytesOf(load.getType());
  // Written once and read once, like a residual.
  if (auto pop = dyn_cast<PopOp>(op))
    return 2 * bytesOf(pop.getType());
  // Costs something even if the operands are available: threads have to
  // synchronize.
  if (isa<triton::ReduceOp, triton::ScanOp>(op))
    return bytesOf(op->getOperand(0).getType());
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return bytesOfProduct(dot);
  double cost = bytesOfArithmetic(op);
  if (isa<scf::IfOp>(op))
    op->walk([&](Operation *inner) {
      if (inner != op)
        cost += costOfOperation(inner);
    });
  return cost;
}

bool Recomputation::isAtHand(Value value) {
  return value.getParentBlock() != &body || !value.getDefiningOp();
}

double Recomputation::costOfTaking(Value value) {
  auto residual = value.getDefiningOp<ResidualOp>();
  return residual ? costOfSaving(residual) : kImpossible;
}

double Recomputation::costOfComputing(Value value) {
  auto residual = value.getDefiningOp<ResidualOp>();
  return residual && mustBeTaken(residual)
             ? kImpossible
             : costOfOperation(value.getDefiningOp());
}

/// Reports the value that would have to be saved and cannot be.
LogicalResult Recomputation::refuse() {
  for (Value value : getValues()) {
    auto residual = value.getDefiningOp<ResidualOp>();
    if (residual && mustBeTaken(residual) && costOfTaking(value) == kImpossible)
      return residual.emitError(
          "the backward needs what the kernel decides by floats that it "
          "computes, or leaves in memory by an atomic operation, and the "
          "forward may not save it");
  }
  return success();
}

FailureOr<SmallVector<ResidualOp>> Recomputation::chooseResiduals() {
  llvm::DenseSet<Operation *> adjoint = findAdjoint(body);
  for (Operation *op : adjoint)
    for (Value value : getUsedValues(op))
      if (!isAtHand(value) && !adjoint.contains(value.getDefiningOp()))
        need(value);
  Choice choice = choose();
  if (choice.isImpossible && failed(refuse()))
    return failure();
  auto taken = llvm::map_to_vector(choice.taken, [](Value value) {
    return value.getDefiningOp<ResidualOp>();
  });
  llvm::sort(taken,
             [](ResidualOp a, ResidualOp b) { return a->isBeforeInBlock(b); });
  return taken;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ChooseResiduals : autodiff::impl::ChooseResidualsBase<ChooseResiduals> {
  using ChooseResidualsBase::ChooseResidualsBase;

  /// A store of a value, and the check that no element is stored to twice.
  struct Copy {
    triton::StoreOp store;
    CheckAttr check;
  };

  void transform() override;
  void findOutputs();
  void explain(ArrayRef<ResidualOp> taken, ArrayRef<ResidualOp> reloaded,
               llvm::function_ref<double(ResidualOp)> costOfSaving);
  void reloadOutput(ResidualOp residual, const Copy &copy);
  void loadSaved(ResidualOp residual);

  triton::FuncOp primal, backward;
  /// The forward's stores that may be read back, and the types in which others
  /// have rounded a value too far, by the number of the residual.
  llvm::DenseMap<unsigned, Copy> outputs;
  llvm::DenseMap<unsigned, Type> rounded;
};
} // namespace

/// Finds, for each value that the forward stores, a copy that may stand in.
void ChooseResiduals::findOutputs() {
  llvm::DenseMap<unsigned, ResidualOp> used;
  backward.walk(
      [&](ResidualOp residual) { used[residual.getId()] = residual; });
  StoredCopies copies(backward);
  primal.walk([&](ResidualOp residual) {
    ResidualOp needed = used.lookup(residual.getId());
    if (!needed)
      return;
    for (triton::StoreOp store : findStores(residual)) {
      unsigned argument = getBaseArgument(store.getPtr()).getArgNumber();
      ReasonOr<AccessSpace> space = findDistinct({store}, argument, repeated);
      if (!space)
        continue;
      Value value = residual.getValue();
      Type stored = getElementTypeOrSelf(store.getValue());
      bool isReference = residual.getPinned() || needed.getPinned();
      if (isReference ? isExactIn(value, stored)
                      : copies.mayStandIn(value, needed.getResult(), store)) {
        outputs.insert(
            {residual.getId(),
             {store, space->toCheck(CheckKind::Distinct, argument)}});
        return;
      }
      rounded.insert({residual.getId(), stored});
    }
  });
}

/// Remarks for each value that could be taken from the forward whether it is.
void ChooseResiduals::explain(
    ArrayRef<ResidualOp> taken, ArrayRef<ResidualOp> reloaded,
    llvm::function_ref<double(ResidualOp)> costOfSaving) {
  backward.walk([&](ResidualOp residual) {
    double cost = costOfSaving(residual);
    Operation *source = residual.getValue().getDefiningOp();
    Subject value(backward, source ? source->getLoc() : residual.getLoc());
    std::string notRead;
    if (Type type = rounded.lookup(residual.getId());
        type && !outputs.contains(residual.getId()))
      notRead = llvm::formatv("; the copy that the forward stores is not read "
                              "back, since {0} does not hold what the "
                              "derivative needs",
                              type);
    if (llvm::is_contained(reloaded, residual))
      kRemarks.passed(value, "read back from what the forward has stored");
    else if (llvm::is_contained(taken, residual))
      kRemarks.passed(value, "saved by the forward: {0} bytes a program{1}",
                      cost / 2, notRead);
    else if (cost == ValueNetwork::kImpossible && !save)
      kRemarks.missed(value, "computed again: nothing may be saved{0}",
                      notRead);
    else if (cost == ValueNetwork::kImpossible)
      kRemarks.missed(value, "computed again: a maximum is looked for among "
                             "elements that are computed again, or the forward "
                             "does not compute it");
    else
      kRemarks.missed(
          value,
          "computed again, from what is loaded anyway or from other "
          "values that are saved: to save it and load it would move "
          "{0} bytes a program, which takes longer{1}",
          cost, notRead);
  });
}

/// Loads what the forward has stored, from the same address, where no other
/// program has stored something else.
void ChooseResiduals::reloadOutput(ResidualOp residual, const Copy &copy) {
  auto [store, check] = copy;
  if (!mutation::isMade("choose-residuals:no check that it is there"))
    PlanOp::getOrCreate(getOperation())
        .require(OperandAttr::get(&getContext(), OperandKind::Argument,
                                  check.getArgument()),
                 check);
  SetVector<Operation *> slice;
  isCheapSlice(store.getPtr(), slice);
  if (store.getMask())
    isCheapSlice(store.getMask(), slice);
  OpBuilder b(residual);
  IRMapping map;
  for (auto [from, to] :
       llvm::zip(primal.getArguments(), backward.getArguments()))
    map.map(from, to);
  for (Operation *op : topologicalSort(slice))
    b.clone(*op, map);
  Location loc = residual.getLoc();
  Value mask = store.getMask() ? map.lookup(store.getMask()) : Value();
  // One, not zero: adjoints may divide by the value where the mask is false.
  Value other;
  if (mask) {
    Tile like(b, loc, residual.getResult());
    other = castFloat(b, loc, like.constant(1.0),
                      getElementTypeOrSelf(store.getValue().getType()));
  }
  Value value = triton::LoadOp::create(
      b, loc, map.lookupOrDefault(store.getPtr()), mask, other);
  value = castFloat(b, loc, value, getElementTypeOrSelf(residual.getType()));
  residual.getResult().replaceAllUsesWith(value);
  residual.erase();
}

/// Saves the value in the forward and loads it in the backward.
void ChooseResiduals::loadSaved(ResidualOp residual) {
  triton::FuncOp forward = getOrCreateForward(getOperation());
  ResidualOp source;
  forward.walk([&](ResidualOp op) {
    if (op.getId() == residual.getId() ||
        (op.getType() == residual.getType() &&
         mutation::isMade("choose-residuals:saved from another value")))
      source = op;
  });
  OpBuilder atSave(source), atLoad(residual);
  atSave.setInsertionPointAfter(source);
  residual.getResult().replaceAllUsesWith(
      saveForBackward(atSave, source.getValue(), atLoad,
                      "saved" + std::to_string(residual.getId())));
  residual.erase();
}

void ChooseResiduals::transform() {
  primal = getPrimal(getOperation());
  backward = getBackward(getOperation());
  if (reload)
    findOutputs();
  // Values that no output needs are not computed there, and cannot be saved.
  llvm::DenseSet<unsigned> computed;
  primal.walk([&](ResidualOp residual) { computed.insert(residual.getId()); });
  // Taken from the forward, these might not equal the values that they are
  // compared with.
  llvm::DenseSet<Value> ties = findTies(backward);
  ties.insert_range(findTieCounts(backward, ties));
  auto costOfSaving = [&](ResidualOp residual) {
    if (ties.contains(residual.getResult()) &&
        !mutation::isMade("choose-residuals:maximum without its elements"))
      return ValueNetwork::kImpossible;
    if (auto it = outputs.find(residual.getId()); it != outputs.end())
      return bytesOf(it->second.store.getValue().getType());
    // Written once and read once.
    return save && computed.contains(residual.getId())
               ? 2 * bytesOf(residual.getType())
               : ValueNetwork::kImpossible;
  };
  llvm::DenseSet<unsigned> selected;
  primal.walk([&](triton::AtomicRMWOp atomic) {
    if (auto residual =
            withoutBitcast(atomic.getVal()).getDefiningOp<ResidualOp>();
        residual && selectsContent(atomic) &&
        !isReproducible(residual.getValue()))
      selected.insert(residual.getId());
  });
  llvm::DenseSet<unsigned> decided;
  for (Value decision : findDecisions(primal))
    if (ResidualOp residual = findName(decision))
      decided.insert(residual.getId());
  auto mustBeTaken = [&](ResidualOp residual) {
    return (selected.contains(residual.getId()) &&
            !mutation::isMade(
                "choose-residuals:atomic values computed again")) ||
           (decided.contains(residual.getId()) &&
            !mutation::isMade("choose-residuals:decisions are made again"));
  };
  auto taken =
      Recomputation(backward, costOfSaving, mustBeTaken).chooseResiduals();
  if (failed(taken))
    return signalPassFailure();
  SmallVector<ResidualOp> saved, reloaded;
  for (ResidualOp residual : *taken)
    (outputs.contains(residual.getId()) ? reloaded : saved).push_back(residual);
  if (wantsReasons(&getContext()))
    explain(*taken, reloaded, costOfSaving);
  if (!saved.empty())
    saveFactors(backward, getOrCreateForward(getOperation()), saved);
  for (ResidualOp residual : saved)
    loadSaved(residual);
  for (ResidualOp residual : reloaded) {
    auto it = outputs.find(residual.getId());
    if (mutation::isMade("choose-residuals:read back another output"))
      it = llvm::find_if(outputs, [&](auto &entry) {
        return entry.first != residual.getId();
      });
    if (it != outputs.end())
      reloadOutput(residual, it->second);
  }
  if (derive || primal->hasAttr(kOrderedAttr))
    (void)getOrCreateForward(getOperation());
  // The remaining residuals are replaced by their operands, and
  // `autodiff.narrowed` is not needed any more.
  getOperation().walk([](Operation *op) {
    op->removeAttr(kNarrowedAttr);
    if (auto residual = dyn_cast<ResidualOp>(op)) {
      residual.getResult().replaceAllUsesWith(residual.getValue());
      residual.erase();
    }
  });
}
