//===- Decisions.cpp - What a kernel decides by computed floats -----------===//
#include "autodiff/Analysis/Decisions.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool isCondition(Type type) {
  return getElementTypeOrSelf(type).isInteger(1);
}

/// Whether the last bit of a float cannot matter: what is NaN or infinite is
/// that wherever it is computed.
static bool asksForSpecial(Operation *op) {
  auto compare = dyn_cast<arith::CmpFOp>(op);
  if (!compare)
    return false;
  using arith::CmpFPredicate;
  bool asksForNan = llvm::is_contained({CmpFPredicate::UNO, CmpFPredicate::ORD},
                                       compare.getPredicate());
  return asksForNan || llvm::any_of(op->getOperands(), [](Value operand) {
           return matchPattern(operand, m_PosInfFloat()) ||
                  matchPattern(operand, m_NegInfFloat());
         });
}

namespace {
/// Goes backward from what decisions lead to.
class DecisionFinder {
public:
  explicit DecisionFinder(triton::FuncOp kernel);

  llvm::SetVector<Value> decisions;

private:
  void addPlaces(Operation *op);
  void leadThere(Value value);
  void select(Value condition);
  void visit(Value value);
  ValueRange getSources(Value value);

  // What loops and branches hand on, from its end.
  llvm::DenseMap<Value, SmallVector<Value>> handedOn;
  llvm::SetVector<Value> leading;
  llvm::DenseSet<Value> selecting;
  llvm::DenseMap<Value, bool> reproducible;
};
} // namespace

/// What `value` is made of.
ValueRange DecisionFinder::getSources(Value value) {
  if (auto it = handedOn.find(value); it != handedOn.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  return op ? ValueRange(op->getOperands()) : ValueRange();
}

void DecisionFinder::leadThere(Value value) {
  if (value && !isFloat(value.getType()) && !isPointer(value.getType()))
    leading.insert(value);
}

/// Follows a condition that selects between floats to the integers that it
/// compares.
void DecisionFinder::select(Value condition) {
  if (!selecting.insert(condition).second)
    return;
  for (Value source : getSources(condition))
    if (isCondition(source.getType()))
      select(source);
    else
      leadThere(source);
}

/// Adds what `op` takes to find an address, or which way to go.
void DecisionFinder::addPlaces(Operation *op) {
  if (llvm::any_of(op->getResultTypes(), isPointer) && op->getNumRegions() == 0)
    llvm::for_each(op->getOperands(), [&](Value v) { leadThere(v); });
  if (auto load = dyn_cast<triton::LoadOp>(op))
    leadThere(load.getMask());
  else if (auto store = dyn_cast<triton::StoreOp>(op))
    leadThere(store.getMask());
  else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    leadThere(atomic.getMask());
  else if (auto gather = dyn_cast<triton::GatherOp>(op))
    leadThere(gather.getIndices());
  else if (auto branch = dyn_cast<scf::IfOp>(op))
    leadThere(branch.getCondition());
  else if (auto choice = dyn_cast<arith::SelectOp>(op))
    isFloat(choice.getType()) ? select(choice.getCondition()) : void();
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      leadThere(bound);
}

void DecisionFinder::visit(Value value) {
  Operation *op = value.getDefiningOp();
  bool isHandedOn = handedOn.contains(value);
  // What is loaded is there again.
  if (!isHandedOn && (!op || !isMemoryEffectFree(op)))
    return;
  if (!isHandedOn && llvm::any_of(op->getOperandTypes(), isFloat) &&
      !asksForSpecial(op) && !isReproducible(value, reproducible))
    decisions.insert(value);
  for (Value source : getSources(value))
    leadThere(source);
}

DecisionFinder::DecisionFinder(triton::FuncOp kernel) {
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    followFlow(op, [&](Value from, Value to) { handedOn[to].push_back(from); });
    addPlaces(op);
    // What is done for each element is no decision of the program.
    bool isProgram =
        isa<triton::FuncOp, scf::ForOp, scf::WhileOp, scf::IfOp>(op);
    return isProgram ? WalkResult::advance() : WalkResult::skip();
  });
  for (unsigned next = 0; next < leading.size(); ++next)
    visit(leading[next]);
}

llvm::SetVector<Value> mlir::autodiff::findDecisions(triton::FuncOp kernel) {
  return DecisionFinder(kernel).decisions;
}
