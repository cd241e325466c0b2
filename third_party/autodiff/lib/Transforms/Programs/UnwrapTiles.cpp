//===- UnwrapTiles.cpp - Tiles that go around the end of a tensor ---------===//
//
// Kernels avoid masks for tiles beyond the end of a tensor by positions modulo
// its length, x % M, or by going back to its start, where(x < M, x, 0). Results
// of lanes x ≥ M are never stored. So these need not be loaded, and in all
// other lanes the position is x, if that is not negative. Addresses then are
// linear forms, which later passes need. If it is not known that x is not
// negative, the host checks it.
//
//===----------------------------------------------------------------------===//
#include "Tiles/TileResizes.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_UNWRAPTILES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("unwrap-tiles");

namespace {
/// A tile that is x % M or a selection of x. In lanes with x ≥ M, outside of
/// the tensor, nothing that depends on it is stored.
class Wraparound {
public:
  static ReasonOr<Wraparound> match(Operation *op);

  /// Numbers that must not be negative.
  ArrayRef<ScalarExpr> getAssumed() const { return assumed; }
  /// Replaces the tile by x.
  void unwrap();

private:
  explicit Wraparound(Operation *op) : op(op) {}

  Obstacle match(arith::RemSIOp remainder);
  Obstacle match(arith::SelectOp selection);
  bool follow(Value value, unsigned axis);
  bool follow(OpOperand &use, unsigned axis);
  bool followCarried(scf::ForOp loop, unsigned number, unsigned axis);
  bool leavesOut(Value mask, unsigned axis) const;

  Operation *op;
  /// An operation that may keep lanes outside of the tensor.
  Operation *keeping = nullptr;
  Value x;
  Value isInside;                 // null: x < M
  SmallVector<Constraint> inside; // the same
  SmallVector<ScalarExpr> assumed;
  /// The tiles that depend on it lane by lane, and along which axis.
  llvm::DenseMap<Value, unsigned> dependent;
  /// The loads whose addresses or masks are among them.
  llvm::MapVector<triton::LoadOp, unsigned> loads;
};

struct UnwrapTiles : autodiff::impl::UnwrapTilesBase<UnwrapTiles> {
  void transform() override;
};
} // namespace

/// Whether a position is the same in all iterations; otherwise a lane that is
/// outside in one may be stored in another.
static bool isFixed(const LinearForm &form) {
  return llvm::all_of(form.terms, [](const LinearForm::Term &term) {
    return term.dimension.kind == Dimension::Kind::Axis ||
           term.dimension.kind == Dimension::Kind::Program;
  });
}

/// The numbers that decide whether a fixed position is negative.
static SmallVector<ScalarExpr> findSigns(const LinearForm &form) {
  SmallVector<ScalarExpr> signs{form.constant};
  for (const LinearForm::Term &term : form.terms) {
    signs.push_back(term.coefficient);
    if (term.dimension.digit)
      signs.push_back(*term.dimension.digit);
  }
  llvm::erase_if(signs, [](const ScalarExpr &n) { return n.isNotNegative(); });
  return signs;
}

Obstacle Wraparound::match(arith::RemSIOp remainder) {
  x = remainder.getLhs();
  ReasonOr<LinearForm> form = LinearForm::of(x);
  std::optional<LinearForm> length = LinearForm::of(remainder.getRhs());
  if (!form)
    return form.why();
  if (!isFixed(*form))
    return because(op, "positions move from iteration to iteration");
  if (!length || !length->isConstant())
    return because(op,
                   "it is taken modulo a number that lanes or programs do not "
                   "have in common");
  inside = {lessThan(*form, *length)};
  assumed = findSigns(*form);
  return std::nullopt;
}

Obstacle Wraparound::match(arith::SelectOp selection) {
  x = selection.getTrueValue();
  isInside = selection.getCondition();
  Constraints constraints = constraintsOf(isInside);
  if (!isa<RankedTensorType>(isInside.getType()) || !constraints ||
      !llvm::all_of(*constraints, [](const Constraint &constraint) {
        return isFixed(constraint.form);
      }))
    return because(op, "its condition is no bound of positions");
  inside = *constraints;
  return std::nullopt;
}

/// Whether a mask excludes all lanes outside, along `axis`.
bool Wraparound::leavesOut(Value mask, unsigned axis) const {
  SmallVector<Constraint> known = knownConstraintsOf(mask);
  return llvm::all_of(inside, [&](const Constraint &needed) {
    LinearForm form = needed.form;
    form.renumberAxes([&](unsigned) { return axis; });
    return llvm::any_of(known, [&](const Constraint &constraint) {
      return constraint.form == form && constraint.bound == needed.bound;
    });
  });
}

