//===- Decisions.cpp - What a kernel decides by computed floats -----------===//
#include "autodiff/Analysis/Decisions.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/MemoryFlow.h"
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

/// Whether `op` compares a float with NaN or infinity: rounding in the last bit
/// does not change the result.
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
/// Collects decisions: a walk backwards from addresses, masks, branches and
/// integers.
class DecisionFinder {
public:
  explicit DecisionFinder(triton::FuncOp kernel);

  llvm::SetVector<Value> decisions;

private:
  void addNeeds(Operation *op);
  void need(Value value);
  void makeFloat(Value value);
  void visit(Value value);
  ValueRange getSources(Value value);

  // For results and arguments of loops and branches, the values that may be
  // copied to them.
  llvm::DenseMap<Value, SmallVector<Value>> handedOn;
  llvm::SetVector<Value> needed;
  llvm::DenseSet<Value> selecting;
  llvm::DenseMap<Value, bool> reproducible;
};
} // namespace

/// The values that `value` is computed from.
ValueRange DecisionFinder::getSources(Value value) {
  if (auto it = handedOn.find(value); it != handedOn.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  return op ? ValueRange(op->getOperands()) : ValueRange();
}

void DecisionFinder::need(Value value) {
  if (value && !isFloat(value.getType()) && !isPointer(value.getType()))
    needed.insert(value);
}

/// Follows the operands of a float, and the conditions that select it down to
/// the integers that they compare.
void DecisionFinder::makeFloat(Value value) {
  if (!isCondition(value.getType()))
    return need(value);
  if (selecting.insert(value).second)
    llvm::for_each(getSources(value), [&](Value v) { makeFloat(v); });
}

/// Adds the operands of `op` that make an address, or decide a branch.
void DecisionFinder::addNeeds(Operation *op) {
  if (llvm::any_of(op->getResultTypes(), isPointer) && op->getNumRegions() == 0)
    llvm::for_each(op->getOperands(), [&](Value v) { need(v); });
  if (auto load = dyn_cast<triton::LoadOp>(op))
    need(load.getMask());
  else if (auto store = dyn_cast<triton::StoreOp>(op))
    need(store.getMask());
  else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    // The sign of a maximum decides how it is found; the maximum itself is
    // saved.
    need(selectsContent(atomic) ? Value() : atomic.getMask());
  else if (auto gather = dyn_cast<triton::GatherOp>(op))
    need(gather.getIndices());
  else if (auto branch = dyn_cast<scf::IfOp>(op))
    need(branch.getCondition());
  else if (isa<arith::SelectOp, arith::SIToFPOp, arith::UIToFPOp>(op) &&
           isFloat(op->getResult(0).getType()))
    makeFloat(op->getOperand(0));
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      need(bound);
}

void DecisionFinder::visit(Value value) {
  Operation *op = value.getDefiningOp();
  bool isHandedOn = handedOn.contains(value);
  // Values that are loaded can be loaded again.
  if (!isHandedOn && (!op || !isMemoryEffectFree(op)))
    return;
  if (!isHandedOn && llvm::any_of(op->getOperandTypes(), isFloat) &&
      !asksForSpecial(op) && !isReproducible(value, reproducible))
    decisions.insert(value);
  for (Value source : getSources(value))
    need(source);
}

DecisionFinder::DecisionFinder(triton::FuncOp kernel) {
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    followFlow(op, [&](Value from, Value to) { handedOn[to].push_back(from); });
    addNeeds(op);
    // A branch inside of a map is taken for each element, and is no decision of
    // the program.
    bool isProgram =
        isa<triton::FuncOp, scf::ForOp, scf::WhileOp, scf::IfOp>(op);
    return isProgram ? WalkResult::advance() : WalkResult::skip();
  });
  for (unsigned next = 0; next < needed.size(); ++next)
    visit(needed[next]);
}

llvm::SetVector<Value> mlir::autodiff::findDecisions(triton::FuncOp kernel) {
  return DecisionFinder(kernel).decisions;
}
