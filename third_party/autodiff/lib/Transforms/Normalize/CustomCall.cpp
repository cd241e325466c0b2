//===- CustomCall.cpp - Calls that stand for a user's derivative ----------===//
#include "autodiff/Transforms/CustomCall.h"

#include "autodiff/Assembly/Lift.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

// What the callee's name starts with says what the call has, and whether its
// author says that it is exact.
constexpr llvm::StringLiteral kReverse = "autodiff.custom_vjp.";
constexpr llvm::StringLiteral kBothWays = "autodiff.custom_jvp.";
constexpr llvm::StringLiteral kExact = "autodiff.custom_exact.";
// A call of a value and the inputs that it depends on.
constexpr llvm::StringLiteral kOnce = "autodiff.custom_once.";

std::optional<CustomCall> CustomCall::find(triton::CallOp call) {
  CustomCall found(call);
  StringRef name = call.getCallee();
  found.isExact = name.consume_front(kExact);
  bool hasTangents = found.isExact || name.consume_front(kBothWays);
  if (!hasTangents && !name.consume_front(kReverse))
    return std::nullopt;
  found.rule = name.rsplit('.').first;
  ValueRange operands = call.getOperands();
  unsigned results = call.getNumResults();
  unsigned inputs = (operands.size() - results * (hasTangents ? 2 : 1)) / 2;
  found.values = operands.take_front(results);
  found.inputs = operands.slice(results, inputs);
  found.gradients = operands.slice(results + inputs, inputs);
  found.tangents = operands.drop_front(results + 2 * inputs);
  return found;
}

//===----------------------------------------------------------------------===//
// Reading a call
//===----------------------------------------------------------------------===//

/// Whether `op` or an operation inside has an operand that `isOne`.
static bool usesAny(Operation *op, llvm::function_ref<bool(Value)> isOne) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), isOne)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns what stands for derivatives of `of`, which is inline assembly on
/// these, also where nobody uses it, and what depends on it.
///
/// Several calls may have one value, since a function may return what it is
/// given. Calls nest like brackets: the latest assembly is this call's.
FailureOr<CustomCall::Part> CustomCall::findPart(ValueRange of,
                                                 StringRef what) {
  Part part;
  for (auto [index, value] : llvm::enumerate(of)) {
    Operation *latest = nullptr;
    std::string marker = (what + " " + Twine(index)).str();
    for (Operation *user : value.getUsers())
      if (user->getBlock() == call->getBlock() && getMarker(user) == marker &&
          user->isBeforeInBlock(call) &&
          (!latest || latest->isBeforeInBlock(user)))
        latest = user;
    if (!latest)
      return call->emitError() << "malformed " << what << "s";
    part.standIns.push_back(latest);
    part.dependent.insert(latest);
  }
  for (Operation &op : *call->getBlock()) {
    if (&op == call)
      break;
    if (usesAny(&op, [&](Value operand) {
          return part.dependent.contains(operand.getDefiningOp());
        }))
      part.dependent.insert(&op);
  }
  for (Operation *op : part.dependent)
    for (Operation *user : op->getUsers()) {
      Operation *outer = call->getBlock()->findAncestorOpInBlock(*user);
      if (outer != call && !part.dependent.contains(outer))
        return user->emitError() << "only the derivative of '" << rule
                                 << "' may use its " << what;
    }
  return part;
}

/// Adds to `part` what it needs of what depends on the values. Where a rule is
/// differentiated again, what it reads of the values moves as they do.
void CustomCall::addReaders(Part &part, ValueRange yielded) {
  Block *block = call->getBlock();
  llvm::DenseSet<Operation *> readers;
  auto isValue = [&](Value value) { return llvm::is_contained(values, value); };
  for (Operation &op : *block) {
    if (&op == call)
      break;
    bool computesValue = llvm::any_of(op.getResults(), isValue);
    if (!computesValue && usesAny(&op, [&](Value operand) {
          return isValue(operand) || readers.contains(operand.getDefiningOp());
        }))
      readers.insert(&op);
  }
  SmallVector<Operation *> pending(part.dependent.getArrayRef());
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    op = op ? block->findAncestorOpInBlock(*op) : nullptr;
    if (op && readers.contains(op) && !part.dependent.contains(op) &&
        part.read.insert(op))
      pending.push_back(op);
  };
  llvm::for_each(yielded, need);
  while (!pending.empty())
    pending.pop_back_val()->walk(
        [&](Operation *inner) { llvm::for_each(inner->getOperands(), need); });
}

