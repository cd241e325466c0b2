//===- TileAxes.cpp - Axes of tiles that are divided together -------------===//
#include "TileAxes.h"

#include "TileResizes.h"
#include "autodiff/Support/Elements.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class Relation {
public:
  explicit Relation(Block &block);
  SmallVector<RelatedAxes> getClasses();

private:
  bool isComputed(Value value) const;
  void add(Value value);
  void join(ArrayRef<std::pair<Value, Resize>> axes);
  void relate(Operation *op);

  /// The number of a tile's first axis.
  llvm::MapVector<Value, unsigned> numbers;
  unsigned size = 0;
  llvm::IntEqClasses classes;
};
} // namespace

/// Whether a value is a tile that cannot be recomputed from indices alone.
bool Relation::isComputed(Value value) const {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (!tile || matchPattern(value, m_Constant()) ||
      value.getDefiningOp<triton::SplatOp>())
    return false;
  Operation *op = value.getDefiningOp();
  return isFloat(tile) || isa_and_nonnull<triton::LoadOp>(op) ||
         (op && llvm::any_of(op->getOperands(), [&](Value operand) {
            return numbers.contains(operand);
          }));
}

void Relation::add(Value value) {
  if (numbers.contains(value) || !isComputed(value))
    return;
  numbers[value] = size;
  size += cast<RankedTensorType>(value.getType()).getRank();
  classes.grow(size);
}

void Relation::join(ArrayRef<std::pair<Value, Resize>> axes) {
  std::optional<unsigned> first;
  for (auto [value, axis] : axes) {
    auto known = numbers.find(value);
    if (axis < 0 || known == numbers.end())
      continue;
    unsigned number = known->second + axis;
    classes.join(first.value_or(number), number);
    first = number;
  }
}

void Relation::relate(Operation *op) {
  bool isStore = TileResizes::isStore(op);
  if (!isStore && op->getNumResults() == 0)
    return;
  Value made = isStore ? op->getOperand(0) : op->getResult(0);
  auto tile = dyn_cast<RankedTensorType>(made.getType());
  for (Resize resize = kSummand; resize < (tile ? tile.getRank() : 0);
       ++resize) {
    Resizes resizes = isStore
                          ? SmallVector<Resize>(op->getNumOperands(), resize)
                          : TileResizes::ofOperands(op, resize);
    if (!resizes)
      continue;
    SmallVector<std::pair<Value, Resize>> axes;
    for (Value result : op->getResults())
      axes.push_back({result, resize});
    for (auto [operand, each] : llvm::zip_equal(op->getOperands(), *resizes))
      axes.push_back({operand, each});
    join(axes);
  }
}

Relation::Relation(Block &block) {
  for (Operation &op : block.without_terminator()) {
    for (Value operand : op.getOperands())
      add(operand);
    for (Value result : op.getResults())
      add(result);
  }
  for (Operation &op : block.without_terminator())
    relate(&op);
  classes.compress();
}

SmallVector<RelatedAxes> Relation::getClasses() {
  SmallVector<RelatedAxes> all(classes.getNumClasses());
  llvm::BitVector hasTwice(classes.getNumClasses());
  for (auto [value, first] : numbers)
    for (Resize axis = 0;
         axis < cast<RankedTensorType>(value.getType()).getRank(); ++axis) {
      unsigned number = classes[first + axis];
      if (!all[number].try_emplace(value, axis).second)
        hasTwice.set(number);
    }
  SmallVector<RelatedAxes> found;
  for (auto [number, axes] : llvm::enumerate(all))
    if (!hasTwice.test(number))
      found.push_back(std::move(axes));
  return found;
}

SmallVector<RelatedAxes> mlir::autodiff::collectRelatedAxes(Block &block) {
  return Relation(block).getClasses();
}

int64_t mlir::autodiff::getLength(const RelatedAxes &axes) {
  if (axes.empty())
    return 0;
  auto [value, axis] = axes.front();
  return cast<RankedTensorType>(value.getType()).getDimSize(axis);
}
