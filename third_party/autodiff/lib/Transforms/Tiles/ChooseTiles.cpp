//===- ChooseTiles.cpp - Tiles that suit the products of new kernels ------===//
#include "ResizeTiles.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CHOOSETILES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("choose-tiles");

/// The most variants of a kernel.
constexpr unsigned kVariants = 8;

namespace {
/// A kernel with longer tiles.
struct Wider {
  triton::FuncOp kernel;
  SmallVector<ExprAttr> conditions;
  /// The kernel whose loops advance in short steps.
  triton::FuncOp shorter;
  ProductCosts costs;
  SmallVector<ExprAttr> grid;
};

struct ChooseTiles : autodiff::impl::ChooseTilesBase<ChooseTiles> {
  using ChooseTilesBase::ChooseTilesBase;

  void runOnOperation() override;
  SmallVector<Wider> widenAlong(const Wider &from, unsigned place);
  void choose(triton::FuncOp kernel);
  void addVariants(triton::FuncOp kernel, MutableArrayRef<Wider> variants);
};
} // namespace

/// The length of the summed axis of the products in a loop, of those that are
/// carried sums.
static int64_t getAdvance(scf::ForOp loop) {
  int64_t longest = 0;
  for (Value value : loop.getYieldedValues())
    if (auto dot = value.getDefiningOp<triton::DotOp>())
      longest = std::max(
          longest,
          cast<RankedTensorType>(dot.getA().getType()).getShape().back());
  return longest;
}

/// A copy of `kernel` whose loops of products take shorter steps, where
/// possible.
static triton::FuncOp shorten(triton::FuncOp kernel) {
  auto shorter = cast<triton::FuncOp>(OpBuilder(kernel).clone(*kernel));
  for (bool changed = true; changed;) {
    changed = false;
    shorter.walk([&](scf::ForOp loop) {
      int64_t advance = getAdvance(loop);
      if (advance <= Target::kAdvance || advance % Target::kAdvance != 0)
        return WalkResult::advance();
      triton::FuncOp next =
          narrowTiles(shorter, loop, advance / Target::kAdvance);
      if (!next)
        return WalkResult::advance();
      shorter.erase();
      shorter = next;
      changed = true;
      return WalkResult::interrupt();
    });
  }
  return shorter;
}

static ProgramsOp getPrograms(triton::FuncOp kernel) {
  auto ops = kernel.getBody().front().getOps<ProgramsOp>();
  return ops.empty() ? ProgramsOp() : *ops.begin();
}

SmallVector<Wider> ChooseTiles::widenAlong(const Wider &from, unsigned place) {
  SmallVector<Wider> found;
  for (unsigned factor = 2; factor <= widen; factor *= 2) {
    Wider wider{{}, from.conditions, {}, from.costs, from.grid};
    triton::FuncOp kernel = from.kernel;
    wider.kernel = widenTiles(kernel, getPrograms(kernel).getPlaces()[place],
                              factor, wider.conditions);
    if (!wider.kernel) {
      kRemarks.missed(kernel,
                      "tiles of {0} neighbouring programs are not one longer "
                      "tile: something in the kernel is no function of "
                      "digit · size + position",
                      factor);
      break;
    }
    wider.shorter = shorten(wider.kernel);
    wider.costs = ProductCosts::of(wider.shorter);
    int64_t longest = std::max(wider.costs.rows, wider.costs.columns);
    if (!wider.costs.getWarps() || longest > Target::kLongestProduct) {
      kRemarks.missed(
          kernel,
          !wider.costs.getWarps()
              ? "tiles that are {0} times as long need more registers "
                "or shared memory than there is"
              : "tiles that are {0} times as long have products of {1} "
                "rows or columns, more than {2}",
          factor, longest, int64_t(Target::kLongestProduct));
      wider.kernel.erase();
      wider.shorter.erase();
      break;
    }
    wider.grid[0] = divOf(wider.grid[0], factor);
    found.push_back(std::move(wider));
  }
  return found;
}

/// Whether a launch can evaluate this: it is the same for all programs, and
/// does not depend on iterations that are counted on the device.
static bool isKnownAtLaunch(MLIRContext *context,
                            const std::optional<ScalarExpr> &bound) {
  if (!bound || llvm::any_of(llvm::seq(3), [&](unsigned axis) {
        return bound->mentionsAxis(axis);
      }))
    return false;
  return !dependsOnCounters(bound->get(context));
}

