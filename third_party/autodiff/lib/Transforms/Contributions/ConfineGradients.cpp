//===- ConfineGradients.cpp - Gradients stay inside of their buffers ------===//
//
// If nobody knows before a kernel runs how far its addresses reach (they are
// loaded, for example), stores and additions to a gradient there are masked.
// The mask is the same for a whole run, the lanes of a row with a constant
// distance (Runs.h), so that it costs next to nothing. The gradient's buffer
// has a margin on both sides: a run with any element inside of the tensor's
// storage stays in the buffer.
//
//===----------------------------------------------------------------------===//
#include "Runs.h"
#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CONFINEGRADIENTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ConfineGradients
    : autodiff::impl::ConfineGradientsBase<ConfineGradients> {
  using ConfineGradientsBase::ConfineGradientsBase;

  void transform() override;
  void confine(triton::FuncOp kernel, BlockArgument buffer, unsigned argument,
               bool onlySums);
};
} // namespace

/// Masks the lanes that are not `inside`.
template <typename AccessOp>
static void restrict(OpBuilder &b, AccessOp op, Value inside) {
  op.getMaskMutable().assign(bothHold(b, op.getLoc(), op.getMask(), inside));
}

/// The accesses to a buffer; maybe only the additions.
static SmallVector<Operation *>
findAccesses(triton::FuncOp kernel, BlockArgument buffer, bool onlySums) {
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (pointer && mayPointInto(pointer, buffer) &&
        (!onlySums || isa<triton::AtomicRMWOp>(op)))
      accesses.push_back(op);
  });
  return accesses;
}

/// For each lane, whether the pointer's run (Runs.h) is inside of the buffer.
static Value isInside(OpBuilder &b, Location loc, Value pointer,
                      BlockArgument buffer, unsigned argument) {
  std::optional<unsigned> axis = findRunAxis(pointer);
  Value first = axis ? getFirstLane(b, pointer, *axis) : pointer;
  if (!first) {
    axis = std::nullopt;
    first = pointer;
  }
  int64_t runSpan = getRunSpan(pointer, axis);
  // Counted from the start of the buffer, and unsigned, so that a place in
  // front of it is a large number.
  MLIRContext *context = b.getContext();
  ExprAttr lead = ExprAttr::get(context, ExprKind::Lead, argument);
  if (axis && *findLaneStep(pointer, *axis) < 0)
    lead = subOf(lead, runSpan - 1);
  Value place = offsetFrom(b, loc, buffer, first);
  auto number = [&](ExprAttr expression) {
    return splatTo(b, loc, SizeOp::create(b, loc, expression), place.getType());
  };
  place = arith::AddIOp::create(b, loc, place, number(lead));
  ExprAttr span = ExprAttr::get(context, ExprKind::Span, argument);
  Value end = number(subOf(span, runSpan - 1));
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, end);
  if (!axis)
    return inside;
  auto lanes = cast<RankedTensorType>(pointer.getType()).clone(b.getI1Type());
  return repeatAlong(b, loc, inside, *axis, lanes);
}

void ConfineGradients::confine(triton::FuncOp kernel, BlockArgument buffer,
                               unsigned argument, bool onlySums) {
  for (Operation *op : findAccesses(kernel, buffer, onlySums)) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value inside = isInside(b, loc, getAccessedPointer(op), buffer, argument);
    if (auto store = dyn_cast<triton::StoreOp>(op)) {
      restrict(b, store, inside);
    } else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op)) {
      restrict(b, atomic, inside);
    } else {
      auto load = cast<triton::LoadOp>(op);
      restrict(b, load, inside);
      if (!load.getOther())
        load.getOtherMutable().assign(zeroOf(b, loc, load.getType()));
    }
  }
}

void ConfineGradients::transform() {
  // The arguments by buffer number, which kernels that share a buffer have in
  // common.
  llvm::DenseMap<unsigned, SmallVector<BlockArgument>> buffers;
  for (auto kernel : getOperation().getOps<triton::FuncOp>())
    for (BlockArgument buffer : kernel.getArguments()) {
      unsigned place = buffer.getArgNumber();
      auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
      if (!operand || operand.getKind() != OperandKind::Gradient)
        continue;
      buffers[operand.getIndex()].push_back(buffer);
    }
  PlanOp plan = PlanOp::of(getOperation());
  if (!plan)
    return;
  for (auto item : plan.getItems<GradientOp>()) {
    GradientAttr gradient = item.getGradient();
    unsigned argument = gradient.getArgument();
    if (gradient.getConfined() == Confined::Nothing)
      continue;
    bool onlySums = gradient.getConfined() == Confined::Sums;
    int64_t margin = 0;
    for (BlockArgument buffer : buffers[argument]) {
      auto kernel = cast<triton::FuncOp>(buffer.getOwner()->getParentOp());
      for (Operation *op : findAccesses(kernel, buffer, onlySums)) {
        Value pointer = getAccessedPointer(op);
        margin =
            std::max(margin, getRunSpan(pointer, findRunAxis(pointer)) - 1);
      }
      if (masks && !mutation::isMade("confine:gradients anywhere"))
        confine(kernel, buffer, argument, onlySums);
    }
    if (mutation::isMade("confine:no margin"))
      margin = 0;
    item.setGradientAttr(gradient.withMargin(margin));
  }
}
