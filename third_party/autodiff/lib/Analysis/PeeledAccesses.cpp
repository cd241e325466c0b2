//===- PeeledAccesses.cpp - Iterations in front of their loop -------------===//
//
// A recurrence often loads its first element, x[0], and then loops over x[1],
// x[2], …: together these are the iterations of a loop that begins one earlier.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/AccessSpaces.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

bool AccessSpace::addIteration(Operation *loop, const AccessSpace &other) {
  if (hasChunksOrStarts() || moves || other.moves)
    return false;
  for (auto [place, index] : llvm::enumerate(indices)) {
    auto digit = llvm::find_if(index.digits, [&](const Digit &candidate) {
      return candidate.dimension.loop == loop;
    });
    if (digit == index.digits.end() || !digit->extent)
      continue;
    // What the space would be if one iteration came before.
    AccessSpace later = *this;
    later.offset = later.offset - index.stride * digit->stride;
    if (index.bound)
      later.indices[place].bound = *index.bound + digit->stride;
    AccessSpace first = later;
    Index &without = first.indices[place];
    without.digits.erase(without.digits.begin() +
                         (digit - index.digits.begin()));
    if (without.digits.empty() && !without.bound)
      first.indices.erase(first.indices.begin() + place);
    if (!areEqual(first.offset, other.offset) || !first.hasSameShapeAs(other))
      return false;
    Digit &longer = later.indices[place].digits[digit - index.digits.begin()];
    longer.extent = addOf(*longer.extent, 1);
    if (!other.exact)
      std::tie(later.exact, later.inexact) =
          std::tie(other.exact, other.inexact);
    *this = std::move(later);
    return true;
  }
  return false;
}

ReasonOr<AccessSpace> AccessSpace::ofPeeled(ArrayRef<Operation *> accesses,
                                            AccessSpaces *known) {
  scf::ForOp loop;
  std::optional<AccessSpace> space;
  SmallVector<AccessSpace> others;
  for (Operation *access : accesses) {
    ReasonOr<AccessSpace> found = known ? known->of(access) : of(access);
    if (!found)
      return found;
    auto parent = dyn_cast<scf::ForOp>(access->getParentOp());
    bool isInner =
        parent && llvm::all_of(accesses, [&](Operation *other) {
          return other == access || other->getBlock() == parent->getBlock();
        });
    if (isInner)
      std::tie(loop, space) = std::pair(parent, *found);
    else
      others.push_back(std::move(*found));
  }
  if (!space || others.empty())
    return std::nullopt;
  while (!others.empty()) {
    auto next = llvm::find_if(others, [&](const AccessSpace &other) {
      return space->addIteration(loop, other);
    });
    if (next == others.end())
      return std::nullopt;
    others.erase(next);
  }
  return space;
}

ReasonOr<AccessSpace> AccessSpace::findFor(ArrayRef<Operation *> accesses,
                                           AccessSpaces *known) {
  ReasonOr<AccessSpace> space =
      ofAll(accesses, ScalarExpr::From::Launch, known);
  if (space)
    return space;
  if (ReasonOr<AccessSpace> peeled = ofPeeled(accesses, known))
    return peeled;
  // A space without memory is closer to what the kernel says.
  ReasonOr<AccessSpace> moving =
      ofAll(accesses, ScalarExpr::From::Memory, known);
  return moving ? moving : space;
}
