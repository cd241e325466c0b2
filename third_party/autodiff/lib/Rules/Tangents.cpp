//===- Tangents.cpp - What a rule sees while tangents go forward ----------===//
#include "autodiff/Rules/Tangents.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Rules/RuleMutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

bool Tangents::exists(Value value) const {
  if (!isPointer(value.getType()))
    return isDifferentiable(value.getType()) && isActive(value);
  SmallVector<BlockArgument> bases = getBaseArguments(value);
  return !bases.empty() && llvm::all_of(bases, [&](BlockArgument base) {
    return activity.hasShadow(base.getArgNumber());
  });
}

SmallVector<Value> Tangents::get(ValueRange values) const {
  return llvm::map_to_vector(values, [&](Value value) { return get(value); });
}

Value Tangents::getOrZero(Value value) {
  Value tangent = get(value);
  return tangent ? tangent : constant(value.getType(), 0.0);
}

void Tangents::add(Value result, Value contribution) {
  if (!contribution || !isActive(result))
    return;
  assert(contribution.getType() == typeFor(result.getType()) &&
         "a tangent has the shape of its primal");
  mutation::inContribution(builder, location, result, contribution);
  Value &tangent = tangents[result];
  tangent =
      tangent ? arith::AddFOp::create(builder, location, tangent, contribution)
              : contribution;
}

SmallVector<Value> Tangents::pair(ValueRange values, ValueRange targets) {
  SmallVector<Value> pairs;
  for (auto [value, target] : llvm::zip_equal(values, targets)) {
    pairs.push_back(primal(value));
    if (exists(target))
      pairs.push_back(isPointer(value.getType()) ? get(value)
                                                 : getOrZero(value));
  }
  return pairs;
}

SmallVector<Type> Tangents::pairTypes(ValueRange targets) const {
  SmallVector<Type> types;
  for (Value target : targets) {
    Type type = target.getType();
    types.push_back(type);
    if (exists(target))
      types.push_back(isPointer(type) ? type : typeFor(type));
  }
  return types;
}

void Tangents::bind(ValueRange values, ValueRange pairs, ValueRange targets) {
  auto next = pairs.begin();
  for (auto [value, target] : llvm::zip_equal(values, targets)) {
    primals.map(value, *next++);
    if (exists(target))
      set(value, *next++);
  }
}

/// For an operation that computes a pointer: a copy that computes the pointer
/// to the tangents.
void Tangents::pushPointer(Operation &op) {
  Operation *copy = builder.clone(*clone(op));
  for (OpOperand &operand : op.getOpOperands())
    if (Value tangent =
            isPointer(operand.get().getType()) ? get(operand.get()) : Value())
      copy->setOperand(operand.getOperandNumber(), tangent);
  for (auto [result, tangent] :
       llvm::zip_equal(op.getResults(), copy->getResults()))
    set(result, tangent);
}

LogicalResult Tangents::push(Operation &op) {
  location = op.getLoc();
  bool isControlFlow = isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op);
  bool givesPointers = llvm::any_of(op.getResults(), [&](Value result) {
    return isPointer(result.getType()) && exists(result);
  });
  if (givesPointers && !isControlFlow) {
    pushPointer(op);
    return success();
  }
  if (!takesPart(op) && !givesPointers) {
    clone(op);
    return success();
  }
  mutation::Reversing scope(&op);
  const Rule *rule = RuleTable::get().require(&op);
  if (!rule)
    return failure();
  // Loops and branches carry tangents beside values.
  if (!isControlFlow)
    clone(op);
  return rule->push(&op, *this);
}

LogicalResult Tangents::push(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(push(op)))
      return failure();
  return success();
}
