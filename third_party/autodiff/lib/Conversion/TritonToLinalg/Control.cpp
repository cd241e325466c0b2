//===- Control.cpp - Regions, branches and calls --------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

/// Makes `to`, values of TTIR, stand for `from`, in converted types.
void Lowering::bindResults(ValueRange from, ValueRange to, size_t next) {
  for (Value value : to) {
    if (isPointerTile(value.getType()))
      bases[value] = from[next++];
    if (asTile(value.getType()))
      tensors[value] = from[next++];
    else
      scalars[value] = from[next++];
  }
}

void Lowering::bindArguments(ValueRange from, Block::BlockArgListType to) {
  bindResults(from, ValueRange(to));
}

/// Appends what stands for `values`.
void Lowering::appendOperands(ValueRange values,
                              SmallVectorImpl<Value> &operands) {
  for (Value value : values) {
    if (isPointerTile(value.getType())) {
      operands.push_back(getBase(value));
      operands.push_back(getOffsetTensor(value));
    } else if (asTile(value.getType())) {
      operands.push_back(getTensor(value));
    } else {
      operands.push_back(getScalar(value));
    }
  }
}

/// The tensor in the destination's memory, as loops carry their tensors. Costs
/// nothing where it was computed there.
Value Lowering::moveInto(Value tensor, Value destination) {
  if (tensor == destination)
    return tensor;
  return bufferization::MaterializeInDestinationOp::create(
             builder, tensor.getLoc(), tensor.getType(), tensor, destination)
      .getResult();
}

void Lowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    if (isa<scf::YieldOp, scf::ConditionOp>(op))
      break;
    lower(&op);
  }
}

//===----------------------------------------------------------------------===//
// Structured control flow
//===----------------------------------------------------------------------===//

void Lowering::lowerFor(scf::ForOp op) {
  Location loc = op.getLoc();
  unsigned count = op.getNumRegionIterArgs();

  // Initial values. A tile that only moves is carried as its distance, a
  // pointer tile as its base.
  SmallVector<Value> inits;
  for (unsigned i = 0; i < count; ++i) {
    Value init = op.getInitArgs()[i];
    const Movement *movement = placement.getMovement(op, i);
    if (!movement)
      appendOperands(init, inits);
    else if (isPointerTile(init.getType()))
      inits.push_back(getBase(init));
    else if (!movement->steps.empty())
      inits.push_back(arith::ConstantOp::create(
          builder, loc,
          builder.getZeroAttr(asTile(init.getType()).getElementType())));
  }

  auto loop = scf::ForOp::create(
      builder, loc, getScalar(op.getLowerBound()), getScalar(op.getUpperBound()),
      getScalar(op.getStep()), inits, nullptr, op.getUnsignedCmp());
  auto bind = [&](ValueRange from, ValueRange to) {
    size_t next = 0;
    for (unsigned i = 0; i < count; ++i) {
      const Movement *movement = placement.getMovement(op, i);
      Value value = to[i], init = op.getInitArgs()[i];
      if (!movement) {
        bindResults(from, value, next);
        next += isPointerTile(value.getType()) ? 2 : 1;
      } else if (isPointerTile(value.getType())) {
        bases[value] = from[next++];
        moved[value] = {init, Value()};
      } else {
        moved[value] = {init,
                        movement->steps.empty() ? Value() : from[next++]};
      }
    }
  };
  scalars[op.getInductionVar()] = loop.getInductionVar();
  bind(loop.getRegionIterArgs(), op.getRegionIterArgs());

  OpBuilder::InsertionGuard guard(builder);
  Block *body = loop.getBody();
  if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
    body->back().erase();
  builder.setInsertionPointToEnd(body);
  lowerBlock(*op.getBody());

  SmallVector<Value> yields;
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  for (unsigned i = 0; i < count; ++i) {
    Value value = yield.getOperand(i);
    BlockArgument carried = op.getRegionIterArg(i);
    const Movement *movement = placement.getMovement(op, i);
    if (movement && isPointerTile(value.getType())) {
      yields.push_back(getBase(value));
    } else if (movement) {
      if (movement->steps.empty())
        continue;
      Value distance = moved[carried].second;
      for (Value step : movement->steps)
        distance =
            arith::AddIOp::create(builder, loc, distance, getUniform(step));
      yields.push_back(distance);
    } else if (asTile(value.getType())) {
      bool isPointer = isPointerTile(value.getType());
      if (isPointer)
        yields.push_back(getBase(value));
      Value destination = findTensor(carried);
      Value tensor = isPointer ? getOffsetTensor(value, destination)
                               : getTensor(value, destination);
      yields.push_back(moveInto(tensor, destination));
    } else {
      yields.push_back(getScalar(value));
    }
  }
  scf::YieldOp::create(builder, loc, yields);
  bind(loop.getResults(), op.getResults());
}

