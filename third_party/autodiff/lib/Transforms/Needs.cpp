//===- Needs.cpp - What a pass needs of a module --------------------------===//
#include "autodiff/Transforms/Needs.h"

#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Checks what one pass needs of one module. Need::Kernel is checked first, and
/// all others assume that there is a kernel.
class Inspection {
public:
  Inspection(llvm::StringRef pass, ModuleOp module)
      : pass(pass), module(module), primal(getPrimal(module)),
        differentiated(getDifferentiated(module)),
        backwards(getBackwards(module)) {}

  LogicalResult check(Need need);

private:
  /// An error at `op`: the module lacks `what`, which the pass needs.
  InFlightDiagnostic lacks(Operation *op, const llvm::Twine &what) {
    return op->emitError() << pass << " needs " << what;
  }
  LogicalResult checkKernel();
  LogicalResult checkOneBlock();
  LogicalResult checkSites();
  LogicalResult checkUnderived(llvm::ArrayRef<llvm::StringRef> roles);
  LogicalResult checkSameLoops();
  LogicalResult checkBackward();
  LogicalResult checkOneBackward();
  LogicalResult checkTaped();
  LogicalResult checkUnsized();
  LogicalResult checkOperands(triton::FuncOp kernel);
  LogicalResult checkContributions(triton::FuncOp backward);

  llvm::StringRef pass;
  ModuleOp module;
  triton::FuncOp primal, differentiated;
  SmallVector<triton::FuncOp> backwards;
};
} // namespace

LogicalResult Inspection::checkKernel() {
  if (!primal)
    return lacks(module, "a kernel: there is no public function "
                         "to differentiate");
  if (primal.getNumResults())
    return primal.emitError("a kernel returns nothing: store the results");
  for (auto other : module.getOps<triton::FuncOp>())
    if (other != primal && other.isPublic() && !other->hasAttr(kRoleAttr))
      return lacks(other, "one kernel, but there is another public function: ")
             << primal.getSymName();
  return success();
}

LogicalResult Inspection::checkOneBlock() {
  for (triton::FuncOp kernel : {primal, differentiated})
    if (!kernel.getBody().hasOneBlock())
      return lacks(kernel, "a kernel of one block (autodiff-normalize makes "
                           "it so)");
  return success();
}

static bool isNumbered(Operation *op) {
  return isa<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp>(op);
}

LogicalResult Inspection::checkSites() {
  Operation *bare = nullptr;
  differentiated.walk([&](Operation *op) {
    if (!bare && isNumbered(op) && !op->getAttrOfType<IntegerAttr>(kSiteAttr))
      bare = op;
  });
  return bare ? lacks(bare, "accesses with numbers (autodiff-normalize gives "
                            "them)")
              : success();
}

LogicalResult
Inspection::checkUnderived(llvm::ArrayRef<llvm::StringRef> roles) {
  for (auto function : module.getOps<triton::FuncOp>())
    if (llvm::is_contained(roles, getRole(function)))
      return lacks(function, "to come before what derives this kernel (`")
             << getRole(function) << "`)";
  return success();
}

LogicalResult Inspection::checkSameLoops() {
  auto haveSameResults = [](scf::ForOp one, scf::ForOp other) {
    return one.getResultTypes() == other.getResultTypes();
  };
  if (!llvm::equal(getLoops(primal), getLoops(differentiated), haveSameResults))
    return lacks(differentiated, "a copy with the loops of its kernel, of "
                                 "which a pass has rewritten some");
  return success();
}

/// Whether a function is a kernel of the plan, whose arguments have
/// descriptions.
static bool isPlanned(llvm::StringRef role) {
  return !role.empty() && role != "rule" && role != "differentiated";
}

LogicalResult Inspection::checkOperands(triton::FuncOp kernel) {
  for (unsigned place = 0; place < kernel.getNumArguments(); ++place) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
    if (!operand)
      return lacks(kernel, "derived kernels that say what their arguments are "
                           "(`" +
                               kOperandAttr + "`): argument ")
             << place << " does not";
    bool isOfPrimal =
        llvm::is_contained({OperandKind::Argument, OperandKind::Cotangent,
                            OperandKind::Gradient, OperandKind::Rounded},
                           operand.getKind());
    if (isOfPrimal && operand.getIndex() >= primal.getNumArguments())
      return lacks(kernel, "derived kernels with arguments of its kernel: ")
             << "argument " << place << " is of none";
  }
  return success();
}

