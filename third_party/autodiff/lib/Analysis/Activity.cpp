//===- Activity.cpp - Which values carry a derivative ---------------------===//
#include "autodiff/Analysis/Activity.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/RuleTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isDifferentiable(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

/// A residual that the outputs were proved not to depend on.
static bool stopsDerivative(Operation *op) {
  auto residual = dyn_cast<ResidualOp>(op);
  return isPiecewiseConstant(op) || isa<StopGradientOp>(op) ||
         (residual && residual.getConstant());
}

/// Integers that hold the bits of a float: the derivative would be lost in
/// them, so they are followed until they turn into a float again. A library
/// function or assembly may move bits unless its rule says otherwise.
static bool movesBits(Operation *op) {
  if (isa<triton::BitcastOp, arith::BitcastOp>(op))
    return true;
  if (isa<triton::ExternElementwiseOp, triton::ElementwiseInlineAsmOp>(op))
    return !isPiecewiseConstant(op);
  return isa<arith::AddIOp, arith::SubIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp,
             arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op);
}

Activity::Activity(triton::FuncOp kernel, const ArgumentSet &wanted,
                   const ArgumentSet &cotangents)
    : kernel(kernel), wanted(wanted), cotangents(cotangents) {
  propagateVaried();
  propagateUseful();
  checkMemory();
}

bool Activity::markVaried(Value value) { return varied.insert(value).second; }
bool Activity::markUseful(Value value) { return useful.insert(value).second; }

static bool isWantedLoad(triton::LoadOp load, const ArgumentSet &wanted) {
  BlockArgument base = getBaseArgument(load.getPtr());
  return base && wanted.contains(base.getArgNumber());
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
        if (isDifferentiable(load.getType()) && isWantedLoad(load, wanted))
          changed |= markVaried(load.getResult());
        if (load.getOther())
          flow(load.getOther(), load.getResult());
        return;
      }
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (auto [init, arg, yielded, result] :
             llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                             loop.getYieldedValues(), loop.getResults())) {
          flow(init, arg);
          flow(yielded, arg);
          flow(arg, result);
        }
        return;
      }
      if (auto loop = dyn_cast<scf::WhileOp>(op)) {
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
        }
        return;
      }
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (branch.getNumResults() == 0)
          return;
        for (auto [a, b, result] : llvm::zip_equal(
                 branch.thenYield().getOperands(),
                 branch.elseYield().getOperands(), branch.getResults())) {
          flow(a, result);
          flow(b, result);
        }
        return;
      }
      if (auto custom = dyn_cast<CustomVjpOp>(op)) {
        for (Value input : custom.getInputs())
          for (Value result : custom.getResults())
            flow(input, result);
        return;
      }
      bool toFloats = !stopsDerivative(op);
      bool toBits = movesBits(op);
      for (Value operand : op->getOperands())
        for (Value result : op->getResults())
          if (isDifferentiable(result.getType()) ? toFloats : toBits)
            flow(operand, result);
    });
  }
}

void Activity::propagateUseful() {
  bool changed = true;
  auto flow = [&](Value to, Value from) {
    if (isUseful(to))
      changed |= markUseful(from);
  };
  while (changed) {
    changed = false;
    kernel.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (auto [init, arg, yielded, result] :
             llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                             loop.getYieldedValues(), loop.getResults())) {
          flow(result, yielded);
          flow(arg, yielded);
          flow(result, init);
          flow(arg, init);
        }
        return;
      }
      if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        for (auto [passed, arg, result] :
             llvm::zip_equal(loop.getConditionOp().getArgs(),
                             loop.getAfterArguments(), loop.getResults())) {
          flow(result, passed);
          flow(arg, passed);
        }
        for (auto [init, arg, yielded] :
             llvm::zip_equal(loop.getInits(), loop.getBeforeArguments(),
                             loop.getYieldedValues())) {
          flow(arg, init);
          flow(arg, yielded);
        }
        return;
      }
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (branch.getNumResults() == 0)
          return;
        for (auto [a, b, result] : llvm::zip_equal(
                 branch.thenYield().getOperands(),
                 branch.elseYield().getOperands(), branch.getResults())) {
          flow(result, a);
          flow(result, b);
        }
        return;
      }
      Value stored;
      if (auto store = dyn_cast<triton::StoreOp>(op))
        stored = store.getValue();
      else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
        stored = atomic.getVal();
      if (stored) {
        BlockArgument base = getBaseArgument(op->getOperand(0));
        if (base && cotangents.contains(base.getArgNumber()))
          changed |= markUseful(stored);
        return;
      }
      if (auto custom = dyn_cast<CustomVjpOp>(op)) {
        for (Value result : custom.getResults())
          for (Value input : custom.getInputs())
            flow(result, input);
        return;
      }
      if (stopsDerivative(op))
        return;
      for (Value result : op->getResults())
        for (Value operand : op->getOperands())
          flow(result, operand);
    });
  }
}