/// Adds the condition that loops of products run at all, if a launch knows, and
/// assumes it. If a loop may be skipped, its sums come from two places, for
/// which ptxas may serialize matrix instructions.
static void requireIterations(triton::FuncOp kernel,
                              SmallVectorImpl<ExprAttr> &conditions) {
  MLIRContext *context = kernel.getContext();
  kernel.walk([&](scf::ForOp loop) {
    std::optional<ScalarExpr> lower = ScalarExpr::of(loop.getLowerBound());
    std::optional<ScalarExpr> upper = ScalarExpr::of(loop.getUpperBound());
    if (!getAdvance(loop) || !isKnownAtLaunch(context, lower) ||
        !isKnownAtLaunch(context, upper) ||
        (lower->getConstant() && upper->getConstant()))
      return;
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    Value runs =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                              loop.getUpperBound(), loop.getLowerBound());
    LLVM::AssumeOp::create(b, loc, runs);
    // Bounds are 32-bit numbers in kernels.
    ExprAttr fits =
        subOf(ExprAttr::get(context, int64_t(1) << 31), upper->get(context));
    conditions.push_back(maxOf(0, minOf((*upper - *lower).get(context), fits)));
  });
}

/// Whether longer tiles pay. If a loop computes between products, two groups of
/// four warps, one of which multiplies while the other computes, are better
/// than one of eight. Longer tiles do not pay either if they leave no memory
/// for loads in flight during a product, and shorter ones do.
static bool isBetter(const ProductCosts &longer, const ProductCosts &costs) {
  return longer.getIntensity() > costs.getIntensity() &&
         longer.getStages() >= std::min(2, costs.getStages()) &&
         (costs.between == 0 || longer.getWarps() == costs.getWarps());
}

/// Keeps the best ones as variants of `kernel`: those that load least for a
/// product; of these, those whose matrix instructions read least; and then
/// those that transpose least.
void ChooseTiles::addVariants(triton::FuncOp kernel,
                              MutableArrayRef<Wider> variants) {
  std::stable_sort(variants.begin(), variants.end(),
                   [](const Wider &a, const Wider &b) {
                     auto rank = [](const ProductCosts &costs) {
                       return std::tuple(-costs.getIntensity(), costs.read,
                                         costs.transposed);
                     };
                     return rank(a.costs) < rank(b.costs);
                   });
  ProductCosts costs = ProductCosts::of(kernel);
  MLIRContext *context = &getContext();
  Operation *previous = kernel;
  unsigned number = 0;
  for (Wider &variant : variants) {
    triton::FuncOp wider = variant.shorter;
    variant.kernel.erase();
    if (number == kVariants || !isBetter(variant.costs, costs)) {
      if (number == kVariants)
        kRemarks.missed(kernel,
                        "there are {0} variants with longer tiles already",
                        unsigned(kVariants));
      else
        kRemarks.missed(
            kernel,
            "longer tiles do not pay: {0} multiply-adds for a byte, "
            "{1} stages and {2} warps, with {3}, {4} and {5} as it is",
            variant.costs.getIntensity(), variant.costs.getStages(),
            variant.costs.getWarps().value_or(0), costs.getIntensity(),
            costs.getStages(), costs.getWarps().value_or(0));
      wider.erase();
      continue;
    }
    wider->moveAfter(previous);
    nameKernel(wider, kernel.getSymName() + "_wide" + llvm::Twine(number++));
    previous = wider;
    kRemarks.passed(kernel,
                    "{0} has longer tiles, for launches whose numbers of "
                    "programs these divide: {1} multiply-adds for a byte in "
                    "place of {2}",
                    wider.getSymName(), variant.costs.getIntensity(),
                    costs.getIntensity());
    requireIterations(wider, variant.conditions);
    // There have to be enough programs for all processors.
    ExprAttr processors = ExprAttr::get(context, ExprKind::Processors, 0);
    ExprAttr when = maxOf(0, subOf(mulOf(4, variant.grid.front()),
                                   subOf(mulOf(3, processors), 1)));
    for (ExprAttr condition : variant.conditions)
      when = minOf(when, condition);
    wider->setAttr(kRoleAttr, StringAttr::get(context, "variant"));
    setGrid(wider, variant.grid);
    launchOf(wider).setInPlaceOf(kernel.getSymName());
    launchOf(wider).setWhenAttr(when);
  }
}

void ChooseTiles::choose(triton::FuncOp kernel) {
  SmallVector<Wider> candidates{
      {kernel, {}, {}, ProductCosts::of(kernel), getGrid(kernel)}};
  for (unsigned place = 0; place < getPrograms(kernel).getNumResults(); ++place)
    for (size_t from = 0, end = candidates.size(); from < end; ++from)
      for (Wider &wider : widenAlong(candidates[from], place))
        candidates.push_back(std::move(wider));
  triton::FuncOp shorter = shorten(kernel);
  kernel.erase();
  addVariants(shorter, MutableArrayRef(candidates).drop_front());
}

void ChooseTiles::runOnOperation() {
  for (triton::FuncOp kernel : getBackwards(getOperation()))
    if (getPrograms(kernel) && ProductCosts::of(kernel).work > 0)
      choose(kernel);
}
