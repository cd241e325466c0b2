//===- Adjoint.cpp - What a rule sees while a kernel is reversed ----------===//
#include "autodiff/Rules/Adjoint.h"

#include "autodiff/Rules/Infinities.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::autodiff;

Value Adjoint::primal(Value primal) const {
  for (Operation *user : primal.getUsers())
    if (auto residual = dyn_cast<ResidualOp>(user))
      if (Value reloadable = primals.lookupOrNull(residual.getResult()))
        return reloadable;
  return primals.lookupOrDefault(primal);
}

llvm::BitVector Adjoint::findActive(ValueRange values) const {
  llvm::BitVector active(values.size());
  for (auto [index, value] : llvm::enumerate(values))
    active[index] = isActive(value);
  return active;
}

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

Type Adjoint::typeFor(Type primal) {
  Type element = getElementTypeOrSelf(primal);
  if (element.isF64())
    return primal;
  return withElementType(primal, Float32Type::get(primal.getContext()));
}

Value Adjoint::widen(Value value) {
  return castFloat(builder, location, value,
                   getElementTypeOrSelf(typeFor(value.getType())));
}

Value Adjoint::constant(Type primalType, double number) {
  return constantOf(builder, location, typeFor(primalType), number);
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
}

/// Whether repeating `op` in the backward would repeat an effect.
static bool hasEffects(Operation *op) {
  return !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op) &&
         op->getNumRegions() == 0;
}

void Adjoint::clone(Operation &op) {
  // Cloning keeps block arguments that are mapped already, from an earlier
  // recomputation of a block around this one: those are another region's.
  op.walk([&](Block *inner) {
    for (BlockArgument argument : inner->getArguments())
      primals.erase(argument);
  });
  builder.clone(op, primals);
}

void Adjoint::recompute(Block &block) {
  for (Operation &op : block.without_terminator())
    clone(op);
  block.walk([&](PushOp push) { popInstead(push); });
  block.walk([&](Operation *op) {
    if (hasEffects(op) && !isa<PushOp>(op) &&
        !op->hasTrait<OpTrait::IsTerminator>())
      primals.lookup(op)->erase();
  });
}

void Adjoint::popInstead(PushOp push) {
  auto clone = cast<PushOp>(primals.lookup(push.getOperation()));
  OpBuilder::InsertionGuard guard(builder);
  Value copy = clone.getValue();
  // What has been lifted out of assembly uses a value before it is recorded.
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

/// What an error calls `op`.
static std::string describe(Operation *op) {
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (auto call = dyn_cast<triton::ExternElementwiseOp>(op))
    return "the library function '" + call.getSymbol().str() + "' (" + name +
           ")";
  if (auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op))
    return "the inline assembly \"" + assembly.getAsmString().trim().str() +
           "\" (" + name + ")";
  return name;
}

/// What a user can do about an operation without a rule.
static llvm::StringRef suggest(Operation *op) {
  if (isa<triton::ExternElementwiseOp, triton::ElementwiseInlineAsmOp>(op))
    return "give its rule with register_vjp (docs/python.md)";
  return "express it with supported operations (docs/rules.md)";
}

static bool takesPart(Operation &op, const Adjoint &adjoint) {
  if (isa<triton::StoreOp, triton::AtomicRMWOp>(op))
    return true;
  if (op.getNumRegions() && !isa<triton::ReduceOp, triton::ScanOp,
                                 triton::MapElementwiseOp, CustomVjpOp>(op)) {
    // A region matters if an active value or an effect is inside.
    bool matters = false;
    op.walk([&](Operation *inner) {
      matters |= isa<triton::StoreOp, triton::AtomicRMWOp>(inner) ||
                 llvm::any_of(inner->getResults(), [&](Value result) {
                   return adjoint.isActive(result);
                 });
    });
    return matters;
  }
  return llvm::any_of(op.getResults(), [&](Value result) {
    return isDifferentiable(result.getType()) && adjoint.isActive(result);
  });
}

LogicalResult Adjoint::reverse(Block &block) {
  llvm::SaveAndRestore<Block *> current(reversed, &block);
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (!takesPart(op, *this))
      continue;
    location = op.getLoc();
    mutation::Reversing scope(&op);
    const Rule *rule = RuleTable::get().lookup(&op);
    if (!rule)
      return op.emitError()
             << "no derivative rule for " << describe(&op)
             << ", which lies between a differentiated input and an output; "
             << suggest(&op) << ", or detach the tensors that it depends on";
    if (failed(rule->pullback(&op, *this)))
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
