//===- OrientDots.cpp - Compute tiles the way that products want them ----===//
//
// A GPU's matrix unit reads its first operand from registers or shared memory,
// and its second operand only from shared memory, transposed or not. A loaded
// tile is in shared memory. A computed tile is in registers, in the layout of a
// product's result, and to transpose it is expensive. So a computed tile should
// be the first operand of products, untransposed: A·B = (Bᵀ·Aᵀ)ᵀ achieves the
// one, and f(A·B)ᵀ = f(Bᵀ·Aᵀ) for elementwise f the other.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ORIENTDOTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static bool isMatrix(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 2;
}

static RankedTensorType transposedType(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return tile.clone({tile.getDimSize(1), tile.getDimSize(0)});
}

static Value transpose(OpBuilder &b, Location loc, Value value) {
  return triton::TransOp::create(b, loc, value, ArrayRef<int32_t>{1, 0});
}

/// x of trans x; null for other values.
static Value untransposed(Value value) {
  auto trans = value.getDefiningOp<triton::TransOp>();
  return trans && isMatrix(trans.getType()) ? trans.getSrc() : Value();
}

/// An elementwise operation on matrices without regions.
static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && isMatrix(op->getResult(0).getType()) &&
         !op->hasTrait<OpTrait::ConstantLike>();
}

/// Whether a tile, transposed or not, is computed from a product in its block.
static bool isComputed(Value value) {
  while (Value source = untransposed(value))
    value = source;
  Operation *op = value.getDefiningOp();
  if (!op || isa<triton::DotOp>(op))
    return op != nullptr;
  return isElementwise(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           Operation *source = operand.getDefiningOp();
           return source && source->getBlock() == op->getBlock() &&
                  isMatrix(operand.getType()) && isComputed(operand);
         });
}

//===----------------------------------------------------------------------===//
// Computed operands first
//===----------------------------------------------------------------------===//

namespace {
/// A·B + C = (Bᵀ·Aᵀ + Cᵀ)ᵀ, if B is computed and A is loaded.
struct ComputedFirst : OpRewritePattern<triton::DotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::DotOp op,
                                PatternRewriter &rewriter) const override {
    if (!isMatrix(op.getType()) || isComputed(op.getA()) ||
        !isComputed(op.getB()) || !mayTranspose(op.getC(), op))
      return failure();
    Location loc = op.getLoc();
    Value a = transpose(rewriter, loc, op.getB());
    Value b = transpose(rewriter, loc, op.getA());
    Value c = transpose(rewriter, loc, op.getC());
    Value product = triton::DotOp::create(rewriter, loc, c.getType(), a, b, c,
                                          op.getInputPrecision(),
                                          op.getMaxNumImpreciseAcc());
    rewriter.replaceOp(op, transpose(rewriter, loc, product));
    return success();
  }

  /// Whether the sum can be carried transposed: a loop carries it, and only
  /// adds to it.
  static bool mayTranspose(Value sum, triton::DotOp dot) {
    auto argument = dyn_cast<BlockArgument>(sum);
    auto loop = argument
                    ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                    : nullptr;
    return loop && argument.getArgNumber() > 0 && argument.hasOneUse() &&
           loop.getYieldedValues()[argument.getArgNumber() - 1] ==
               dot.getResult();
  }
};

/// (A·B)ᵀ = Bᵀ·Aᵀ, if nothing else uses the product, and B is computed or
/// neither is.
struct TransposedProduct : OpRewritePattern<triton::TransOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::TransOp op,
                                PatternRewriter &rewriter) const override {
    Value product = untransposed(op.getResult());
    auto dot = product ? product.getDefiningOp<triton::DotOp>() : nullptr;
    if (!dot || !dot->hasOneUse() ||
        !matchPattern(dot.getC(), m_AnyZeroFloat()) ||
        (isComputed(dot.getA()) && !isComputed(dot.getB())))
      return failure();
    Location loc = dot.getLoc();
    Value a = transpose(rewriter, loc, dot.getB());
    Value b = transpose(rewriter, loc, dot.getA());
    Value zero = zeroOf(rewriter, loc, op.getType());
    rewriter.replaceOpWithNewOp<triton::DotOp>(op, op.getType(), a, b, zero,
                                               dot.getInputPrecision(),
                                               dot.getMaxNumImpreciseAcc());
    return success();
  }
};

/// A loop carries xᵀ instead of x, if its body only uses xᵀ and yields a
/// transposed tile.
struct CarryTransposed : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::ForOp loop,
                                PatternRewriter &rewriter) const override {
    Operation *yield = loop.getBody()->getTerminator();
    for (unsigned index = 0; index < loop.getNumResults(); ++index) {
      BlockArgument carried = loop.getRegionIterArg(index);
      Value next = untransposed(yield->getOperand(index));
      if (!next || carried.use_empty() ||
          !llvm::all_of(carried.getUsers(), [](Operation *user) {
            return isa<triton::TransOp>(user) &&
                   isMatrix(user->getResult(0).getType());
          }))
        continue;
      Location loc = loop.getLoc();
      Value init = transpose(rewriter, loc, loop.getInitArgs()[index]);
      rewriter.modifyOpInPlace(loop, [&] {
        loop.getInitArgsMutable()[index].assign(init);
        carried.setType(init.getType());
        loop.getResult(index).setType(cast<RankedTensorType>(init.getType()));
      });
      for (Operation *user : llvm::make_early_inc_range(carried.getUsers()))
        rewriter.replaceOp(user, carried);
      rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(index, next); });
      rewriter.setInsertionPointAfter(loop);
      Value result = transpose(rewriter, loc, loop.getResult(index));
      rewriter.replaceAllUsesExcept(loop.getResult(index), result,
                                    result.getDefiningOp());
      return success();
    }
    return failure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Transposing what lies between products
