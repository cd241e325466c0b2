//===- Adjoint.cpp - What a rule sees while a kernel is reversed ----------===//
#include "autodiff/Rules/Adjoint.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Rules/RuleMutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/RuleLocation.h"
#include "autodiff/Support/Statement.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::autodiff;

bool Adjoint::isFiniteElsewhere(Value primal) const {
  return autodiff::isFiniteElsewhere(primal, lanes, assumed, reversed);
}

Value Adjoint::recomputed(Value value) {
  if (value.getParentRegion()->isAncestor(reversed->getParent()))
    return primal(value);
  Operation *op = value.getDefiningOp();
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, recomputed(operand));
  return builder.clone(*op, map)->getResult(
      cast<OpResult>(value).getResultNumber());
}

/// The variable that a value is. In `acc = tl.dot(p.to(v.dtype), v)`, the
/// converted operand is `p`, and not a part of `acc`.
static StringRef variableOf(Value value) {
  auto cast = value.getDefiningOp<CastOpInterface>();
  if (cast && isPartOfStatement(value))
    if (StringRef name = findVariableOf(cast->getOperand(0)); !name.empty())
      return name;
  return findVariable(value.getLoc());
}

/// Calls it so in printed kernels, unless it is one of the results of a loop.
static void nameAdjoint(Value adjoint, Value value) {
  Operation *op = adjoint.getDefiningOp();
  if (!op || op->getNumResults() == 1)
    adjoint.setLoc(ofAdjoint(adjoint.getLoc(), variableOf(value)));
}

void Adjoint::set(Value value, Value adjoint) {
  nameAdjoint(adjoint, value);
  adjoints[value] = adjoint;
}

void Adjoint::add(Value value, Value contribution) {
  if (!contribution || !isActive(value))
    return;
  assert(contribution.getType() == typeFor(value.getType()) &&
         "an adjoint has the shape of its primal");
  mutation::inContribution(builder, location, value, contribution);
  Value &adjoint = adjoints[value];
  adjoint =
      adjoint ? arith::AddFOp::create(builder, location, adjoint, contribution)
              : contribution;
  nameAdjoint(adjoint, value);
}

/// Whether a copy of `op` in the backward would repeat an effect.
static bool hasEffects(Operation *op) {
  return !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op) &&
         op->getNumRegions() == 0;
}

void Adjoint::recompute(Block &block) {
  for (Operation &op : block.without_terminator())
    clone(op);
  block.walk([&](PushOp push) { popInstead(push); });
  block.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isSpin = activity.isSpin(op);
    if (isSpin || (hasEffects(op) && !isa<PushOp>(op) &&
                   !op->hasTrait<OpTrait::IsTerminator>()))
      primals.lookup(op)->erase();
    // Nobody writes to memory while a backward runs.
    else if (auto load = dyn_cast<triton::LoadOp>(op))
      cast<triton::LoadOp>(primals.lookup(op)).setIsVolatile(false);
    return isSpin ? WalkResult::skip() : WalkResult::advance();
  });
}

void Adjoint::popInstead(PushOp push) {
  auto clone = cast<PushOp>(primals.lookup(push.getOperation()));
  OpBuilder::InsertionGuard guard(builder);
  Value copy = clone.getValue();
  // Arithmetic that replaces assembly may use a value before it is recorded.
  Operation *first = clone;
  for (Operation *user : copy.getUsers()) {
    Operation *inBlock = clone->getBlock()->findAncestorOpInBlock(*user);
    if (inBlock && inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  builder.setInsertionPoint(first);
  Value recorded = PopOp::create(builder, push.getLoc(), copy.getType(),
                                 clone.getIteration(), push.getTape());
  clone.erase();
  copy.replaceAllUsesWith(recorded);
  primals.map(push.getValue(), recorded);
}

/// The text that readers get about operations that a rule makes for `op`: its
/// formula, or just the name where adjoints are moved or converted, and for
/// rules with many cases.
static std::string describe(Operation *op, const Rule &rule) {
  std::string name;
  bool isFunction = findFunction(op, &name);
  if (!isFunction)
    name = op->getName().stripDialect().str();
  StringRef formula = rule.formula;
  if (std::holds_alternative<LinearMap>(rule.derivative) ||
      isa<CastOpInterface>(op) || !isMemoryEffectFree(op) ||
      formula.contains(';'))
    return name;
  // The table omits it in some formulas.
  bool isTold = formula.contains("̄");
  return name + (isTold ? ": " : ": x̄ += ") + rule.formula;
}

LogicalResult Adjoint::reverse(Block &block) {
  llvm::SaveAndRestore<Block *> current(reversed, &block);
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (!takesPart(op))
      continue;
    mutation::Reversing scope(&op);
    const Rule *rule = RuleTable::get().require(&op);
    if (!rule)
      return failure();
    location = ofRule(op.getLoc(), describe(&op, *rule));
    if (failed(rule->pullBack(&op, *this)))
      return failure();
  }
  return success();
}

FailureOr<SmallVector<Value>>
Adjoint::scoped(ArrayRef<Value> values,
                llvm::function_ref<LogicalResult()> body) {
  llvm::DenseMap<Value, Value> outer;
  std::swap(outer, adjoints);
  LogicalResult result = body();
  std::swap(outer, adjoints);
  if (failed(result))
    return failure();
  return llvm::map_to_vector(values, [&](Value v) { return outer.lookup(v); });
}

SmallVector<Value>
Adjoint::getActiveCaptures(MutableArrayRef<Region> regions) const {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(regions, captures);
  return llvm::filter_to_vector(captures,
                                [&](Value value) { return isActive(value); });
}
