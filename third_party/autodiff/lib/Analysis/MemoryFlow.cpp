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

bool mlir::autodiff::isBlindSum(triton::AtomicRMWOp op) {
  return (op.getAtomicRmwOp() == triton::RMWOp::ADD ||
          op.getAtomicRmwOp() == triton::RMWOp::FADD) &&
         op->use_empty();
}

Value mlir::autodiff::withoutBitcast(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<triton::BitcastOp, arith::BitcastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
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

bool mlir::autodiff::mayRunAfter(Operation *later, Operation *earlier) {
  return isAfter(later, earlier) || !getCommonLoops(later, earlier).empty();
}

/// Equalities under which two addresses are the same; none if they depend on
/// different dimensions (program ids, iterations, lanes).
static std::optional<MemoryFlow::Equalities> whereSame(const LinearForm &a,
                                                       const LinearForm &b) {
  if (a.terms.size() != b.terms.size())
    return std::nullopt;
  MemoryFlow::Equalities equalities;
  auto require = [&](const ScalarExpr &x, const ScalarExpr &y) {
    if (!(x == y))
      equalities.push_back({x, y});
  };
  require(a.constant, b.constant);
  for (const LinearForm::Term &term : a.terms) {
    auto match = llvm::find_if(b.terms, [&](const LinearForm::Term &other) {
      return term.dimension == other.dimension;
    });
    if (match == b.terms.end())
      return std::nullopt;
    require(term.coefficient, match->coefficient);
  }
  return equalities;
}

/// Whether each iteration of `loop` moves the address by more than the tile's
/// extent plus `distance`.
static bool movesPastItself(const LinearForm &address, Type pointer,
                            Operation *loop, int64_t distance = 0) {
  std::optional<int64_t> advance = address.getStep(loop).getConstant();
  int64_t extent = 1 + std::abs(distance);
  for (const LinearForm::Term &term : address.terms) {
    std::optional<int64_t> coefficient = term.coefficient.getConstant();
    if (term.dimension.kind == Dimension::Kind::Program)
      continue;
    if (!coefficient)
      return false;
    if (term.dimension.kind == Dimension::Kind::Axis)
      extent +=
          std::abs(*coefficient) *
          (cast<RankedTensorType>(pointer).getDimSize(term.dimension.axis) - 1);
  }
  return advance && std::abs(*advance) >= extent;
}

/// For a `read` that comes before `write` in every iteration of the one loop
/// around both: equalities under which it never sees the write, if both
/// pointers start at the same address. None if that cannot be said.
static std::optional<MemoryFlow::Equalities> whereApart(Operation *read,
                                                        Operation *write) {
  SmallVector<Operation *> loops = getCommonLoops(read, write);
  Value pointer = read->getOperand(0), other = write->getOperand(0);
  if (isAfter(read, write) || loops.size() != 1 ||
      pointer.getType() != other.getType())
    return std::nullopt;
  std::optional<LinearForm> form = LinearForm::of(pointer);
  std::optional<LinearForm> otherForm = LinearForm::of(other);
  if (!form || !otherForm ||
      !movesPastItself(*form, pointer.getType(), loops.front()))
    return std::nullopt;
  // The other access is in another part of the range that an iteration moves
  // past.
  if (auto distance = (form->constant - otherForm->constant).getConstant();
      distance &&
      movesPastItself(*form, pointer.getType(), loops.front(), *distance))
    otherForm->constant = form->constant;
  return whereSame(*form, *otherForm);
}

MemoryFlow::MemoryFlow(triton::FuncOp kernel) : synchronization(kernel) {
  SmallVector<Operation *> writing, reading;
  kernel.walk([&](Operation *op) {
    bool writes = getWrittenValue(op) != nullptr;
    if (writes)
      writing.push_back(op);
    if (isa<triton::LoadOp>(op) || (writes && op->getNumResults()))
      reading.push_back(op);
  });
  llvm::DenseSet<Operation *> observing;
  for (Operation *read : reading)
    if (synchronization.observes(read))
      observing.insert(read);
  for (Operation *write : writing)
    for (Operation *read : reading) {
      bool isObserving = observing.contains(read);
      if (!isObserving && !mayRunAfter(read, write))
        continue;
      std::optional<Equalities> apart;
      if (!isObserving)
        apart = whereApart(read, write);
      Value target = write->getOperand(0), source = read->getOperand(0);
      for (BlockArgument written : getBaseArguments(target))
        for (BlockArgument seen : getBaseArguments(source))
          if (written != seen)
            addHazard({written.getArgNumber(), seen.getArgNumber(), apart});
      if (!mayAlias(target, source))
        continue;
      // A pointer that may be based on several arguments may start anywhere in
      // them.
      if (apart && apart->empty() && getBaseArgument(target) &&
          getBaseArgument(source))
        continue;
      this->writes[read].push_back(write);
      this->reads[write].push_back(read);
    }
}

void MemoryFlow::addHazard(Hazard added) {
  for (Hazard &hazard : hazards) {
    if (hazard.written != added.written || hazard.read != added.read)
      continue;
    if (hazard.unless && added.unless)
      hazard.unless->append(*added.unless);
    else
      hazard.unless = std::nullopt;
    return;
  }
  hazards.push_back(std::move(added));
}

llvm::ArrayRef<Operation *> MemoryFlow::getWritesSeenBy(Operation *read) const {
  auto it = writes.find(read);
  return it == writes.end() ? llvm::ArrayRef<Operation *>() : it->second;
}

bool MemoryFlow::isRepeatable(Operation *op) const {
  if (synchronization.isSpin(op))
    return false;
  if (isa<triton::LoadOp>(op))
    return getWritesSeenBy(op).empty();
  return op->getNumRegions() || isMemoryEffectFree(op);
}

llvm::ArrayRef<Operation *> MemoryFlow::getReadsOf(Operation *write) const {
  auto it = reads.find(write);
  return it == reads.end() ? llvm::ArrayRef<Operation *>() : it->second;
}