namespace {
/// The memory accesses of a kernel through one argument, in program order.
struct Accesses {
  SmallVector<Operation *> loads, stores;
};
} // namespace

/// Whether `later` can run after `earlier` within one program.
static bool mayFollow(Operation *earlier, Operation *later) {
  for (Operation *loop = earlier->getParentOp(); loop;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(later))
      return true; // in the next iteration
  Operation *ancestor = earlier;
  for (; ancestor; ancestor = ancestor->getParentOp())
    if (Operation *inBlock =
            ancestor->getBlock()->findAncestorOpInBlock(*later))
      return ancestor->isBeforeInBlock(inBlock);
  return true;
}

/// Whether floats that matter pass through memory by an operation other than
/// those that have a rule.
bool Activity::touchesUnknownMemory(Operation *op) const {
  if (op->getNumRegions() || isMemoryEffectFree(op) ||
      isa<triton::PrintOp, triton::AssertOp>(op))
    return false;
  auto matters = [&](Value value, bool relevant) {
    return relevant && isDifferentiable(value.getType());
  };
  return llvm::any_of(op->getResults(),
                      [&](Value v) { return matters(v, isUseful(v)); }) ||
         llvm::any_of(op->getOperands(),
                      [&](Value v) { return matters(v, isVaried(v)); });
}

/// Rejects what would make derivatives wrong: floats that come from memory
/// nobody knows, floats that hide in integers, values that travel through
/// memory within a kernel.
void Activity::checkMemory() {
  llvm::DenseMap<unsigned, Accesses> accesses;
  auto fail = [&](Operation *op, const llvm::Twine &message) {
    op->emitError() << message;
    hasFailed = true;
  };
  kernel.walk([&](Operation *op) {
    if (hasFailed)
      return;
    if (movesBits(op) && isa<triton::BitcastOp, arith::BitcastOp>(op) &&
        isDifferentiable(op->getResult(0).getType()) &&
        !isDifferentiable(op->getOperand(0).getType()) &&
        isActive(op->getResult(0)))
      return fail(op, "derivative lost: these bits were taken from a float "
                      "that depends on a differentiated input; compute with "
                      "floats instead");
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
    auto load = dyn_cast<triton::LoadOp>(op);
    if (!load && !isa<triton::StoreOp, triton::AtomicRMWOp>(op)) {
      if (touchesUnknownMemory(op))
        fail(op, "no derivative rule for this access to memory, which a "
                 "differentiated value goes through");
      return;
    }
    if (!load && op->getNumResults() && isUseful(op->getResult(0)) &&
        isDifferentiable(op->getResult(0).getType()))
      return fail(op, "no derivative rule for the result of an atomic "
                      "operation that an output depends on");
    Value pointer = op->getOperand(0);
    BlockArgument base = getBaseArgument(pointer);
    if (!base) {
      bool matters =
          load ? isUseful(load.getResult()) : isVaried(op->getOperand(1));
      if (matters)
        fail(op, "cannot tell which argument this pointer comes from, so its "
                 "gradient has nowhere to go; pass the tensor as an argument "
                 "of its own");
      return;
    }
    Type pointee = cast<triton::PointerType>(base.getType()).getPointeeType();
    bool reinterpreted = pointee != getPointee(pointer.getType());
    bool differentiated = load ? wanted.contains(base.getArgNumber())
                               : cotangents.contains(base.getArgNumber());
    if (reinterpreted && differentiated)
      return fail(op, "memory of a differentiated tensor is accessed with "
                      "another element type");
    Accesses &byBase = accesses[base.getArgNumber()];
    (load ? byBase.loads : byBase.stores).push_back(op);
  });
  for (auto &[argument, byBase] : accesses)
    for (Operation *store : byBase.stores)
      for (Operation *load : byBase.loads) {
        if (hasFailed || !mayFollow(store, load))
          continue;
        bool carriesDerivative =
            isVaried(store->getOperand(1)) && isUseful(load->getResult(0));
        bool overwritesPrimal =
            wanted.contains(argument) && isUseful(load->getResult(0));
        if (carriesDerivative || overwritesPrimal) {
          fail(load, "reads memory that the same kernel has stored to; the "
                     "backward cannot reconstruct what was there. Keep the "
                     "value in a variable, or load before storing");
        }
      }
}