LogicalResult Inspection::checkContributions(triton::FuncOp backward) {
  llvm::DenseMap<unsigned, Operation *> sites = collectSites(differentiated);
  WalkResult walk = backward.walk([&](Operation *op) {
    auto accumulate = dyn_cast<AccumulateOp>(op);
    auto upstream = dyn_cast<UpstreamOp>(op);
    if (!accumulate && !upstream)
      return WalkResult::advance();
    Operation *site =
        sites.lookup(accumulate ? accumulate.getSite() : upstream.getSite());
    bool fits =
        accumulate
            ? isa_and_nonnull<triton::LoadOp>(site)
            : isa_and_nonnull<triton::StoreOp, triton::AtomicRMWOp>(site);
    unsigned argument =
        accumulate ? accumulate.getArgument() : upstream.getArgument();
    if (!fits || argument >= primal.getNumArguments()) {
      (void)lacks(op, "the adjoint of an access that the kernel has");
      return WalkResult::interrupt();
    }
    auto own =
        OperandAttr::get(op->getContext(), OperandKind::Argument, argument);
    if (argument < backward.getNumArguments() &&
        backward.getArgAttr(argument, kOperandAttr) == own)
      return WalkResult::advance();
    (void)lacks(op, "backward kernels with all arguments of its kernel, in "
                    "order (autodiff-trim-operands comes last)");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult Inspection::checkBackward() {
  bool isFound = false;
  for (auto function : module.getOps<triton::FuncOp>()) {
    if (isPlanned(getRole(function)) && failed(checkOperands(function)))
      return failure();
    if (getRole(function) != "backward")
      continue;
    isFound = true;
    if (!function.getBody().hasOneBlock())
      return lacks(function, "a backward kernel of one block");
  }
  if (!isFound)
    return lacks(module, "a backward kernel (autodiff-reverse makes it)");
  for (triton::FuncOp backward : backwards) {
    if (failed(checkContributions(backward)))
      return failure();
  }
  return success();
}

LogicalResult Inspection::checkOneBackward() {
  if (backwards.size() == 1)
    return success();
  return lacks(backwards[1], "one backward kernel, before any schedule, but "
                             "here is another one");
}

LogicalResult Inspection::checkTaped() {
  llvm::DenseSet<unsigned> recorded;
  primal.walk([&](PushOp push) { recorded.insert(push.getTape()); });
  Operation *open = nullptr, *lost = nullptr;
  for (triton::FuncOp backward : backwards)
    backward.walk([&](Operation *op) {
      auto pop = dyn_cast<PopOp>(op);
      if (isa<PushOp>(op))
        open = op;
      else if (pop && !recorded.contains(pop.getTape()))
        lost = op;
    });
  if (open)
    return lacks(open,
                 "tapes with a place (autodiff-place-tapes gives them one)");
  if (lost)
    return lacks(lost, "a record that the kernel makes");
  return success();
}

LogicalResult Inspection::checkUnsized() {
  for (auto function : module.getOps<triton::FuncOp>())
    for (unsigned place = 0; place < function.getNumArguments(); ++place) {
      auto operand =
          function.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
      if (operand && operand.getKind() == OperandKind::Size)
        return lacks(function, "to come once, and there are sizes already");
    }
  return success();
}

LogicalResult Inspection::check(Need need) {
  switch (need) {
  case Need::Kernel:
    return checkKernel();
  case Need::OneBlock:
    return checkOneBlock();
  case Need::Sites:
    return checkSites();
  case Need::Underived:
    return checkUnderived(
        {"differentiated", "backward", "forward", "count", "variant"});
  case Need::Unreversed:
    return checkUnderived({"backward", "forward"});
  case Need::SameLoops:
    return checkSameLoops();
  case Need::Backward:
    return checkBackward();
  case Need::OneBackward:
    return checkOneBackward();
  case Need::Taped:
    return checkTaped();
  case Need::Unsized:
    return checkUnsized();
  }
  llvm_unreachable("unknown need");
}

LogicalResult mlir::autodiff::checkNeeds(llvm::StringRef pass, ModuleOp module,
                                         llvm::ArrayRef<Need> needs) {
  Inspection inspection(pass, module);
  for (Need need : needs)
    if (failed(inspection.check(need)))
      return failure();
  return success();
}
