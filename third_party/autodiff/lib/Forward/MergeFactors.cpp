//===- MergeFactors.cpp - Products of tangents with fewer factors ---------===//
//
// The tangent of 2ˣ is ẋ·2ˣ·ln 2. If ẋ is k·ȧ − ḃ, with a number k and a row b,
// then ln 2 is a factor of these.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Dependents.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MERGEFACTORS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MergeFactors : autodiff::impl::MergeFactorsBase<MergeFactors> {
  void runOnOperation() override;
};
} // namespace

static bool isInner(Value factor) {
  return factor.getDefiningOp<arith::MulFOp>() && factor.hasOneUse();
}

/// Whether `op` is a product of tiles, and no factor of a larger one alone.
static bool isWhole(arith::MulFOp op) {
  return isa<RankedTensorType>(op.getType()) &&
         !(op->hasOneUse() && isa<arith::MulFOp>(*op->user_begin()));
}

static void collectFactors(arith::MulFOp op, SmallVectorImpl<Value> &factors) {
  for (Value factor : op->getOperands())
    if (isInner(factor))
      collectFactors(factor.getDefiningOp<arith::MulFOp>(), factors);
    else
      factors.push_back(factor);
}

/// The number that a tile holds everywhere, if it is a constant by which most
/// numbers can be multiplied.
static std::optional<APFloat> matchNumber(Value tile) {
  Attribute constant;
  if (!matchPattern(tile, m_Constant(&constant)))
    return std::nullopt;
  std::optional<APFloat> number = getNumber(constant);
  constexpr int kBits = 16;
  bool isModerate =
      number && number->isFiniteNonZero() && std::abs(ilogb(*number)) < kBits;
  return isModerate ? number : std::nullopt;
}

/// `value` times a number, where that takes no operation on whole tiles; null
/// elsewhere.
static Value absorb(OpBuilder &b, Value value, const APFloat &number) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Location loc = op->getLoc();
  if (matchPattern(value, m_AnyZeroFloat()))
    return value;
  if (std::optional<APFloat> own = matchNumber(value))
    return constantOf(b, loc, value.getType(),
                      (*own * number).convertToDouble());
  auto with = [&](ArrayRef<std::pair<unsigned, Value>> operands) {
    Operation *copy = b.clone(*op);
    for (auto [index, operand] : operands)
      copy->setOperand(index, operand);
    return copy->getResult(0);
  };
  if (isa<triton::SplatOp, triton::BroadcastOp, triton::ExpandDimsOp>(op)) {
    Value few = op->getOperand(0);
    Value inner = absorb(b, few, number);
    if (!inner)
      inner = arith::MulFOp::create(
          b, loc, few,
          constantOf(b, loc, few.getType(), number.convertToDouble()));
    return with({{0, inner}});
  }
  if (!value.hasOneUse())
    return {};
  if (isa<arith::MulFOp>(op)) {
    for (unsigned index : {1, 0})
      if (Value factor = absorb(b, op->getOperand(index), number))
        return with({{index, factor}});
    return {};
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    Value left = absorb(b, op->getOperand(0), number);
    Value right = left ? absorb(b, op->getOperand(1), number) : Value();
    return right ? with({{0, left}, {1, right}}) : Value();
  }
  if (isa<arith::SelectOp>(op) &&
      matchPattern(op->getOperand(2), m_AnyZeroFloat())) {
    Value chosen = absorb(b, op->getOperand(1), number);
    return chosen ? with({{1, chosen}}) : Value();
  }
  return {};
}

namespace {
/// The products of a kernel that depend on tangents. Others may be compared,
/// bit for bit, with what another kernel computes.
class Products {
public:
  explicit Products(triton::FuncOp kernel) {
    SmallVector<Value> tangents;
    for (BlockArgument argument : kernel.getArguments())
      if (kernel.getArgAttr(argument.getArgNumber(), kTangentAttr))
        tangents.push_back(argument);
    moving = findDependents(tangents);
  }

  bool moves(Value value) const {
    return moving.contains(value.getDefiningOp());
  }
  /// Multiplies a number into another factor, if it can be.
  bool absorbNumber(OpBuilder &b, SmallVectorImpl<Value> &factors);

private:
  llvm::DenseSet<Operation *> moving;
};
} // namespace

bool Products::absorbNumber(OpBuilder &b, SmallVectorImpl<Value> &factors) {
  for (auto [place, factor] : llvm::enumerate(factors)) {
    std::optional<APFloat> number = matchNumber(factor);
    if (!number)
      continue;
    for (auto [other, value] : llvm::enumerate(factors)) {
      // What is repeated gets a copy.
      if (!moves(value) &&
          !isa_and_present<triton::SplatOp, triton::BroadcastOp>(
              value.getDefiningOp()))
        continue;
      Value absorbed = absorb(b, value, *number);
      if (!absorbed)
        continue;
      moving.insert(absorbed.getDefiningOp());
      factors[other] = absorbed;
      factors.erase(factors.begin() + place);
      return true;
    }
  }
  return false;
}

void MergeFactors::runOnOperation() {
  Products all(getOperation());
  SmallVector<arith::MulFOp> products;
  getOperation().walk([&](arith::MulFOp op) {
    Type element = getElementTypeOrSelf(op.getType());
    if (isWhole(op) && all.moves(op) && (element.isF32() || element.isF64()))
      products.push_back(op);
  });
  OpBuilder b(&getContext());
  for (arith::MulFOp op : products) {
    SmallVector<Value> factors;
    collectFactors(op, factors);
    size_t before = factors.size();
    while (factors.size() > 2 && all.absorbNumber(b, factors))
      ;
    if (factors.size() == before)
      continue;
    b.setInsertionPoint(op);
    Value product = factors.front();
    for (Value factor : ArrayRef(factors).drop_front())
      product = arith::MulFOp::create(b, op.getLoc(), product, factor);
    op.replaceAllUsesWith(product);
  }
}
