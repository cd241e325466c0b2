//===- Placement.cpp - Which tiles are built as a whole -------------------===//
//
// A tile that one root (Lowering.h) evaluates, once per element, is never
// stored. A tile that several roots evaluate is stored, unless computing it
// again is about as cheap as reading it. Loads are done where they are used
// only if nothing may have written in between.
//
//===----------------------------------------------------------------------===//

#include "Placement.h"
#include "Lowering.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

/// The most operations for which computing again is better than a read.
static constexpr int cheap = 12;
/// Costs saturate here.
static constexpr int expensive = 1000;
/// Longer expressions are cut into several tiles: LLVM's time grows with the
/// square of their length.
static constexpr unsigned longest = 256;

bool Placement::isRearranging(Operation *op) {
  if (tt::isMove(op))
    return asTile(op->getResult(0).getType()) != nullptr;
  return isa<tt::CatOp, tt::JoinOp, tt::SplitOp, tt::MakeRangeOp>(op);
}

bool Placement::isElementwise(Operation *op) {
  if (isa<tt::AddPtrOp, tt::BitcastOp, tt::FpToFpOp, tt::ClampFOp,
          tt::PreciseSqrtOp, tt::PreciseDivFOp, tt::ApproxDivFOp, tt::MulhiUIOp,
          tt::IntToPtrOp, tt::PtrToIntOp>(op))
    return true;
  if (auto external = dyn_cast<tt::ExternElementwiseOp>(op))
    return external.getPure() ||
           autodiff::mutation::isMade("cpu-placement:effects once per use");
  if (auto assembly = dyn_cast<tt::ElementwiseInlineAsmOp>(op))
    return assembly->getNumResults() == 1 && assembly->getNumOperands() > 0;
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0 &&
         op->getNumResults() == 1 && isMemoryEffectFree(op) &&
         isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

static bool isDeferred(Operation *op) {
  return op && (isa<arith::ConstantOp, ub::PoisonOp, tt::GatherOp>(op) ||
                Placement::isElementwise(op) || Placement::isRearranging(op));
}

Placement::Placement(triton::FuncOp func) {
  llvm::DenseMap<Value, unsigned> lengths;
  func.walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !isElementwise(op))
      return;
    Value tile = op->getResult(0);
    if (!asTile(tile.getType()) || isPointerTile(tile.getType()) ||
        isUniform(tile))
      return;
    unsigned length = 1;
    for (Value operand : op->getOperands())
      length = std::max(length, lengths.lookup(operand) + 1);
    if (length < longest)
      lengths[tile] = length;
    else
      stored[tile] = true;
  });
}

bool Placement::isUniform(Value tile) {
  auto [it, isNew] = uniform.try_emplace(tile, false);
  if (!isNew)
    return it->second;
  Operation *op = tile.getDefiningOp();
  bool result = false;
  if (!op || !asTile(tile.getType()))
    result = false;
  else if (auto constant = dyn_cast<arith::ConstantOp>(op))
    result = isa<SplatElementsAttr>(constant.getValue());
  else if (isa<tt::SplatOp>(op))
    result = true;
  else if (isElementwise(op) || tt::isMove(op))
    result = llvm::all_of(op->getOperands(),
                          [&](Value operand) { return isUniform(operand); });
  return uniform[tile] = result;
}

const Movement *Placement::getMovement(scf::ForOp loop, unsigned index) {
  auto key = std::make_pair(loop.getOperation(), index);
  auto it = movements.find(key);
  if (it == movements.end()) {
    std::optional<Movement> movement;
    BlockArgument carried = loop.getRegionIterArg(index);
    RankedTensorType type = asTile(carried.getType());
    bool moves =
        type && (isPointerTile(type) || type.getElementType().isIntOrIndex());
    Value value =
        cast<scf::YieldOp>(loop.getBody()->getTerminator()).getOperand(index);
    Movement found;
    while (moves && value != carried) {
      Operation *op = value.getDefiningOp();
      moves = op && op->getBlock() == loop.getBody();
      if (auto add = dyn_cast_or_null<tt::AddPtrOp>(op);
          moves && add && isUniform(add.getOffset())) {
        found.steps.push_back(add.getOffset());
        value = add.getPtr();
      } else if (auto sum = dyn_cast_or_null<arith::AddIOp>(op); moves && sum) {
        bool left = isUniform(sum.getLhs());
        moves = left || isUniform(sum.getRhs());
        found.steps.push_back(left ? sum.getLhs() : sum.getRhs());
        value = left ? sum.getRhs() : sum.getLhs();
      } else {
        moves = false;
      }
    }
    if (moves)
      movement = std::move(found);
    it = movements.try_emplace(key, std::move(movement)).first;
  }
  return it->second ? &*it->second : nullptr;
}

