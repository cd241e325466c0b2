//===- MergeGathered.cpp - Add what is gathered where all is stored -------===//
#include "Contributions/ParallelLoop.h"
#include "MaskedContributions.h"
#include "Positions.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/IndirectAddress.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MERGEGATHERED
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("merge-gathered");

namespace {
/// The contribution to every element of a program's range of the tensor.
struct Dense {
  Contribution op;
  AccessSpace space;
  LinearForm form;
  /// If it is in a loop that some programs do not run: where they do.
  Value condition;
};

/// A contribution at an index from memory, in relation to `dense`.
struct Gathered {
  Contribution op;
  IndirectAddress form;
  AccessSpace::Run run; // the index's counterpart in the dense one
  ScalarExpr shift;     // from the index to that
  /// For each axis of the contribution longer than one, that of the dense one.
  SmallVector<unsigned> axes;
  /// What computes the contribution.
  SetVector<Operation *> slice;
  /// If only one of the programs that share the run makes it, the condition
  /// under which; the others could make it as well.
  Value guard;
};

struct MergeGathered : autodiff::impl::MergeGatheredBase<MergeGathered> {
  using MergeGatheredBase::MergeGatheredBase;

  void transform() override;
  void mergeIn(triton::FuncOp kernel);
  ReasonOr<Dense> findDense(const GradientUse &use);
  ReasonOr<Gathered> examine(Contribution op, const Dense &dense);
  bool collectSlice(Value value, SetVector<Operation *> &slice);
  void merge(const Dense &dense, ArrayRef<Gathered> gathered);
  void splitRemainder(ArrayRef<AccumulateOp> remainder);

  triton::FuncOp backward;
  /// What the backward stores to.
  SmallVector<Value> written;
};
} // namespace

//===----------------------------------------------------------------------===//
// What can be merged
//===----------------------------------------------------------------------===//

/// The backward's condition for running `loop` at all, whose primal ends where
/// it starts in other programs; null if it is not found.
static Value findRunCondition(scf::ForOp loop, scf::ForOp primal) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) {
    return op->getNumRegions() == 0 && isMemoryEffectFree(op);
  };
  (void)getBackwardSlice(loop.getUpperBound(), &slice, options);
  auto isSame = [](Value derived, Value original) {
    auto expression = ScalarExpr::of(original);
    return expression && expression == ScalarExpr::of(derived);
  };
  for (Operation *op : slice)
    if (auto select = dyn_cast<arith::SelectOp>(op);
        select && isSame(select.getTrueValue(), getEnd(primal).end) &&
        isSame(select.getFalseValue(), primal.getLowerBound()))
      return select.getCondition();
  return {};
}

/// The space of what a loop loads in programs that run it, like those of which
/// all run theirs.
static ReasonOr<AccessSpace> findSpaceWhereRun(triton::LoadOp load,
                                               scf::ForOp loop) {
  auto lower = ScalarExpr::of(loop.getLowerBound());
  auto upper = ScalarExpr::of(getEnd(loop).end);
  auto step = ScalarExpr::of(loop.getStep());
  if (!lower || !upper || !step)
    return because(
        loop, "a launch does not know how often the loop at {0} runs", loop);
  ExprAttr trips = tripCount(*lower, *upper, *step).get(loop.getContext());
  AccessSpace::Renumbering numbers{loop, false, *step, trips};
  return AccessSpace::of(load, &numbers);
}

