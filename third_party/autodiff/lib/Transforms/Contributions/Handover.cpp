//===- Handover.cpp - What one kernel leaves for another ------------------===//
#include "Handover.h"

#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Analysis/ValueNetwork.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UsedValues.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The cost of storing and loading a value: a little more than loading one that
/// is in memory anyway.
static double costOfSaving(Value value) {
  if (!isFloat(value.getType()))
    return ValueNetwork::kImpossible;
  // A vector is better than a tile that is made of it.
  bool isVector = !isa_and_nonnull<triton::ExpandDimsOp, triton::ReshapeOp>(
      value.getDefiningOp());
  return (isVector ? 1.05 : 1.06) * bytesOf(value.getType());
}

/// The cost of computing `op`, in bytes that could be moved in the same time.
static double costOfComputing(Operation *op) {
  if (isa<LoopLikeOpInterface>(op) || mayWrite(op))
    return ValueNetwork::kImpossible / 4;
  if (isa<triton::LoadOp>(op))
    return bytesOf(op->getResult(0).getType());
  if (isa<triton::ReduceOp, triton::ScanOp>(op))
    return 2 * bytesOf(op->getOperand(0).getType());
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return bytesOfProduct(dot);
  double cost = 0;
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type);
        tile && isa<FloatType>(tile.getElementType()) &&
        op->hasTrait<OpTrait::Elementwise>())
      cost += Target::of(op).getBytesOfSpecial() * tile.getNumElements();
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) { cost += costOfComputing(inner); });
  return cost;
}

namespace {
/// The code in the outermost block, and the values of it that are needed.
class OuterLevel : public ValueNetwork {
public:
  OuterLevel(Block &body, ArrayRef<ScalarExpr> digits)
      : body(body), digits(digits), ties(findTies(body.getParentOp())) {}

  /// Follows `value` out of the loop that computes it, to the outermost block.
  void needOutside(Value value);
  /// Whether the needed values depend on no loop and no product.
  bool isCheap();

private:
  bool isAtHand(Value value) override;
  double costOfTaking(Value value) override;
  double costOfComputing(Value value) override;
  bool isLost(Operation *op) const;

  Block &body;
  ArrayRef<ScalarExpr> digits;
  llvm::DenseSet<Value> ties, visited;
};
} // namespace

/// Whether this is one of the digits that the programs of other kernels have.
bool OuterLevel::isAtHand(Value value) {
  std::optional<ScalarExpr> expression = ScalarExpr::of(value);
  return !value.getDefiningOp() ||
         (expression && isMadeOf(digits, *expression));
}

/// Whether other kernels cannot compute this program id from their digits.
bool OuterLevel::isLost(Operation *op) const {
  auto id = dyn_cast<triton::GetProgramIdOp>(op);
  return id && llvm::any_of(digits, [&](const ScalarExpr &digit) {
           return digit.mentionsAxis(id.getAxisAsInt());
         });
}

double OuterLevel::costOfTaking(Value value) {
  return ties.contains(value) &&
                 !mutation::isMade("handover:maximum without its elements")
             ? kImpossible
             : costOfSaving(value);
}

double OuterLevel::costOfComputing(Value value) {
  Operation *op = value.getDefiningOp();
  return isLost(op) ? kImpossible : ::costOfComputing(op);
}

bool OuterLevel::isCheap() {
  return llvm::all_of(getValues(), [&](Value value) {
    Operation *op = value.getDefiningOp();
    return isAtHand(value) ||
           !(isa<LoopLikeOpInterface, triton::DotOp>(op) || mayWrite(op));
  });
}

void OuterLevel::needOutside(Value value) {
  if (!visited.insert(value).second)
    return;
  if (value.getParentBlock() == &body)
    return need(value);
  if (Operation *op = value.getDefiningOp()) // else what the loop counts with
    for (Value operand : getUsedValues(op))
      needOutside(operand);
}

void Handover::leave(ArrayRef<Value> results) {
  before = reloaded.size();
  created.clear();
  OuterLevel level(kernel.getBody().front(), digits);
  for (Value result : results)
    level.needOutside(result);
  optional = level.isCheap();
  OpBuilder builder(kernel.getContext());
  for (Value value : level.choose().taken) {
    if (llvm::is_contained(llvm::make_first_range(reloaded), value))
      continue;
    unsigned index = nextBuffer(kernel->getParentOfType<ModuleOp>());
    Type type = value.getType();
    Location loc = value.getLoc();
    BufferAttr description = describeBuffer(
        BufferKind::Handover, "handover" + std::to_string(index), type, 1);
    BlockArgument buffer = appendBuffer(kernel, index, type, description);
    nameBuffer(buffer, BufferKind::Handover, value);
    Operation *source = value.getDefiningOp();
    Operation *next = source->getNextNode();
    builder.setInsertionPointAfter(source);
    Value slot = slotOfDigits(builder, loc, kernel, digits);
    storeToSlot(builder, loc, buffer, slot, value);
    reloaded.push_back({value, loadFromSlot(builder, loc, buffer, slot, type)});
    for (Operation *op = source->getNextNode(); op != next;
         op = op->getNextNode())
      created.push_back(op);
  }
}

double Handover::getBytes() const {
  double bytes = 0;
  for (auto [value, load] : get().drop_front(before))
    bytes += bytesOf(value.getType());
  return bytes;
}

void Handover::undo() {
  for (Operation *op : llvm::reverse(created))
    op->erase();
  created.clear();
  reloaded.truncate(before);
}
