//===- LoadLate.cpp - Loads beside what needs them ------------------------===//
//
// An operand of a product is in shared memory from where it is loaded to the
// last product that uses it. A kernel that loads all of its tiles first needs
// room for all of them at once.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOADLATE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LoadLate : autodiff::impl::LoadLateBase<LoadLate> {
  void runOnOperation() override;
};
} // namespace

/// Whether `op` reads memory that others may write.
static bool reads(Operation *op) {
  auto load = dyn_cast<triton::LoadOp>(op);
  bool isFresh = load && load.getCache() == triton::CacheModifier::CV;
  return hasEffect<MemoryEffects::Read>(op) && !isFresh;
}

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

/// Whether `op` may write, or is of a kind that says nothing of its effects: a
/// barrier, say.
static bool isFence(Operation *op) {
  return !isMemoryEffectFree(op) && (mayWrite(op) || !reads(op));
}

namespace {
/// Finds what moves down.
class Loads {
public:
  /// Whether the tiles of `op` are loaded, or are made of loaded ones alone.
  /// Nothing else then has to be kept for it.
  bool contains(Operation *op);
  /// Moves `op` down, unless only other such operations are in between.
  void sink(Operation *op);

private:
  bool find(Operation *op);

  llvm::DenseMap<Operation *, bool> known;
};
} // namespace

bool Loads::find(Operation *op) {
  if (op->getNumRegions() != 0 || !llvm::all_of(op->getResults(), isTile))
    return false;
  if (reads(op))
    return !mayWrite(op);
  bool hasLoads = false;
  for (Value operand : llvm::make_filter_range(op->getOperands(), isTile)) {
    Operation *own = operand.getDefiningOp();
    if (own && (matchPattern(own, m_Constant()) || isa<triton::SplatOp>(own)))
      continue;
    if (!own || own->getBlock() != op->getBlock() || !contains(own))
      return false;
    hasLoads = true;
  }
  return isPure(op) && hasLoads && !isa<triton::DotOp>(op);
}

bool Loads::contains(Operation *op) {
  auto found = known.find(op);
  if (found != known.end())
    return found->second;
  bool isOne = find(op);
  known[op] = isOne;
  return isOne;
}

/// The operation that `op` moves before: the first one that uses it, or may
/// change what it reads.
static Operation *findPlace(Operation *op) {
  SmallPtrSet<Operation *, 4> users;
  for (Operation *user : op->getUsers())
    users.insert(op->getBlock()->findAncestorOpInBlock(*user));
  Operation *place = op->getNextNode();
  while (!users.contains(place) && !(reads(op) && isFence(place)) &&
         !place->hasTrait<OpTrait::IsTerminator>())
    place = place->getNextNode();
  return place;
}

void Loads::sink(Operation *op) {
  Operation *place = findPlace(op);
  for (Operation *next = op->getNextNode(); next != place;
       next = next->getNextNode())
    if (!contains(next))
      return op->moveBefore(place);
}

void LoadLate::runOnOperation() {
  Loads loads;
  getOperation().walk([&](Block *block) {
    // What is made of a load moves first.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (!op.use_empty() && loads.contains(&op))
        loads.sink(&op);
  });
}