/// Whether `root` is in an inner loop of `home`, so that it runs more often.
static bool isInInnerLoop(Operation *root, Block *home) {
  for (Block *block = root->getBlock(); block && block != home;) {
    Operation *parent = block->getParentOp();
    if (isa<LoopLikeOpInterface>(parent))
      return true;
    block = parent->getBlock();
  }
  return false;
}

void Placement::addUses(Value tile, Block *home, Uses &result) {
  auto addRoot = [&](Operation *root) {
    result.roots.insert(root);
    result.repeated |= isInInnerLoop(root, home);
  };
  auto addAll = [&](Value user, bool repeats) {
    const Uses inner = getUses(user);
    for (Operation *root : inner.roots)
      addRoot(root);
    result.repeated |= repeats || inner.repeated;
  };
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      unsigned index = use.getOperandNumber() - loop.getNumControlOperands();
      if (getMovement(loop, index)) {
        addAll(loop.getRegionIterArg(index), /*repeats=*/true);
        addAll(loop.getResult(index), /*repeats=*/false);
        continue;
      }
    } else if (auto yield = dyn_cast<scf::YieldOp>(user)) {
      auto parent = dyn_cast<scf::ForOp>(yield->getParentOp());
      if (parent && getMovement(parent, use.getOperandNumber()))
        continue;
    }
    if (!isDeferred(user)) {
      addRoot(user);
      continue;
    }
    for (Value value : user->getResults()) {
      if (!isPointerTile(value.getType()) && isStored(value)) {
        addRoot(user);
        continue;
      }
      // Both operands of these are evaluated for every element.
      bool repeats = isa<tt::BroadcastOp, tt::CatOp, tt::JoinOp>(user);
      if (auto gather = dyn_cast<tt::GatherOp>(user))
        repeats |= tile == gather.getSrc();
      addAll(value, repeats);
    }
  }
}

const Placement::Uses &Placement::getUses(Value tile) {
  auto it = uses.find(tile);
  if (it != uses.end())
    return it->second;
  Uses result;
  addUses(tile, tile.getParentBlock(), result);
  return uses[tile] = std::move(result);
}

static bool isHeavy(Operation *op) {
  if (op->getDialect()->getNamespace() == "math")
    return !isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::FloorOp,
                math::CeilOp>(op);
  return isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp,
             arith::RemSIOp, arith::RemUIOp, tt::PreciseDivFOp,
             tt::ApproxDivFOp, tt::PreciseSqrtOp, tt::ExternElementwiseOp>(op);
}

int Placement::getCost(Value tile) {
  auto it = costs.find(tile);
  if (it != costs.end())
    return it->second;
  Operation *op = tile.getDefiningOp();
  int cost = 1;
  if (isUniform(tile)) {
    cost = 0;
  } else if (op && isDeferred(op)) {
    cost = isHeavy(op) ? 2 * cheap : isElementwise(op) ? 1 : 0;
    if (isa<tt::MakeRangeOp>(op))
      cost = 1;
    for (Value operand : op->getOperands())
      if (asTile(operand.getType()))
        cost = std::min(expensive, cost + getCost(operand));
  }
  return costs[tile] = cost;
}

bool Placement::canDefer(tt::LoadOp load, const Uses &uses) {
  if ((load.getIsVolatile() &&
       !autodiff::mutation::isMade("cpu-placement:volatile loads anywhere")) ||
      uses.roots.size() != 1 || uses.repeated)
    return false;
  Operation *root = *uses.roots.begin();
  if (root->getBlock() != load->getBlock() ||
      root->hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(root))
    return false;
  // Other loads in between are harmless; any other effect may be a write.
  for (Operation *op = load->getNextNode(); op != root; op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<tt::LoadOp>(op) &&
        !autodiff::mutation::isMade("cpu-placement:loads behind stores"))
      return false;
  return true;
}

bool Placement::decide(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return true;
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return !canDefer(load, getUses(tile));
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return !getMovement(loop, cast<OpResult>(tile).getResultNumber());
  if (!isDeferred(op))
    return true;
  if (isUniform(tile))
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return true;
  const Uses inner = getUses(tile);
  if (inner.roots.empty())
    return false;
  // A tile that a user reads at other indices than its own must be stored.
  if (llvm::any_of(tile.getUses(), [&](OpOperand &use) {
        auto gather = dyn_cast<tt::GatherOp>(use.getOwner());
        return gather && use.get() == gather.getSrc();
      }))
    return getCost(tile) > cheap;
  if (inner.roots.size() == 1 && !inner.repeated)
    return false;
  // If several products use the operand, each would build it again.
  auto isProduct = [](Operation *user) { return isa<tt::DotOp>(user); };
  if (llvm::count_if(tile.getUsers(), isProduct) > 1)
    return true;
  return getCost(tile) > cheap;
}

bool Placement::isStored(Value tile) {
  auto it = stored.find(tile);
  if (it != stored.end())
    return it->second;
  bool result = decide(tile);
  return stored[tile] = result;
}