//===----------------------------------------------------------------------===//

namespace {
/// Products in one block, and the elementwise operations between them.
class Component {
public:
  void insert(Operation *op) { ops.insert(op); }
  /// How many transpositions in registers are saved if all of it is computed
  /// transposed.
  int gain() const;
  void transpose();

private:
  Value transposedValue(OpBuilder &b, Value value);

  SetVector<Operation *> ops; // in order
  llvm::DenseMap<Value, Value> transposed;
};
} // namespace

static bool isFirstOperand(OpOperand &use) {
  return isa<triton::DotOp>(use.getOwner()) && use.getOperandNumber() == 0;
}

int Component::gain() const {
  int gain = 0;
  for (Operation *op : ops) {
    for (OpOperand &use : op->getResult(0).getUses()) {
      Operation *user = use.getOwner();
      if (ops.contains(user) && !isa<triton::DotOp>(user))
        continue;
      if (isa<triton::TransOp>(user)) {
        gain += llvm::count_if(user->getResult(0).getUses(), isFirstOperand);
        continue;
      }
      // A second operand is copied to shared memory in any case.
      bool isSecond = isa<triton::DotOp>(user) && use.getOperandNumber() == 1;
      gain -= !isSecond;
    }
    for (Value operand : op->getOperands())
      gain -= !isa<triton::DotOp>(op) &&
              operand.getDefiningOp<triton::LoadOp>() != nullptr;
  }
  return gain;
}

/// The transpose of a value, computed transposed if that is no more work.
Value Component::transposedValue(OpBuilder &b, Value value) {
  if (!isMatrix(value.getType()))
    return value;
  if (Value known = transposed.lookup(value))
    return known;
  if (Value source = untransposed(value))
    return source;
  Location loc = value.getLoc();
  RankedTensorType type = transposedType(value.getType());
  Operation *op = value.getDefiningOp();
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(
        b, loc, type,
        DenseElementsAttr::get(type, constant.getSplatValue<Attribute>()));
  if (auto splat = dyn_cast_or_null<triton::SplatOp>(op))
    return triton::SplatOp::create(b, loc, type, splat.getSrc());
  if (auto broadcast = dyn_cast_or_null<triton::BroadcastOp>(op))
    return triton::BroadcastOp::create(b, loc, type,
                                       transposedValue(b, broadcast.getSrc()));
  if (auto expand = dyn_cast_or_null<triton::ExpandDimsOp>(op))
    return triton::ExpandDimsOp::create(b, loc, type, expand.getSrc(),
                                        1 - expand.getAxis());
  return ::transpose(b, loc, value);
}

void Component::transpose() {
  for (Operation *op : ops) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value result = op->getResult(0), value;
    if (auto dot = dyn_cast<triton::DotOp>(op)) {
      value = triton::DotOp::create(
          b, loc, transposedType(result.getType()),
          ::transpose(b, loc, dot.getB()), ::transpose(b, loc, dot.getA()),
          transposedValue(b, dot.getC()), dot.getInputPrecision(),
          dot.getMaxNumImpreciseAcc());
    } else {
      IRMapping operands;
      for (Value operand : op->getOperands())
        operands.map(operand, transposedValue(b, operand));
      Operation *copy = b.clone(*op, operands);
      copy->getResult(0).setType(transposedType(result.getType()));
      value = copy->getResult(0);
    }
    transposed[result] = value;
  }
  // Users that still need the untransposed value.
  for (Operation *op : llvm::reverse(ops)) {
    OpBuilder b(op);
    b.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    result.replaceAllUsesWith(::transpose(b, op->getLoc(), transposed[result]));
    op->erase();
  }
}

/// The components of a block that contain products.
static SmallVector<Component> findComponents(Block &block) {
  auto belongs = [&](Operation *op) {
    return op && op->getBlock() == &block &&
           (isElementwise(op) ||
            (isa<triton::DotOp>(op) && isMatrix(op->getResult(0).getType())));
  };
  llvm::EquivalenceClasses<Operation *> classes;
  for (Operation &op : block) {
    if (!belongs(&op))
      continue;
    classes.insert(&op);
    // A product's operands are other tiles, but its sum is part of the
    // component.
    for (OpOperand &operand : op.getOpOperands())
      if ((!isa<triton::DotOp>(op) || operand.getOperandNumber() == 2) &&
          belongs(operand.get().getDefiningOp()))
        classes.unionSets(&op, operand.get().getDefiningOp());
  }
  llvm::MapVector<Operation *, Component> components;
  for (Operation &op : block)
    if (belongs(&op))
      components[classes.getLeaderValue(&op)].insert(&op);
  return llvm::map_to_vector(components,
                             [](auto &entry) { return entry.second; });
}

namespace {
struct OrientDots : autodiff::impl::OrientDotsBase<OrientDots> {
  void runOnOperation() override {
    if (getRole(getOperation()) != "backward")
      return;
    RewritePatternSet set(&getContext());
    set.add<ComputedFirst, TransposedProduct, CarryTransposed>(&getContext());
    triton::TransOp::getCanonicalizationPatterns(set, &getContext());
    FrozenRewritePatternSet patterns(std::move(set));
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      return signalPassFailure();
    getOperation().walk([](scf::ForOp loop) {
      for (Component &component : findComponents(*loop.getBody()))
        if (component.gain() > 0)
          component.transpose();
    });
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      return signalPassFailure();
  }
};
} // namespace