/// The one contribution that is not gathered, if its program owns its elements.
ReasonOr<Dense> MergeGathered::findDense(const GradientUse &use) {
  std::optional<Dense> dense;
  for (Contribution op : use.contributions) {
    triton::LoadOp load = op.getLoad();
    ReasonOr<LinearForm> form = LinearForm::of(load.getPtr());
    if (!form)
      continue;
    scf::ForOp primal = op.getPrimalLoop(), loop = op.getLoop();
    bool isOuter = op.isOuter() && isa<triton::FuncOp>(load->getParentOp());
    bool isInLoop = primal && loop && loop->hasAttr(kParallelAttr) &&
                    loop->getParentOp() == backward;
    ReasonOr<AccessSpace> space = op.getSpace();
    Value condition;
    if (isInLoop && getEnd(primal).condition) {
      space = findSpaceWhereRun(load, primal);
      condition = findRunCondition(loop, primal);
      if (!condition)
        return because(op, "which programs run the loop at {0} is not known",
                       loop);
    }
    if (dense)
      return because(op,
                     "it is loaded as a whole in two places, at {0} and {1}",
                     dense->op, op);
    space = exactly(space);
    if (!space)
      return space.why();
    if (!isOuter && !isInLoop) {
      if (loop)
        if (Obstacle why = findOrder(loop))
          return *why;
      return because(op,
                     "it is loaded as a whole inside of the loop or branch at "
                     "{0}",
                     op->getParentOp());
    }
    if (Obstacle why = getAnalysis<Contributions>().findSharing(*space, op))
      return *why;
    dense.emplace(Dense{op, *space, *form, condition});
  }
  if (!dense && !use.contributions.empty())
    return because(
        use.contributions.front(),
        "no load in the kernel takes it as a whole, to which what is "
        "looked up could be added");
  return dense;
}

/// Collects, in order, what computes `value`; false if that depends on what the
/// kernel writes.
bool MergeGathered::collectSlice(Value value, SetVector<Operation *> &slice) {
  return autodiff::collectSlice(value, slice, [&](Value each) {
    Operation *op = each.getDefiningOp();
    if (!op)
      return Elsewhere::Known;
    auto reads = [&](triton::LoadOp load) {
      return mayAlias(load.getPtr(), written) ? WalkResult::interrupt()
                                              : WalkResult::advance();
    };
    return mayWrite(op) || op->walk(reads).wasInterrupted()
               ? Elsewhere::Never
               : Elsewhere::Computed;
  });
}

/// For each axis of a tile longer than one, the axis along which `dense` moves
/// in the same way; none if there is none, or they are in another order.
static std::optional<SmallVector<unsigned>>
matchAxes(const LinearForm &form, ArrayRef<int64_t> shape, const Dense &dense) {
  ArrayRef<int64_t> target = shapeOf(dense.op.getLoad().getPtr().getType());
  auto along = [](const LinearForm &form, unsigned axis) {
    return form.coefficientOf({Dimension::Kind::Axis, axis});
  };
  SmallVector<unsigned> axes;
  unsigned next = 0;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    std::optional<ScalarExpr> coefficient = along(form, axis);
    if (size == 1)
      continue;
    while (next < target.size() && !(target[next] == size && coefficient &&
                                     along(dense.form, next) == coefficient))
      ++next;
    if (next == target.size())
      return std::nullopt;
    axes.push_back(next++);
  }
  return axes;
}

/// The program id whose comparison with zero, a part of `mask`, is all of it
/// that `slice` uses; null if there is none. Sets `guard` to that comparison.
static triton::GetProgramIdOp
findGuarding(Value mask, const SetVector<Operation *> &slice, Value &guard) {
  Operation *op = mask ? mask.getDefiningOp() : nullptr;
  if (isa_and_nonnull<arith::AndIOp>(op)) {
    triton::GetProgramIdOp found =
        findGuarding(op->getOperand(0), slice, guard);
    return found ? found : findGuarding(op->getOperand(1), slice, guard);
  }
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!comparison || comparison.getPredicate() != arith::CmpIPredicate::eq ||
      !matchPattern(comparison.getRhs(), m_Zero()))
    return {};
  auto program = comparison.getLhs().getDefiningOp<triton::GetProgramIdOp>();
  auto usesOtherwise = [&](Operation *user) {
    auto other = dyn_cast<triton::GetProgramIdOp>(user);
    return (other && other != program &&
            other.getAxis() == program.getAxis()) ||
           (user != comparison &&
            llvm::is_contained(user->getOperands(), program.getResult()));
  };
  if (!program || llvm::any_of(slice, usesOtherwise))
    return {};
  guard = comparison;
  return program;
}