/// Notes that `value` changes in lanes outside, and follows its uses; false if
/// something may depend on these lanes.
bool Wraparound::follow(Value value, unsigned axis) {
  auto [known, isNew] = dependent.insert({value, axis});
  if (!isNew)
    return known->second == axis;
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    bool isLeftOut = follow(use, axis);
    if (!isLeftOut && !keeping)
      keeping = use.getOwner();
    return isLeftOut;
  });
}

/// The axis of the user's results that corresponds to `axis` of its operand;
/// none if lanes along it are combined.
static std::optional<unsigned> axisOfResults(OpOperand &use, unsigned axis) {
  Operation *user = use.getOwner();
  auto tile = user->getNumResults() == 0
                  ? RankedTensorType()
                  : dyn_cast<RankedTensorType>(user->getResult(0).getType());
  for (Resize resize = 0; resize < (tile ? tile.getRank() : 0); ++resize) {
    Resizes resizes = TileResizes::ofOperands(user, resize);
    if (resizes &&
        (*resizes)[use.getOperandNumber()] == static_cast<Resize>(axis))
      return resize;
  }
  return std::nullopt;
}

bool Wraparound::followCarried(scf::ForOp loop, unsigned number,
                               unsigned axis) {
  return follow(loop.getRegionIterArg(number), axis) &&
         follow(loop.getResult(number), axis);
}

bool Wraparound::follow(OpOperand &use, unsigned axis) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  Value mask;
  if (auto store = dyn_cast<triton::StoreOp>(user))
    mask = store.getMask();
  if (auto sum = dyn_cast<triton::AtomicRMWOp>(user); sum && sum->use_empty())
    mask = sum.getMask();
  if (mask || isa<triton::StoreOp>(user))
    return use.get() != mask &&
           (leavesOut(mask, axis) || mutation::isMade("unwrap:stored lanes"));
  if (auto loop = dyn_cast<scf::ForOp>(user))
    return followCarried(loop, number - loop.getNumControlOperands(), axis);
  if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return followCarried(loop, number, axis);
    return isa<scf::IfOp>(parent) && follow(parent->getResult(number), axis);
  }
  if (auto load = dyn_cast<triton::LoadOp>(user)) {
    if (load.getIsVolatile() ||
        !getElementTypeOrSelf(load.getType()).isIntOrFloat())
      return false;
    if (use.get() != load.getOther())
      loads.insert({load, axis});
  } else if (!isMemoryEffectFree(user) || !isSpeculatable(user)) {
    return false; // may trap
  }
  std::optional<unsigned> kept = axisOfResults(use, axis);
  return kept && llvm::all_of(user->getResults(), [&](Value result) {
           return follow(result, *kept);
         });
}

ReasonOr<Wraparound> Wraparound::match(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getRank() != 1 || !type.getElementType().isInteger())
    return std::nullopt;
  Wraparound found(op);
  auto remainder = dyn_cast<arith::RemSIOp>(op);
  Obstacle why = remainder ? found.match(remainder)
                           : found.match(cast<arith::SelectOp>(op));
  if (why)
    return remainder ? *why : Reason();
  if (!found.follow(op->getResult(0), 0))
    return because(op,
                   "`{0}` at {1} may keep what lies beyond the end: no mask "
                   "there leaves it out",
                   found.keeping ? found.keeping->getName().getStringRef()
                                 : llvm::StringRef("something"),
                   found.keeping ? found.keeping : op);
  return found;
}

void Wraparound::unwrap() {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (!isInside)
    isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x,
                                     op->getOperand(1));
  for (auto [load, axis] : loads) {
    b.setInsertionPoint(load);
    auto type = cast<RankedTensorType>(load.getType());
    Value mask = repeatOver(b, loc, isInside, {axis}, type.getShape());
    if (load.getMask())
      mask = arith::AndIOp::create(b, loc, load.getMask(), mask);
    load.getMaskMutable().assign(mask);
    if (!load.getOther())
      load.getOtherMutable().assign(zeroOf(b, loc, type));
  }
  op->getResult(0).replaceAllUsesWith(x);
  op->erase();
}

void UnwrapTiles::transform() {
  ModuleOp module = getOperation();
  triton::FuncOp primal = getPrimal(module);
  SmallVector<Operation *> ops;
  primal.walk([&](Operation *op) {
    if (isa<arith::RemSIOp, arith::SelectOp>(op))
      ops.push_back(op);
  });
  SmallVector<ScalarExpr> assumed;
  for (Operation *op : ops)
    if (ReasonOr<Wraparound> found = Wraparound::match(op)) {
      kRemarks.passed(op,
                      "positions are taken as they are: masks leave out what "
                      "lies beyond the end");
      llvm::append_range(assumed, found->getAssumed());
      found->unwrap();
    } else {
      kRemarks.missed(op, found.why());
    }
  assumeNotNegative(module, assumed);
}
