//===- Activity.cpp - Which values carry a derivative ---------------------===//
#include "autodiff/Analysis/Activity.h"

#include "autodiff/Analysis/FloatFlow.h"
#include "autodiff/Analysis/MathFunctions.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/UserName.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isDifferentiable(Type type) { return isFloat(type); }

/// A residual that outputs are proved not to depend on.
static bool stopsDerivative(Operation *op) {
  auto residual = dyn_cast<ResidualOp>(op);
  return isPiecewiseConstant(op) || isa<StopGradientOp>(op) ||
         (residual && residual.getConstant());
}

bool mlir::autodiff::passesDerivative(Operation *op, Value operand,
                                      Value result) {
  return isDifferentiable(result.getType()) ? !stopsDerivative(op)
                                            : passesBits(op, operand);
}

/// The float tensors that `kernel` accesses with one of `AccessOps`.
template <typename... AccessOps>
static ArgumentSet findAccessed(triton::FuncOp kernel) {
  ArgumentSet arguments;
  kernel.walk([&](Operation *op) {
    if (!isa<AccessOps...>(op))
      return;
    for (BlockArgument base : getBaseArguments(op->getOperand(0)))
      if (isFloatTensor(base))
        arguments.insert(base.getArgNumber());
  });
  return arguments;
}

/// The float tensors among some arguments: others have no gradient.
static ArgumentSet findFloats(triton::FuncOp kernel,
                              ArrayRef<unsigned> listed) {
  ArgumentSet arguments;
  for (unsigned number : listed)
    if (number < kernel.getNumArguments() &&
        isFloatTensor(kernel.getArgument(number)))
      arguments.insert(number);
  return arguments;
}

ArgumentSet mlir::autodiff::findWanted(triton::FuncOp kernel, bool all,
                                       ArrayRef<unsigned> listed) {
  return all ? findAccessed<triton::LoadOp>(kernel)
             : findFloats(kernel, listed);
}

ArgumentSet mlir::autodiff::findWithCotangents(triton::FuncOp kernel, bool all,
                                               ArrayRef<unsigned> listed) {
  return all ? findAccessed<triton::StoreOp, triton::AtomicRMWOp>(kernel)
             : findFloats(kernel, listed);
}

Activity::Activity(triton::FuncOp kernel, const ArgumentSet &wanted,
                   const ArgumentSet &cotangents)
    : kernel(kernel), memory(kernel), wanted(wanted), cotangents(cotangents) {
  propagateVaried();
  propagateUseful();
  findCarrying();
}

Activity::Activity(triton::FuncOp function, ValueRange independent,
                   ValueRange dependent)
    : kernel(function), memory(function) {
  varied.insert_range(independent);
  useful.insert_range(dependent);
  propagateVaried();
  propagateUseful();
}

bool Activity::markVaried(Value value) { return varied.insert(value).second; }
bool Activity::markUseful(Value value) { return useful.insert(value).second; }

/// Whether `pointer` may point into the memory of one of `arguments`.
static bool pointsInto(Value pointer, const ArgumentSet &arguments) {
  return llvm::any_of(getBaseArguments(pointer), [&](BlockArgument base) {
    return arguments.contains(base.getArgNumber());
  });
}

/// Whether the memory that `read` reads depends on a wanted argument.
bool Activity::readsVaried(Operation *read) const {
  if (pointsInto(read->getOperand(0), wanted) &&
      isDifferentiable(read->getResult(0).getType()))
    return true;
  return llvm::any_of(memory.getWritesSeenBy(read), [&](Operation *write) {
    return isVaried(getWrittenValue(write));
  });
}

bool mlir::autodiff::followFlow(Operation *op,
                                llvm::function_ref<void(Value, Value)> flow) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // The result of a loop is what its last iteration yields, even if no
    // iteration reads it.
    for (auto [init, arg, yielded, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                         loop.getYieldedValues(), loop.getResults())) {
      flow(init, arg);
      flow(yielded, arg);
      flow(arg, result);
    }
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [init, arg, yielded] :
         llvm::zip_equal(loop.getInits(), loop.getBeforeArguments(),
                         loop.getYieldedValues())) {
      flow(init, arg);
      flow(yielded, arg);
    }
    for (auto [passed, arg, result] :
         llvm::zip_equal(loop.getConditionOp().getArgs(),
                         loop.getAfterArguments(), loop.getResults())) {
      flow(passed, arg);
      flow(passed, result);
      flow(arg, result);
    }
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (branch.getNumResults() > 0)
      for (auto [a, b, result] : llvm::zip_equal(
               branch.thenYield().getOperands(),
               branch.elseYield().getOperands(), branch.getResults())) {
        flow(a, result);
        flow(b, result);
      }
  } else if (auto custom = dyn_cast<CustomVjpOp>(op)) {
    for (Value input : custom.getInputs())
      for (Value result : custom.getResults())
        flow(input, result);
  } else {
    return false;
  }
  return true;
}

