//===- Handover.cpp - What one kernel leaves for another ------------------===//
#include "Handover.h"

#include "Costs.h"
#include "MinimumCut.h"
#include "ProgramBuffers.h"
#include "Regrid.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Support/Elements.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;

/// What storing and loading a value costs: a little more than loading it from
/// elsewhere.
static double costOfSaving(Value value) {
  if (!isFloat(value.getType()))
    return FlowNetwork::kInfinite;
  // Rather a vector than the tile that is made of it.
  bool isVector = !isa_and_nonnull<triton::ExpandDimsOp, triton::ReshapeOp>(
      value.getDefiningOp());
  return (isVector ? 1.05 : 1.06) * bytesOf(value.getType());
}

/// What computing `op` costs in bytes that might be moved in the same time.
static double costOfComputing(Operation *op) {
  if (isa<LoopLikeOpInterface>(op) || mayWrite(op))
    return FlowNetwork::kInfinite / 4;
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
      cost += 0.25 * tile.getNumElements();
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) { cost += costOfComputing(inner); });
  return cost;
}

namespace {
/// The code at the outer level as a flow network from memory to what is needed.
class OuterLevel {
public:
  OuterLevel(Block &body, ArrayRef<ScalarExpr> digits)
      : body(body), digits(digits), ties(findTies(body.getParentOp())) {}

  void need(Value value);
  SmallVector<Value> cut();
  /// Whether no loop and no product is behind what is needed.
  bool isCheap() const;

private:
  struct Nodes {
    unsigned in, out;
  };
  Nodes nodesOf(Value value);
  bool isDigit(Value value) const;
  bool isLost(Operation *op) const;

  Block &body;
  ArrayRef<ScalarExpr> digits;
  llvm::DenseSet<Value> ties;
  FlowNetwork network;
  unsigned memory = network.addNode(), needs = network.addNode();
  llvm::MapVector<Value, Nodes> nodes;
  llvm::DenseSet<Value> visited;
};
} // namespace

bool OuterLevel::isDigit(Value value) const {
  std::optional<ScalarExpr> expression = ScalarExpr::of(value);
  return expression && isMadeOf(digits, *expression);
}

/// Whether nothing in the other kernels has this number: an id that is taken
/// apart in a way that cannot be undone.
bool OuterLevel::isLost(Operation *op) const {
  auto id = dyn_cast<triton::GetProgramIdOp>(op);
  return id && llvm::any_of(digits, [&](const ScalarExpr &digit) {
           return digit.mentionsAxis(id.getAxisAsInt());
         });
}

OuterLevel::Nodes OuterLevel::nodesOf(Value value) {
  if (auto it = nodes.find(value); it != nodes.end())
    return it->second;
  Nodes pair{network.addNode(), network.addNode()};
  nodes.insert({value, pair});
  network.addEdge(
      pair.in, pair.out,
      ties.contains(value) &&
              !mutation::isMade("handover:maximum without its elements")
          ? FlowNetwork::kInfinite
          : costOfSaving(value));
  Operation *op = value.getDefiningOp();
  if (!op || isDigit(value))
    return pair; // costs nothing
  network.addEdge(memory, pair.in,
                  isLost(op) ? FlowNetwork::kInfinite : costOfComputing(op));
  for (Value operand : getUsedValues(op))
    network.addEdge(nodesOf(operand).out, pair.in, FlowNetwork::kInfinite);
  return pair;
}

/// Follows `value` through the loop that computes it to the outer level.
void OuterLevel::need(Value value) {
  if (!visited.insert(value).second)
    return;
  if (value.getParentBlock() == &body) {
    network.addEdge(nodesOf(value).out, needs, FlowNetwork::kInfinite);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return; // what the loop counts with
  for (Value operand : getUsedValues(op))
    need(operand);
}

SmallVector<Value> OuterLevel::cut() {
  llvm::BitVector side = network.cut(memory, needs);
  SmallVector<Value> chosen;
  for (auto &[value, pair] : nodes)
    if (!side.test(pair.in) && side.test(pair.out) && value.getDefiningOp())
      chosen.push_back(value);
  return chosen;
}

bool OuterLevel::isCheap() const {
  return llvm::all_of(nodes, [](const auto &entry) {
    Operation *op = entry.first.getDefiningOp();
    return !op ||
           !(isa<LoopLikeOpInterface, triton::DotOp>(op) || mayWrite(op));
  });
}

void Handover::leave(ArrayRef<Value> results) {
  before = reloaded.size();
  created.clear();
  OuterLevel level(kernel.getBody().front(), digits);
  for (Value result : results)
    level.need(result);
  optional = level.isCheap();
  OpBuilder builder(kernel.getContext());
  for (Value value : level.cut()) {
    if (llvm::is_contained(llvm::make_first_range(reloaded), value))
      continue;
    unsigned index = nextBuffer(kernel->getParentOfType<ModuleOp>());
    Type type = value.getType();
    Location loc = value.getLoc();
    Attribute description = describeBuffer(
        builder, "handover" + std::to_string(index), "handover", type, 1);
    Value buffer = appendBuffer(kernel, index, type, description);
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