void Lowering::lowerIf(scf::IfOp op) {
  Location loc = op.getLoc();
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    convertType(type, types);
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(builder, loc, types,
                                  getScalar(op.getCondition()), hasElse);
  auto lowerSide = [&](Region &from, Region &to) {
    OpBuilder::InsertionGuard guard(builder);
    Block *block = &to.front();
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    lowerBlock(from.front());
    SmallVector<Value> yields;
    appendOperands(from.front().getTerminator()->getOperands(), yields);
    scf::YieldOp::create(builder, loc, yields);
  };
  lowerSide(op.getThenRegion(), branch.getThenRegion());
  if (hasElse)
    lowerSide(op.getElseRegion(), branch.getElseRegion());
  bindResults(branch.getResults(), op.getResults());
}

void Lowering::lowerWhile(scf::WhileOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  appendOperands(op.getInits(), inits);
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    convertType(type, types);
  auto loop = scf::WhileOp::create(builder, loc, types, inits);
  OpBuilder::InsertionGuard guard(builder);

  // Tensors stay in the memory that they came in, position by position.
  auto settle = [&](SmallVectorImpl<Value> &values, Block *block) {
    for (auto [i, value] : llvm::enumerate(values))
      if (isa<RankedTensorType>(value.getType()) &&
          i < block->getNumArguments() &&
          block->getArgument(i).getType() == value.getType())
        value = moveInto(value, block->getArgument(i));
  };

  Block *before = builder.createBlock(
      &loop.getBefore(), {}, ValueRange(inits).getTypes(),
      SmallVector<Location>(inits.size(), loc));
  bindArguments(before->getArguments(), op.getBeforeArguments());
  lowerBlock(*op.getBeforeBody());
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> forwarded;
  appendOperands(condition.getArgs(), forwarded);
  settle(forwarded, before);
  scf::ConditionOp::create(builder, condition.getLoc(),
                           getScalar(condition.getCondition()), forwarded);

  Block *after =
      builder.createBlock(&loop.getAfter(), {}, types,
                          SmallVector<Location>(types.size(), loc));
  bindArguments(after->getArguments(), op.getAfterArguments());
  lowerBlock(*op.getAfterBody());
  SmallVector<Value> yields;
  appendOperands(op.getYieldOp().getResults(), yields);
  settle(yields, after);
  scf::YieldOp::create(builder, loc, yields);
  bindResults(loop.getResults(), op.getResults());
}

//===----------------------------------------------------------------------===//
// Branches and calls
//===----------------------------------------------------------------------===//

void Lowering::lowerBranch(Operation *op) {
  Location loc = op->getLoc();
  SmallVector<Value> first, second;
  if (auto branch = dyn_cast<cf::BranchOp>(op)) {
    appendOperands(branch.getDestOperands(), first);
    cf::BranchOp::create(builder, loc, blocks[branch.getDest()], first);
    return;
  }
  auto branch = cast<cf::CondBranchOp>(op);
  appendOperands(branch.getTrueDestOperands(), first);
  appendOperands(branch.getFalseDestOperands(), second);
  cf::CondBranchOp::create(builder, loc, getScalar(branch.getCondition()),
                           blocks[branch.getTrueDest()], first,
                           blocks[branch.getFalseDest()], second);
}

void Lowering::lowerCall(tt::CallOp op) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  appendOperands(op.getOperands(), operands);
  operands.push_back(context);
  for (Type type : op.getResultTypes())
    convertType(type, types);
  auto call = func::CallOp::create(builder, op.getLoc(), op.getCallee(), types,
                                   operands);
  bindResults(call.getResults(), op.getResults());
}

void Lowering::lowerReturn(tt::ReturnOp op) {
  SmallVector<Value> operands;
  appendOperands(op.getSrcs(), operands);
  func::ReturnOp::create(builder, op.getLoc(), operands);
}
