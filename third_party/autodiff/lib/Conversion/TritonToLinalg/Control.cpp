//===- Control.cpp - Regions, branches and calls --------------------------===//

#include "Lowering.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

/// Maps `from`, values of TTIR, to values of converted types in `to`.
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

/// Appends the converted values of `values`.
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

Value Lowering::copyTensor(Value tensor) {
  return bufferization::AllocTensorOp::create(
      builder, tensor.getLoc(), cast<RankedTensorType>(tensor.getType()),
      /*dynamicSizes=*/ValueRange(), /*copy=*/tensor);
}

/// The tensor that `tensor` is an update of, as far back as is known.
static Value findOrigin(Value tensor) {
  while (auto result = dyn_cast<OpResult>(tensor)) {
    Operation *op = result.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      tensor = loop.getInitArgs()[result.getResultNumber()];
    else if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
      tensor = style.getTiedOpOperand(result)->get();
    else
      break;
  }
  return tensor;
}

/// Whether the tensor was computed in the memory of a carried tensor.
static bool isInPlace(Value tensor, Value destination,
                      const LoweringOptions &options) {
  return tensor == destination ||
         (!options.copyCarried && findOrigin(tensor) == destination);
}

/// Copies tensors to the memory in which a loop carries them. A tensor that is
/// in the memory of another carried one, which may be overwritten, is copied
/// first.
void Lowering::moveInto(MutableArrayRef<Value> values,
                        ArrayRef<Value> destinations) {
  SmallVector<bool> moves;
  for (auto [value, destination] : llvm::zip_equal(values, destinations)) {
    moves.push_back(destination && !isInPlace(value, destination, options));
    if (moves.back() &&
        (options.copyCarried || isa<BlockArgument>(findOrigin(value))) &&
        !autodiff::mutation::isMade("cpu-loop:tiles that change places"))
      value = copyTensor(value);
  }
  for (auto [value, destination, move] :
       llvm::zip_equal(values, destinations, moves))
    if (move)
      value = bufferization::MaterializeInDestinationOp::create(
                  builder, value.getLoc(), value.getType(), value, destination)
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

  // Initial values. A tile that a loop only moves is carried as a distance, and
  // a tile of pointers as its base.
  SmallVector<Value> inits;
  for (unsigned i = 0; i < count; ++i) {
    Value init = op.getInitArgs()[i];
    const Movement *movement = placement.getMovement(op, i);
    if (!movement) {
      appendOperands(init, inits);
      if (options.copyCarried && asTile(init.getType()))
        inits.back() = copyTensor(inits.back());
    } else if (isPointerTile(init.getType())) {
      inits.push_back(getBase(init));
    } else if (!movement->steps.empty()) {
      inits.push_back(arith::ConstantOp::create(
          builder, loc,
          builder.getZeroAttr(asTile(init.getType()).getElementType())));
    }
  }

  auto loop =
      scf::ForOp::create(builder, loc, getScalar(op.getLowerBound()),
                         getScalar(op.getUpperBound()), getScalar(op.getStep()),
                         inits, nullptr, op.getUnsignedCmp());
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
        moved[value] = {init, movement->steps.empty() ? Value() : from[next++]};
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
  // The carried tiles, and their positions among the yielded values.
  SmallVector<std::pair<unsigned, size_t>> tiles;
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
      if (isPointerTile(value.getType()))
        yields.push_back(getBase(value));
      tiles.push_back({i, yields.size()});
      yields.push_back({});
    } else {
      yields.push_back(getScalar(value));
    }
  }
  // Tiles come last, and all are computed before the first is copied. A tile
  // may be computed in the memory of the old one unless another one still reads
  // that.
  auto canReplace = [&](unsigned index) {
    return !options.copyCarried && llvm::none_of(tiles, [&](auto other) {
      return other.first != index &&
             !autodiff::mutation::isMade(
                 "cpu-loop:tiles that others still read") &&
             dependsOn(yield.getOperand(other.first),
                       op.getRegionIterArg(index));
    });
  };
  for (auto [i, position] : tiles) {
    Value value = yield.getOperand(i);
    Value target = canReplace(i) ? findTensor(op.getRegionIterArg(i)) : Value();
    yields[position] = isPointerTile(value.getType())
                           ? getOffsetTensor(value, target)
                           : getTensor(value, target);
  }
  SmallVector<Value> destinations(yields.size());
  for (auto [i, position] : tiles)
    destinations[position] = findTensor(op.getRegionIterArg(i));
  moveInto(yields, destinations);
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