/// Whether a mask lets nothing through where `condition`, a scalar, fails.
static bool implies(Value mask, Value condition) {
  if (!mask || mask == condition)
    return mask != nullptr;
  Operation *op = mask.getDefiningOp();
  if (isa_and_present<arith::AndIOp>(op))
    return implies(op->getOperand(0), condition) ||
           implies(op->getOperand(1), condition);
  return triton::isRepetition(op) && implies(op->getOperand(0), condition);
}

ReasonOr<Gathered> MergeGathered::examine(Contribution op, const Dense &dense) {
  AccumulateOp to = dense.op;
  ReasonOr<IndirectAddress> form = IndirectAddress::of(op.getPtr());
  Gathered gathered{op, {}, {{}, 0}, ScalarExpr::constant(0), {}, {}, {}};
  ArrayRef<int64_t> shape = shapeOf(op.getPtr().getType());
  bool isStored = !dense.condition || implies(op.getMask(), dense.condition) ||
                  mutation::isMade("merge-gathered:rows that are left out");
  if (!form)
    return form.why();
  if (!form->index)
    return because(op, "its address has no index from memory");
  if (!isStored)
    return because(op,
                   "programs that do not run the loop at {0} look it up, too",
                   to->getParentOp());
  if (!op.isOuter())
    return because(op, "it is looked up inside of the loop or branch at {0}",
                   op->getParentOp());
  if (getElementTypeOrSelf(op.getValue().getType()) !=
          getElementTypeOrSelf(to.getValue().getType()) ||
      (!shape.empty() && shapeOf(to.getPtr().getType()).empty()))
    return because(op,
                   "it is loaded as a whole, at {0}, in another type or "
                   "without a tile",
                   to);
  std::optional<SmallVector<unsigned>> axes =
      matchAxes(form->known, shape, dense);
  if (!axes)
    return because(op, "rows of its tile are not those of the tile at {0}", to);
  gathered.axes = *axes;

  // Axes of length one say nothing; the others become those of the dense one.
  SmallVector<unsigned> numbers(shape.size());
  unsigned place = 0;
  for (auto [axis, size] : llvm::enumerate(shape))
    if (size > 1)
      numbers[axis] = gathered.axes[place++];
  auto renumber = [&](unsigned axis) { return numbers[axis]; };
  auto dropUnits = [&](LinearForm &linear) {
    llvm::erase_if(linear.terms, [&](const LinearForm::Term &term) {
      return term.dimension.kind == Dimension::Kind::Axis &&
             shape[term.dimension.axis] == 1;
    });
    linear.renumberAxes(renumber);
  };
  dropUnits(form->known);
  llvm::erase_if(form->axes, [&](unsigned axis) { return shape[axis] == 1; });
  SmallVector<Constraint> limits =
      constraintsOf(op.getMask()).value_or(SmallVector<Constraint>());
  for (Constraint &limit : limits)
    dropUnits(limit.form);
  ScalarExpr distance = form->known.constant - dense.space.getOffset();
  std::optional<ScalarExpr> shift = distance;
  if (distance.getConstant() != 0)
    shift = distance.dividedBy(form->coefficient);
  form->known.constant = dense.space.getOffset();
  if (!shift || shift->dependsOnProgramId())
    return because(op, "its index counts from another element than that at {0}",
                   to);
  if (!collectSlice(op.getPtr(), gathered.slice) ||
      !collectSlice(op.getValue(), gathered.slice) ||
      (op.getMask() && !collectSlice(op.getMask(), gathered.slice)))
    return because(op, "it depends on what the backward itself stores");
  ReasonOr<AccessSpace::Run> run =
      dense.space.findRun(form->known, form->coefficient, limits);
  if (!run)
    if (triton::GetProgramIdOp program =
            findGuarding(op.getMask(), gathered.slice, gathered.guard))
      run = dense.space.findRun(form->known, form->coefficient, limits,
                                program.getAxisAsInt());
  if (!run)
    return because(op, "it is loaded as a whole at {0}: {1}", to, run.why());
  gathered.form = *form;
  gathered.run = *run;
  gathered.shift = *shift;
  return gathered;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

/// The number of each lane of `dense` within its run.
static Value positionOf(OpBuilder &b, Location loc, const Dense &dense,
                        const AccessSpace::Run &run, Type type) {
  AccumulateOp op = dense.op;
  ArrayRef<int64_t> shape = shapeOf(op.getPtr().getType());
  Value position;
  for (const auto &[dimension, weight] : run.digits) {
    Value number;
    if (dimension.kind == Dimension::Kind::Axis) {
      number = triton::MakeRangeOp::create(b, loc, 0, shape[dimension.axis]);
      number = castInteger(b, loc, number, type);
      number = repeatOver(b, loc, number, {dimension.axis}, shape);
    } else if (dimension.kind == Dimension::Kind::Program) {
      number =
          triton::GetProgramIdOp::create(b, loc, dimension.digit->getAxis());
      number = castInteger(b, loc, number, type);
    } else {
      number = cast<scf::ForOp>(op->getParentOp()).getInductionVar();
    }
    // A scalar is multiplied before it is repeated.
    if (weight != 1)
      number = arith::MulIOp::create(
          b, loc, number, integerOf(b, loc, number.getType(), weight));
    if (dimension.kind != Dimension::Kind::Axis)
      number = splatTo(b, loc, number, op.getPtr().getType());
    position = position ? Value(arith::AddIOp::create(b, loc, position, number))
                        : number;
  }
  if (position)
    return position;
  // A run of one has no digits.
  return splatTo(b, loc, integerOf(b, loc, type, 0), op.getPtr().getType());
}

void MergeGathered::merge(const Dense &dense, ArrayRef<Gathered> gathered) {
  AccumulateOp to = dense.op;
  auto loop = dyn_cast<scf::ForOp>(to->getParentOp());
  Operation *anchor = loop ? loop.getOperation() : to.getOperation();
  ArrayRef<int64_t> shape = shapeOf(to.getPtr().getType());
  Type counter =
      loop ? loop.getInductionVar().getType() : OpBuilder(to).getI32Type();
  OpBuilder b(to), once(anchor);
  Value sum = to.getValue();
  for (const Gathered &entry : gathered) {
    AccumulateOp op = entry.op;
    Location loc = op.getLoc();
    for (Operation *needed : entry.slice)
      if (!needed->isBeforeInBlock(anchor))
        needed->moveBefore(anchor);

    IRMapping map;
    if (entry.guard) {
      map.map(entry.guard, integerOf(once, loc, once.getI1Type(), 1));
      for (Operation *needed : entry.slice)
        if (needed != entry.guard.getDefiningOp())
          once.clone(*needed, map);
    }

    // Indices that a lane of this program stands for, and others.
    Type like = op.getPtr().getType();
    Value index = repeatOver(once, loc, map.lookupOrDefault(entry.form.index),
                             entry.form.axes, shapeOf(op.getPtr().getType()));
    Value wide = castInteger(once, loc, index, once.getI64Type());
    if (entry.shift.getConstant() != 0) {
      Value shift = entry.shift.emit(once, loc, backward.getArguments());
      wide = arith::AddIOp::create(once, loc, wide,
                                   splatTo(once, loc, shift, like));
    }
    Value size = SizeOp::create(once, loc, maxOf(entry.run.size, 0));
    Value covered = arith::CmpIOp::create(once, loc, arith::CmpIPredicate::ult,
                                          wide, splatTo(once, loc, size, like));
    Value inside = covered, mask = op.getMask();
    if (mask)
      inside =
          arith::AndIOp::create(once, loc, map.lookupOrDefault(mask), covered);
    Value narrow = castInteger(once, loc, wide, counter);
    Value none = integerOf(once, loc, narrow.getType(), -1);
    Value wanted = repeatOver(
        once, loc, arith::SelectOp::create(once, loc, inside, narrow, none),
        entry.axes, shape);
    Value value = repeatOver(once, loc, map.lookupOrDefault(op.getValue()),
                             entry.axes, shape);

    Value position = positionOf(b, loc, dense, entry.run, counter);
    Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      position, wanted);
    Value zero = constantOf(b, loc, value.getType(), 0.0);
    Value added = arith::SelectOp::create(b, loc, hit, value, zero);
    sum = arith::AddFOp::create(b, loc, sum, added);

    // The other ones stay.
    Value one = integerOf(once, loc, covered.getType(), 1);
    Value outside = arith::XOrIOp::create(once, loc, covered, one);
    if (mask)
      outside = arith::AndIOp::create(once, loc, mask, outside);
    if (op->isBeforeInBlock(anchor))
      op->moveBefore(anchor);
    op.getMaskMutable().assign(outside);
    op.setRemainder(true);
  }
  to.getValueMutable().assign(sum);
}

