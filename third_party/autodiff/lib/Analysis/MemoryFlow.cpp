//===- MemoryFlow.cpp - What a kernel reads of its own stores -------------===//
#include "autodiff/Analysis/MemoryFlow.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/Pointers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::getWrittenValue(Operation *op) {
  if (auto store = dyn_cast<triton::StoreOp>(op))
    return store.getValue();
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    return atomic.getVal();
  if (auto atomic = dyn_cast<triton::AtomicCASOp>(op))
    return atomic.getVal();
  return {};
}

bool mlir::autodiff::selectsContent(triton::AtomicRMWOp op) {
  using triton::RMWOp;
  return llvm::is_contained(
      {RMWOp::MAX, RMWOp::MIN, RMWOp::UMAX, RMWOp::UMIN, RMWOp::XCHG},
      op.getAtomicRmwOp());
}

/// Whether `later` can run after `earlier` within the same iteration of all
/// loops around both.
static bool isAfter(Operation *later, Operation *earlier) {
  for (Operation *ancestor = earlier; ancestor;
       ancestor = ancestor->getParentOp())
    if (Operation *inBlock =
            ancestor->getBlock()->findAncestorOpInBlock(*later))
      return ancestor->isBeforeInBlock(inBlock);
  return true;
}

static SmallVector<Operation *> getCommonLoops(Operation *a, Operation *b) {
  SmallVector<Operation *> loops;
  for (Operation *loop = a->getParentOp(); loop; loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(b))
      loops.push_back(loop);
  return loops;
}

static bool isSame(const LinearForm &a, const LinearForm &b) {
  return a.constant == b.constant && a.terms.size() == b.terms.size() &&
         llvm::all_of(a.terms, [&](const LinearForm::Term &term) {
           return llvm::any_of(b.terms, [&](const LinearForm::Term &other) {
             return term.dimension == other.dimension &&
                    term.coefficient == other.coefficient;
           });
         });
}

/// Whether two accesses to the same buffer, of the same lanes in every
/// iteration, touch other addresses in another iteration of `loop`: what an
/// iteration advances by is more than the tile's extent.
static bool movesPastItself(Operation *a, Operation *b, Operation *loop) {
  Value pointer = a->getOperand(0), other = b->getOperand(0);
  std::optional<LinearForm> form = LinearForm::of(pointer);
  std::optional<LinearForm> otherForm = LinearForm::of(other);
  if (!form || !otherForm || pointer.getType() != other.getType())
    return false;
  if (!isSame(*form, *otherForm))
    return false;
  int64_t advance = 0, extent = 1;
  for (const LinearForm::Term &term : form->terms) {
    std::optional<int64_t> coefficient = term.coefficient.getConstant();
    if (term.dimension.kind == Dimension::Kind::Program)
      continue;
    if (!coefficient)
      return false;
    if (term.dimension.kind == Dimension::Kind::Loop &&
        term.dimension.loop == loop)
      advance = std::abs(*coefficient);
    if (term.dimension.kind == Dimension::Kind::Axis)
      extent += std::abs(*coefficient) *
                (cast<RankedTensorType>(pointer.getType())
                     .getDimSize(term.dimension.axis) -
                 1);
  }
  return advance >= extent;
}

namespace {
/// Whether a read may see the effect of a write through a pointer into the same
/// buffer.
enum class Sees { Never, IfShifted, Maybe };
} // namespace

/// IfShifted: only if the two pointers start at different addresses.
static Sees maySee(Operation *read, Operation *write) {
  SmallVector<Operation *> loops = getCommonLoops(read, write);
  bool sameIteration = isAfter(read, write);
  if (loops.empty())
    return sameIteration ? Sees::Maybe : Sees::Never;
  bool apart = !sameIteration && loops.size() == 1 &&
               movesPastItself(read, write, loops.front());
  return apart ? Sees::IfShifted : Sees::Maybe;
}

MemoryFlow::MemoryFlow(triton::FuncOp kernel) {
  SmallVector<Operation *> writing, reading;
  kernel.walk([&](Operation *op) {
    bool writes = getWrittenValue(op) != nullptr;
    if (writes)
      writing.push_back(op);
    if (isa<triton::LoadOp>(op) || (writes && op->getNumResults()))
      reading.push_back(op);
  });
  for (Operation *write : writing)
    for (Operation *read : reading) {
      Sees sees = maySee(read, write);
      if (sees == Sees::Never)
        continue;
      Value target = write->getOperand(0), source = read->getOperand(0);
      for (BlockArgument written : getBaseArguments(target))
        for (BlockArgument seen : getBaseArguments(source))
          if (written != seen)
            addHazard(written.getArgNumber(), seen.getArgNumber(),
                      sees == Sees::Maybe);
      if (!mayAlias(target, source))
        continue;
      if (sees == Sees::IfShifted && getBaseArgument(target) &&
          getBaseArgument(source))
        continue;
      this->writes[read].push_back(write);
      this->reads[write].push_back(read);
    }
}

void MemoryFlow::addHazard(unsigned written, unsigned read, bool always) {
  for (Hazard &hazard : hazards)
    if (hazard.written == written && hazard.read == read) {
      hazard.always |= always;
      return;
    }
  hazards.push_back({written, read, always});
}

llvm::ArrayRef<Operation *>
MemoryFlow::getWritesSeenBy(Operation *read) const {
  auto it = writes.find(read);
  return it == writes.end() ? llvm::ArrayRef<Operation *>() : it->second;
}

bool MemoryFlow::isRepeatable(Operation *op) const {
  if (isa<triton::LoadOp>(op))
    return getWritesSeenBy(op).empty();
  return op->getNumRegions() || isMemoryEffectFree(op);
}

llvm::ArrayRef<Operation *> MemoryFlow::getReadsOf(Operation *write) const {
  auto it = reads.find(write);
  return it == reads.end() ? llvm::ArrayRef<Operation *>() : it->second;
}
