//===- Tape.cpp - Give the tapes that are read a place in memory ----------===//
#include "ProgramBuffers.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_TAPE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Recording {
  PushOp push;
  SmallVector<PopOp> pops;
};

struct Tape : autodiff::impl::TapeBase<Tape> {
  void runOnOperation() override;
  LogicalResult lower(unsigned index, Recording &recording);
  void addBarriers(scf::ForOp loop);
};
} // namespace

/// The most iterations that `loop` can have, for given program ids: where its
/// bounds move with loops around it, at their first or last iteration.
static std::optional<ScalarExpr> mostIterations(scf::ForOp loop) {
  std::optional<LinearForm> lower = LinearForm::of(loop.getLowerBound());
  std::optional<LinearForm> upper = LinearForm::of(loop.getUpperBound());
  std::optional<ScalarExpr> step = ScalarExpr::of(loop.getStep());
  if (!lower || !upper || !step)
    return std::nullopt;
  LinearForm form = *upper - *lower;
  ScalarExpr span = form.constant;
  for (const LinearForm::Term &term : form.terms) {
    if (term.dimension.kind == Dimension::Kind::Program) {
      span = span + *term.dimension.digit * term.coefficient;
      continue;
    }
    std::optional<int64_t> slope = term.coefficient.getConstant();
    if (term.dimension.kind != Dimension::Kind::Loop || !slope)
      return std::nullopt;
    if (*slope < 0)
      continue;
    std::optional<ScalarExpr> outer =
        mostIterations(cast<scf::ForOp>(term.dimension.loop));
    if (!outer)
      return std::nullopt;
    span = span + (*outer - ScalarExpr::constant(1)) * term.coefficient;
  }
  return tripCount(ScalarExpr::constant(0), span, *step);
}

static std::optional<llvm::json::Value> countEntries(scf::ForOp loop) {
  std::optional<ScalarExpr> count = mostIterations(loop);
  if (!count)
    return std::nullopt;
  if (!count->dependsOnProgramId())
    return count->toJSON();
  return llvm::json::Array{"maxpids", count->toJSON()};
}

/// All threads of a program see the whole tape, and reuse it only when all
/// have read it.
void Tape::addBarriers(scf::ForOp loop) {
  OpBuilder builder(loop);
  if (loop->getParentOfType<scf::ForOp>())
    gpu::BarrierOp::create(builder, loop.getLoc());
  builder.setInsertionPointAfter(loop);
  gpu::BarrierOp::create(builder, loop.getLoc());
}

LogicalResult Tape::lower(unsigned index, Recording &recording) {
  PushOp push = recording.push;
  auto loop = cast<scf::ForOp>(push->getParentOp());
  Type type = push.getValue().getType();
  if (isPointer(type))
    return loop.emitError("this loop carries a pointer that does not advance "
                          "by the same amount in every iteration; compute the "
                          "offset from the loop variable instead");
  std::optional<llvm::json::Value> entries = countEntries(loop);
  if (!entries)
    return loop.emitError(
        "the backward needs what this loop carries between iterations, but "
        "how many iterations there are is not known when the kernel is "
        "launched; pass the bound as an argument");

  OpBuilder builder(push);
  auto kernel = getOperation();
  std::string name = "tape" + std::to_string(index);
  BlockArgument buffer = appendOperand(
      kernel, triton::PointerType::get(getStoredElement(type), 1),
      OperandAttr::get(builder.getContext(), OperandKind::Buffer, index),
      describeBuffer(builder, name, "tape", type, std::move(*entries)));
  kernel.setArgAttr(buffer.getArgNumber(), "tt.divisibility",
                    builder.getI32IntegerAttr(16));

  storeToSlot(builder, push.getLoc(), buffer, push.getIteration(),
              push.getValue());
  push.erase();
  for (PopOp pop : recording.pops) {
    builder.setInsertionPoint(pop);
    pop.replaceAllUsesWith(
        loadFromSlot(builder, pop.getLoc(), buffer, pop.getIteration(), type));
    pop.erase();
  }
  return success();
}

void Tape::runOnOperation() {
  auto role = getOperation()->getAttrOfType<StringAttr>(kRoleAttr);
  if (!role || role.getValue() != "backward")
    return;
  llvm::MapVector<unsigned, Recording> recordings;
  getOperation().walk([&](Operation *op) {
    if (auto push = dyn_cast<PushOp>(op))
      recordings[push.getTape()].push = push;
    else if (auto pop = dyn_cast<PopOp>(op))
      recordings[pop.getTape()].pops.push_back(pop);
  });
  unsigned buffers = 0;
  llvm::SetVector<Operation *> loops;
  for (auto &[tape, recording] : recordings) {
    if (!recording.push)
      continue; // the forward records it
    if (recording.pops.empty()) {
      recording.push.erase();
      continue;
    }
    loops.insert(recording.push->getParentOp());
    if (failed(lower(buffers++, recording)))
      return signalPassFailure();
  }
  for (Operation *loop : loops)
    addBarriers(cast<scf::ForOp>(loop));
}
