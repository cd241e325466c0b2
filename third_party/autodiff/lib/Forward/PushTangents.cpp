//===- PushTangents.cpp - Derive the forward mode of a kernel -------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/SelectingAtomics.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Transforms/Needs.h"
#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PUSHTANGENTS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PushTangents : autodiff::impl::PushTangentsBase<PushTangents> {
  using PushTangentsBase::PushTangentsBase;

  void runOnOperation() override;
};
} // namespace

/// Adds to `wanted` the arguments between which the kernel chooses a pointer,
/// if one of them has tangents: an access through that pointer has tangents for
/// all of them.
static void addAlternatives(triton::FuncOp kernel, const ArgumentSet &outputs,
                            ArgumentSet &wanted) {
  SmallVector<SmallVector<BlockArgument>> choices;
  kernel.walk([&](Operation *op) {
    for (Value pointer : op->getResults())
      if (isPointer(pointer.getType()))
        if (auto bases = getBaseArguments(pointer); bases.size() > 1)
          choices.push_back(bases);
  });
  auto hasTangents = [&](BlockArgument base) {
    return wanted.contains(base.getArgNumber()) ||
           outputs.contains(base.getArgNumber());
  };
  for (bool changes = true; changes;) {
    changes = false;
    for (ArrayRef<BlockArgument> bases : choices)
      if (llvm::any_of(bases, hasTangents))
        for (BlockArgument base : bases)
          changes |=
              !hasTangents(base) && wanted.insert(base.getArgNumber()).second;
  }
}

/// Removes stores to arguments that nobody reads afterwards, if the kernel does
/// not, either.
static void dropStores(triton::FuncOp kernel, ArrayRef<unsigned> unread) {
  ArgumentSet dropped(unread.begin(), unread.end());
  auto isDropped = [&](BlockArgument base) {
    return dropped.contains(base.getArgNumber());
  };
  SmallVector<Operation *> stores;
  kernel.walk([&](Operation *op) {
    if (op->getNumRegions() || isMemoryEffectFree(op) ||
        op->getNumOperands() == 0 || !isPointer(op->getOperand(0).getType()))
      return;
    auto bases = getBaseArguments(op->getOperand(0));
    if (isa<triton::StoreOp>(op) && llvm::all_of(bases, isDropped))
      stores.push_back(op);
    else
      for (BlockArgument base : bases)
        dropped.erase(base.getArgNumber());
  });
  for (Operation *store : stores)
    if (llvm::all_of(getBaseArguments(store->getOperand(0)), isDropped))
      store->erase();
}

/// Marks exchanges with zero that take what is in memory of `taken`.
static void markTaking(triton::FuncOp kernel, ArrayRef<unsigned> taken) {
  kernel.walk([&](triton::AtomicRMWOp op) {
    auto isTaken = [&](BlockArgument base) {
      return llvm::is_contained(taken, base.getArgNumber());
    };
    if (op.getAtomicRmwOp() == triton::RMWOp::XCHG &&
        matchPattern(withoutBitcast(op.getVal()), m_AnyZeroFloat()) &&
        llvm::all_of(getBaseArguments(withoutBitcast(op.getPtr())), isTaken))
      op->setAttr(kTakesAttr, UnitAttr::get(op.getContext()));
  });
}

/// Marks maxima, minima and exchanges of floats in memory with tangents;
/// returns the arguments that they go to.
static SmallVector<int32_t> markLater(triton::FuncOp kernel,
                                      const Activity &activity) {
  llvm::SetVector<int32_t> found;
  kernel.walk([&](triton::AtomicRMWOp op) {
    if (!selectsFloats(op) || op->hasAttr(kTakesAttr))
      return;
    for (BlockArgument base : getBaseArguments(withoutBitcast(op.getPtr())))
      if (activity.hasShadow(base.getArgNumber())) {
        op->setAttr(kLaterAttr, UnitAttr::get(op.getContext()));
        found.insert(base.getArgNumber());
      }
  });
  return found.takeVector();
}

void PushTangents::runOnOperation() {
  if (failed(checkNeeds(getArgument(), getOperation(),
                        {Need::Kernel, Need::OneBlock})))
    return signalPassFailure();
  triton::FuncOp primal = getDifferentiated(getOperation());
  std::string name = (getPrimal(getOperation()).getSymName() + "_jvp").str();
  if (getOperation().lookupSymbol(name)) {
    primal.emitError("has its tangents already, in '") << name << "'";
    return signalPassFailure();
  }
  ArgumentSet varied = findWanted(primal, allWanted, wanted);
  ArgumentSet stored = findWithCotangents(primal, allOutputs, outputs);
  addAlternatives(primal, stored, varied);
  markTaking(primal, taken);
  Activity activity(primal, varied, stored);
  if (failed(activity.check()))
    return signalPassFailure();
  SmallVector<int32_t> settled;
  if (later)
    settled = markLater(primal, activity);

  triton::FuncOp kernel = derive(primal, "tangent");
  if (!settled.empty())
    kernel->setAttr(kLaterAttr, DenseI32ArrayAttr::get(&getContext(), settled));
  kernel.setSymName(name);
  Block &body = kernel.getBody().front();
  body.clear();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  Tangents tangents(builder, activity, primal.getLoc());
  tangents.primals.map(primal.getArguments(), kernel.getArguments());
  for (BlockArgument argument : primal.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (!activity.hasShadow(number))
      continue;
    // Tangents are aligned as their primals are.
    NamedAttrList attributes(primal.getArgAttrDict(number)
                                 ? primal.getArgAttrDict(number)
                                 : builder.getDictionaryAttr({}));
    attributes.set(kTangentAttr, builder.getI32IntegerAttr(number));
    unsigned last = kernel.getNumArguments();
    (void)kernel.insertArgument(last, argument.getType(),
                                attributes.getDictionary(&getContext()),
                                argument.getLoc());
    tangents.set(argument, kernel.getArgument(last));
  }
  if (failed(tangents.push(primal.getBody().front())))
    return signalPassFailure();
  triton::ReturnOp::create(builder, primal.getLoc(), ValueRange());
  dropStores(kernel, unread);
}