/// Copies operations to the end of `block`, whose arguments take the place of
/// the stand-ins. They read the values `once` if these have no derivative
/// there.
LogicalResult CustomCall::moveInto(Block &block, const Part &part,
                                   ValueRange yielded, bool once) {
  IRMapping mapping;
  for (auto [standIn, argument] :
       llvm::zip_equal(part.standIns, block.getArguments()))
    mapping.map(standIn->getResult(0), argument);
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  SmallVector<Operation *> moved(part.read.getArrayRef());
  for (Operation *op : part.dependent)
    if (!llvm::is_contained(part.standIns, op))
      moved.push_back(op);
  llvm::sort(moved,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Value value : values) {
    Value own = block.addArgument(value.getType(), call.getLoc());
    if (once)
      own = OnceOp::create(builder, call.getLoc(), own, ValueRange());
    mapping.map(value, own);
  }
  for (Operation *op : moved) {
    if (!isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      return op->emitError()
             << "the derivative of '" << rule << "' must not have an effect";
    builder.clone(*op, mapping);
  }
  YieldOp::create(builder, call.getLoc(),
                  llvm::map_to_vector(yielded, [&](Value v) {
                    return mapping.lookupOrDefault(v);
                  }));
  return success();
}

void CustomCall::replace(ValueRange by, ArrayRef<Part> parts) {
  call->replaceAllUsesWith(by);
  call->erase();
  for (const Part &part : parts)
    for (Operation *op : llvm::reverse(part.dependent))
      op->erase();
}

LogicalResult CustomCall::link(unsigned number, bool forward, bool again) {
  FailureOr<Part> back = findPart(values, "cotangent");
  FailureOr<Part> forth =
      tangents.empty() ? Part() : findPart(inputs, "tangent");
  if (failed(back) || failed(forth))
    return failure();
  OpBuilder builder(call);
  auto custom = CustomVjpOp::create(builder, call.getLoc(), values.getTypes(),
                                    values, inputs, builder.getStringAttr(rule),
                                    builder.getI32IntegerAttr(number), isExact);
  auto addBlock = [&](Region &region, ValueRange of) -> Block & {
    Block &block = region.emplaceBlock();
    for (Value value : of)
      block.addArgument(Adjoint::typeFor(value.getType()), call.getLoc());
    return block;
  };
  again = again && !mutation::isMade("rules:a pullback that reads the body");
  addReaders(*back, gradients);
  if (failed(moveInto(addBlock(custom.getPullback(), values), *back, gradients,
                      again)))
    return failure();
  if (forward && !tangents.empty()) {
    if (!mutation::isMade("rules:what is read of values does not move"))
      addReaders(*forth, tangents);
    if (failed(moveInto(addBlock(custom.getPushforward(), inputs), *forth,
                        tangents, /*once=*/false)))
      return failure();
  }
  replace(custom.getResults(), {*back, *forth});
  return success();
}

LogicalResult CustomCall::drop() {
  FailureOr<Part> back = findPart(values, "cotangent");
  FailureOr<Part> forth = findPart(inputs, "tangent");
  if (failed(back) || failed(forth))
    return failure();
  replace(llvm::map_to_vector(values,
                              [](Value value) {
                                Operation *op = value.getDefiningOp();
                                return op && getMarker(op) == "inside"
                                           ? op->getOperand(0)
                                           : value;
                              }),
          {*back, *forth});
  return success();
}

//===----------------------------------------------------------------------===//
// Writing one
//===----------------------------------------------------------------------===//

/// Copies `block` to where `b` is, with stand-ins for the derivatives that it
/// is given; returns what it yields.
static SmallVector<Value> inlineWithStandIns(OpBuilder &b, Location loc,
                                             Block &block, ValueRange of,
                                             IRMapping mapping,
                                             StringRef what) {
  auto given = block.getArguments().take_front(of.size());
  for (auto [index, argument] : llvm::enumerate(given)) {
    std::string text = ("// autodiff." + what + " " + Twine(index)).str();
    auto standIn = triton::ElementwiseInlineAsmOp::create(
        b, loc, {argument.getType()}, text, "=r,r", /*pure=*/false,
        /*packed_element=*/1, {of[index]});
    mapping.map(argument, standIn->getResult(0));
  }
  for (Operation &op : block.without_terminator())
    b.clone(op, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Replaces `op` by a call of a function that is only declared.
static void replaceByCall(Operation *op, const Twine &name,
                          ValueRange operands) {
  auto module = op->getParentOfType<ModuleOp>();
  std::string prefix = (name + ".").str();
  unsigned number = 0;
  while (module.lookupSymbol(prefix + std::to_string(number)))
    ++number;
  OpBuilder declaring = OpBuilder::atBlockEnd(module.getBody());
  auto callee = triton::FuncOp::create(
      declaring, op->getLoc(), prefix + std::to_string(number),
      declaring.getFunctionType(operands.getTypes(), op->getResultTypes()));
  callee.setPrivate();
  OpBuilder b(op);
  auto call = triton::CallOp::create(b, op->getLoc(), callee, operands);
  op->replaceAllUsesWith(call->getResults());
  op->erase();
}

void CustomCall::write(CustomVjpOp custom, ValueRange stopped) {
  OpBuilder b(custom);
  Location loc = custom.getLoc();
  SmallVector<Value> operands(stopped);
  llvm::append_range(operands, custom.getInputs());
  IRMapping mapping;
  mapping.map(custom.getValues(), stopped);
  auto append = [&](Region &region, ValueRange of, StringRef what) {
    auto read = region.front().getArguments().drop_front(of.size());
    for (auto [argument, value] : llvm::zip(read, stopped))
      mapping.map(argument, value);
    llvm::append_range(operands, inlineWithStandIns(b, loc, region.front(), of,
                                                    mapping, what));
  };
  append(custom.getPullback(), stopped, "cotangent");
  append(custom.getPushforward(), custom.getInputs(), "tangent");

  replaceByCall(custom, kExact + custom.getRule(), operands);
}

void CustomCall::write(OnceOp once) {
  SmallVector<Value> operands{once.getValue()};
  llvm::append_range(operands, once.getInputs());
  replaceByCall(once, kOnce + Twine("value"), operands);
}

bool CustomCall::linkOnce(triton::CallOp call) {
  if (!call.getCallee().starts_with(kOnce))
    return false;
  OpBuilder b(call);
  ValueRange operands = call.getOperands();
  auto once =
      OnceOp::create(b, call.getLoc(), operands.front(), operands.drop_front());
  call->replaceAllUsesWith(once);
  call->erase();
  return true;
}

bool CustomCall::dropOnce(triton::CallOp call) {
  if (!call.getCallee().starts_with(kOnce))
    return false;
  call->replaceAllUsesWith(ValueRange(call.getOperands().front()));
  call->erase();
  return true;
}