/// A dummy value, where none is needed yet.
static Value createPlaceholder(OpBuilder &builder, Location loc, Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return bufferization::AllocTensorOp::create(builder, loc, tensor,
                                                /*dynamicSizes=*/ValueRange());
  return ub::PoisonOp::create(builder, loc, type);
}

/// Bufferization requires that values which the condition forwards, and which
/// an iteration yields, are in the memory of the argument at the same position.
/// So all regions get the same arguments: the carried values, then further
/// values that the condition forwards.
void Lowering::lowerWhile(scf::WhileOp op) {
  Location loc = op.getLoc();
  Block *oldBefore = op.getBeforeBody();
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> inits;
  appendOperands(op.getInits(), inits);
  if (options.copyCarried)
    for (Value &init : inits)
      if (isa<RankedTensorType>(init.getType()))
        init = copyTensor(init);
  size_t carried = inits.size();

  auto isCarried = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == oldBefore;
  };
  SmallVector<Type> types;
  // For each forwarded value, where it begins among the arguments.
  SmallVector<size_t> starts;
  SmallVector<Value> computed;
  for (Value value : condition.getArgs()) {
    types.clear();
    if (isCarried(value)) {
      for (Value earlier : oldBefore->getArguments().take_front(
               cast<BlockArgument>(value).getArgNumber()))
        convertType(earlier.getType(), types);
      starts.push_back(types.size());
      continue;
    }
    starts.push_back(inits.size());
    computed.push_back(value);
    convertType(value.getType(), types);
    for (Type type : types)
      inits.push_back(createPlaceholder(builder, loc, type));
  }
  types = llvm::to_vector(ValueRange(inits).getTypes());
  SmallVector<Location> locations(inits.size(), loc);

  auto loop = scf::WhileOp::create(builder, loc, types, inits);
  auto bind = [&](ValueRange from, ValueRange to) {
    for (auto [value, start] : llvm::zip_equal(to, starts))
      bindResults(from, value, start);
  };
  auto settle = [&](SmallVectorImpl<Value> &values, Block *block) {
    SmallVector<Value> destinations;
    for (auto [value, argument] :
         llvm::zip_equal(values, block->getArguments()))
      destinations.push_back(isa<RankedTensorType>(value.getType()) ? argument
                                                                    : Value());
    moveInto(values, destinations);
  };

  OpBuilder::InsertionGuard guard(builder);
  Block *before = builder.createBlock(&loop.getBefore(), {}, types, locations);
  bindArguments(before->getArguments().take_front(carried),
                op.getBeforeArguments());
  lowerBlock(*oldBefore);
  SmallVector<Value> forwarded(before->getArguments().take_front(carried));
  appendOperands(computed, forwarded);
  settle(forwarded, before);
  scf::ConditionOp::create(builder, condition.getLoc(),
                           getScalar(condition.getCondition()), forwarded);

  Block *after = builder.createBlock(&loop.getAfter(), {}, types, locations);
  bind(after->getArguments(), op.getAfterArguments());
  lowerBlock(*op.getAfterBody());
  SmallVector<Value> yields;
  appendOperands(op.getYieldOp().getResults(), yields);
  for (BlockArgument argument : after->getArguments().drop_front(carried))
    yields.push_back(argument);
  settle(yields, after);
  scf::YieldOp::create(builder, loc, yields);
  bind(loop.getResults(), op.getResults());
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