std::optional<SmallVector<Value>> mlir::autodiff::findHandedOn(Value value) {
  auto ofLoop = [](scf::ForOp loop, unsigned number) {
    return SmallVector<Value>{loop.getInitArgs()[number],
                              loop.getYieldedValues()[number]};
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return std::nullopt;
    return ofLoop(loop, argument.getArgNumber() - 1);
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return ofLoop(loop, number);
  if (auto branch = value.getDefiningOp<scf::IfOp>())
    return SmallVector<Value>{branch.thenYield().getOperand(number),
                              branch.elseYield().getOperand(number)};
  return std::nullopt;
}

void Activity::propagateVaried() {
  bool changed = true;
  auto flow = [&](Value from, Value to) {
    if (isVaried(from))
      changed |= markVaried(to);
  };
  while (changed) {
    changed = false;
    kernel.walk([&](Operation *op) {
      if (auto load = dyn_cast<triton::LoadOp>(op)) {
        if (readsVaried(load))
          changed |= markVaried(load.getResult());
        if (load.getOther())
          flow(load.getOther(), load.getResult());
        return;
      }
      if (followFlow(op, flow))
        return;
      // What it depends on is lost.
      if (isa<OnceOp>(op) && op->getNumOperands() == 1 && !wanted.empty())
        changed |= markVaried(op->getResult(0));
      if (getWrittenValue(op) && op->getNumResults() && readsVaried(op))
        changed |= markVaried(op->getResult(0));
      for (Value operand : getComputedWith(op))
        for (Value result : op->getResults())
          if (passesDerivative(op, operand, result))
            flow(operand, result);
    });
  }
}

void Activity::propagateUseful() {
  bool changed = true;
  auto flow = [&](Value from, Value to) {
    if (isUseful(to))
      changed |= markUseful(from);
  };
  // In reverse order: the uses of a value are visited before its definition.
  while (changed) {
    changed = false;
    kernel->walk<WalkOrder::PreOrder, ReverseIterator>([&](Operation *op) {
      if (followFlow(op, flow))
        return;
      if (Value stored = getWrittenValue(op)) {
        bool matters =
            pointsInto(op->getOperand(0), cotangents) ||
            llvm::any_of(memory.getReadsOf(op), [&](Operation *read) {
              return isUseful(read->getResult(0));
            });
        if (matters)
          changed |= markUseful(stored);
        return;
      }
      for (Value result : op->getResults())
        for (Value operand : getComputedWith(op))
          if (passesDerivative(op, operand, result))
            flow(operand, result);
    });
  }
}

/// Whether active floats go through memory by an operation without a rule.
bool Activity::touchesUnknownMemory(Operation *op) const {
  if (op->getNumRegions() || isMemoryEffectFree(op) ||
      isa<triton::PrintOp, triton::AssertOp, PushOp>(op))
    return false;
  auto matters = [&](Value value, bool relevant) {
    return relevant && isDifferentiable(value.getType());
  };
  return llvm::any_of(op->getResults(),
                      [&](Value v) { return matters(v, isUseful(v)); }) ||
         llvm::any_of(op->getOperands(),
                      [&](Value v) { return matters(v, isVaried(v)); });
}

void Activity::fail(Operation *op, const llvm::Twine &message) {
  op->emitError() << message;
  hasFailed = true;
}

void Activity::findCarrying() {
  kernel.walk([&](Operation *write) {
    Value written = getWrittenValue(write);
    if (!written || !isActive(written))
      return;
    for (Operation *read : memory.getReadsOf(write))
      if (isActive(read->getResult(0)))
        for (BlockArgument base : getBaseArguments(write->getOperand(0)))
          if (mayPointInto(read->getOperand(0), base))
            carrying.insert(base.getArgNumber());
  });
}

/// Where a pointer that is not based on an argument comes from, as a verb
/// phrase.
static llvm::StringRef describeOrigin(Value origin) {
  Operation *op = origin.getDefiningOp();
  if (isa_and_nonnull<triton::IntToPtrOp>(op))
    return "is made from an integer";
  if (isa_and_nonnull<triton::LoadOp>(op))
    return "is loaded from memory";
  return "comes from none of the kernel's arguments";
}

/// Rejects an access for which derivatives would be wrong: to memory of unknown
/// origin, or of floats in the form of integers.
void Activity::checkAccess(Operation *op) {
  if (op->getNumResults() && getWrittenValue(op) && !op->hasAttr(kTakesAttr) &&
      isActive(op->getResult(0)) &&
      isDifferentiable(op->getResult(0).getType()))
    return fail(op, "no derivative rule for the result of an atomic "
                    "operation that an output depends on, for it depends on "
                    "which program comes first; load the sum in another "
                    "kernel, or put the result through stop_gradient "
                    "(docs/python.md)");
  Value pointer = op->getOperand(0);
  bool isLoad = isa<triton::LoadOp>(op);
  // In a function, memory is no argument, so loads from it have no derivative.
  if (isLoad && kernel->hasAttr(kFunctionAttr) && !getBaseArgument(pointer))
    return;
  if (Value origin = getUnknownOrigin(pointer)) {
    bool matters =
        isLoad ? isUseful(op->getResult(0)) : isVaried(getWrittenValue(op));
    if (matters && isDifferentiable(getPointee(pointer.getType())))
      fail(op, "this access goes through a pointer that " +
                   describeOrigin(origin) +
                   ", so its gradient has nowhere to go; pass the tensor as an "
                   "argument of its own and offset that");
    return;
  }
  auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
  for (BlockArgument base : getBaseArguments(pointer)) {
    unsigned argument = base.getArgNumber();
    bool differentiated =
        carries(argument) ||
        (isLoad ? isWanted(argument) : hasCotangent(argument));
    if (hasShadow(argument) && isa<triton::AtomicCASOp>(op))
      return fail(op, "no derivative rule for a compare-and-swap on a "
                      "differentiated tensor, whose contents depend on which "
                      "program comes first; use tl.atomic_add, have programs "
                      "store to places of their own, or detach the tensor");
    Type held = getPointee(base.getType()),
         accessed = getPointee(pointer.getType());
    if (held != accessed && differentiated &&
        !(atomic && selectsContent(atomic)))
      return fail(op, spellForUser(op) +
                          " accesses memory of a differentiated tensor of " +
                          llvm::to_string(held) + " as " +
                          llvm::to_string(accessed) +
                          "; access what it holds, or detach it");
  }
}

/// Whether `read` may get from another program what an output's derivative goes
/// through, as floats or as their bits.
bool Activity::isHandedOn(Operation *read) const {
  bool mayBeAnothers = isa<triton::LoadOp>(read)
                           ? memory.getSynchronization().orders(read)
                           : read->getNumResults() != 0;
  return mayBeAnothers && isActive(read->getResult(0)) &&
         llvm::any_of(memory.getWritesSeenBy(read), [&](Operation *write) {
           return isVaried(getWrittenValue(write));
         });
}

/// Rejects a spin that computes what a derivative goes through, or stores to a
/// differentiated tensor.
void Activity::checkSpin(Operation *loop) {
  loop->walk([&](Operation *op) {
    bool computes = llvm::any_of(op->getResults(), [&](Value result) {
      return isActive(result) && isDifferentiable(result.getType());
    });
    bool stores = getWrittenValue(op) &&
                  llvm::any_of(getBaseArguments(op->getOperand(0)),
                               [&](BlockArgument base) {
                                 return hasShadow(base.getArgNumber());
                               });
    if ((computes || stores) && !hasFailed)
      fail(op, "this is in a loop that ends when another program of the launch "
               "has stored something. The backward cannot run it again, so no "
               "derivative goes through it; let the loop only wait or count, "
               "and do this behind it");
  });
}

/// Why a cast of bits is not understood, if it is known, as a clause.
static std::string describeReason(Operation *cast) {
  auto reason = cast->getAttrOfType<StringAttr>(kReasonAttr);
  return reason ? (", but " + reason.getValue()).str() : std::string();
}

LogicalResult Activity::check() {
  kernel.walk([&](Operation *op) {
    if (hasFailed)
      return;
    bool isRead = isa<triton::LoadOp>(op) || getWrittenValue(op);
    bool isSum = isRead && !isa<triton::LoadOp>(op) && op->getNumResults() &&
                 isDifferentiable(op->getResult(0).getType());
    if (isRead && !isSum && isHandedOn(op))
      return fail(op, "this waits for what other programs of the launch have "
                      "stored, and derivatives do not go from program to "
                      "program; launch another kernel that loads it, hand on "
                      "integers only (positions, counts), or give the whole a "
                      "derivative of its own (torch.autograd.Function). If "
                      "only this program stores there, load it before "
                      "anything waits");
    if (isSpin(op))
      return checkSpin(op);
    if (isa<triton::BitcastOp, arith::BitcastOp, arith::SIToFPOp,
            arith::UIToFPOp>(op) &&
        isDifferentiable(op->getResult(0).getType()) &&
        !isDifferentiable(op->getOperand(0).getType()) &&
        isActive(op->getResult(0)))
      return fail(op, "derivative lost in '" + op->getName().getStringRef() +
                          "': these bits were taken from a float that depends "
                          "on a differentiated input" +
                          describeReason(op) +
                          "; compute with floats "
                          "instead, or give the function or the assembly "
                          "that does this a derivative of its own (custom_vjp, "
                          "register_vjp, docs/python.md)");
    if (auto custom = dyn_cast<CustomVjpOp>(op)) {
      if (llvm::any_of(custom.getValues(),
                       [&](Value value) { return isVaried(value); }) &&
          llvm::any_of(custom.getResults(),
                       [&](Value result) { return isUseful(result); }))
        fail(op, "'" + custom.getRule() +
                     "' has a derivative of its own, but what it returns "
                     "depends on a differentiated tensor by another way than "
                     "its float arguments; pass the values as arguments");
      return;
    }
    if (isa<triton::LoadOp>(op) || getWrittenValue(op))
      checkAccess(op);
    else if (touchesUnknownMemory(op))
      fail(op, "no derivative rule for '" + op->getName().getStringRef() +
                   "', which may access memory and which a differentiated "
                   "value goes through; use loads and stores, or detach the "
                   "tensors that it depends on");
  });
  return failure(hasFailed);
}