/// Moves contributions to a kernel that runs afterwards.
void MergeGathered::splitRemainder(ArrayRef<AccumulateOp> remainder) {
  SetVector<Operation *> slice;
  for (AccumulateOp op : remainder)
    for (Value operand : op->getOperands())
      collectSlice(operand, slice);
  triton::FuncOp kernel =
      createBeside(backward, backward.getSymName() + "_remainder");
  OpBuilder b = OpBuilder::atBlockEnd(&kernel.getBody().front());
  IRMapping map;
  map.map(backward.getArguments(), kernel.getArguments());
  for (Operation *op : slice)
    b.clone(*op, map);
  for (AccumulateOp op : remainder) {
    b.clone(*op, map);
    op.erase();
  }
  triton::ReturnOp::create(b, backward.getLoc(), ValueRange());
}

void MergeGathered::transform() {
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    mergeIn(each);
}

void MergeGathered::mergeIn(triton::FuncOp kernel) {
  backward = kernel;
  written = getWrittenPointers(backward);
  SmallVector<AccumulateOp> remainder;
  for (auto &[argument, use] : getAnalysis<Contributions>().ownedBy(backward)) {
    if (!use.upstreams.empty() || llvm::is_contained(atomic, argument))
      continue;
    ReasonOr<Dense> dense = findDense(use);
    if (dense && deterministic)
      dense =
          because(backward, "where an index is that of no lane, it would be "
                            "added atomically, and a deterministic backward "
                            "was asked for");
    if (!dense && wantsReasons(&getContext()))
      for (Contribution op : use.contributions)
        if (!op.getForm())
          kRemarks.missed(op, dense.why());
    std::vector<Gathered> gathered;
    for (Contribution op : use.contributions) {
      if (!dense || op == dense->op)
        continue;
      if (written.empty())
        takeOutOfBranches(op);
      ReasonOr<Gathered> entry = examine(op, *dense);
      if (entry)
        gathered.push_back(*entry);
      else
        kRemarks.missed(op, entry.why());
    }
    if (gathered.empty())
      continue;
    if (gathered.size() + 1 != use.contributions.size()) {
      for (const Gathered &entry : gathered)
        kRemarks.missed(entry.op, "of {0} loads of it, not all can be added so",
                        use.contributions.size());
      continue;
    }
    merge(*dense, gathered);
    for (const Gathered &entry : gathered) {
      kRemarks.passed(entry.op,
                      "lanes at {0} add it, and a kernel behind this "
                      "one where its index is none of theirs",
                      dense->op);
      remainder.push_back(entry.op);
    }
  }
  if (!remainder.empty())
    splitRemainder(remainder);
}
