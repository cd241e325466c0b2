//===- BatchedLoop.cpp - All iterations of a loop at once -----------------===//
#include "BatchedLoop.h"

#include "Independence.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// What may be batched
//===----------------------------------------------------------------------===//

ScalarExpr BatchedLoop::getIndexAt(int64_t position) const {
  return lower + step * ScalarExpr::constant(position);
}

/// Whether combining a value with itself gives the same value.
static bool isIdempotent(Operation *op) {
  return isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
             arith::MinNumFOp, arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp,
             arith::MinUIOp>(op);
}

/// Carried values are reductions with no other use, or advance.
Obstacle BatchedLoop::classifyCarried() {
  for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    Operation *step = loop.getYieldedValues()[number].getDefiningOp();
    Reason goesOn = because(loop,
                            "iterations go on with what the ones before have "
                            "left, at {0}, which is no sum or maximum",
                            step ? step : loop.getOperation());
    if (!step || step->getParentOp() != loop ||
        !llvm::is_contained(step->getOperands(), carried))
      return goesOn;
    bool isAdvance = isa<arith::AddIOp, triton::AddPtrOp>(step);
    bool isReduction =
        isa<arith::AddFOp, arith::AddIOp>(step) || isIdempotent(step);
    if (isReduction && carried.hasOneUse() && step->hasOneUse())
      reductions.insert(step);
    else if (isAdvance)
      advancing.insert(number);
    else
      return goesOn;
    combined.push_back(step->getOperand(step->getOperand(0) == carried));
  }
  return std::nullopt;
}

SmallVector<Value> BatchedLoop::getSelected() const {
  SmallVector<Value> selected;
  for (auto [result, next] : llvm::zip_equal(
           scf::ForOp(loop).getResults(), scf::ForOp(loop).getYieldedValues()))
    if (isFloat(result.getType()) && isIdempotent(next.getDefiningOp()))
      selected.push_back(result);
  return selected;
}

/// The attributes of `op` on tiles with one more axis; null if it has no axes,
/// or no such form.
static DictionaryAttr getAttrsBehindAxis(Operation *op) {
  auto known = dyn_cast<triton::AxisMapOpInterface>(op);
  return known ? known.getAttrsBehindAxis() : DictionaryAttr();
}

/// Whether `op` has no regions, or those of a reduction or scan, in which
/// nothing differs from one iteration to another.
bool BatchedLoop::hasPlainRegions(Operation *op) const {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return op->getNumRegions() == 0 ||
         (getAttrsBehindAxis(op) &&
          llvm::none_of(captured, [&](Value value) { return varies(value); }));
}

/// Whether `op` on tiles with one more axis does along it what it does.
static bool hasRule(Operation *op) {
  return isElementwise(op) || getAttrsBehindAxis(op) ||
         isa<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp,
             triton::SplatOp>(op);
}

/// Whether the mask of an access leaves out all iterations behind the last: it
/// holds only where s · number + what is not negative < n, and there are n / s
/// iterations, rounded up.
bool BatchedLoop::isLeftOut(Operation *access) const {
  Value mask = getMask(access);
  for (const Constraint &constraint :
       mask ? knownConstraintsOf(mask) : SmallVector<Constraint>()) {
    std::optional<ScalarExpr> slope;
    bool isBelow = true;
    for (const LinearForm::Term &term : constraint.form.terms)
      if (term.dimension.loop == loop &&
          term.dimension.kind == Dimension::Kind::Loop)
        slope = term.coefficient;
      else
        isBelow &= term.dimension.kind == Dimension::Kind::Axis &&
                   term.coefficient.isNotNegative();
    if (isBelow && slope && slope->getConstant().value_or(0) > 0 &&
        tripCount(ScalarExpr::constant(0), constraint.bound, *slope) == trips)
      return true;
  }
  return mutation::isMade("batch:unmasked");
}

/// Finds the values that differ from iteration to iteration, unless one cannot
/// be on an axis.
Obstacle BatchedLoop::findVarying() {
  varying.insert(loop.getInductionVar());
  for (unsigned number : advancing)
    varying.insert(loop.getRegionIterArg(number));
  auto isVarying = [&](Value value) { return varies(value); };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (reductions.contains(&op))
      continue;
    Reason cannot = because(loop,
                            "`{0}` at {1} has no form for several iterations "
                            "at a time",
                            op.getName().getStringRef(), &op);
    if (!hasPlainRegions(&op))
      return cannot;
    bool isAtomic = isa<triton::AtomicRMWOp>(op);
    if (!isAtomic && llvm::none_of(op.getOperands(), isVarying))
      continue;
    if (!hasRule(&op))
      return cannot;
    exact |= getAccessedPointer(&op) ? !isLeftOut(&op) : !isSpeculatable(&op);
    onAxisOps.insert(&op);
    varying.insert(op.result_begin(), op.result_end());
    for (Value value : op.getOperands())
      largest = std::max(largest, elementsOf(value.getType()));
    for (Value value : op.getResults())
      largest = std::max(largest, elementsOf(value.getType()));
  }
  for (unsigned number : advancing)
    if (varies(combined[number]))
      return because(loop,
                     "what it carries at {0} does not advance by the same "
                     "in each iteration",
                     loop.getYieldedValues()[number].getLoc());
  return std::nullopt;
}

ReasonOr<BatchedLoop> BatchedLoop::match(scf::ForOp loop) {
  auto lower = ScalarExpr::of(loop.getLowerBound());
  auto upper = ScalarExpr::of(loop.getUpperBound());
  auto step = ScalarExpr::of(loop.getStep());
  if (!lower || !upper || !step || loop.getUnsignedCmp() ||
      !loop.getInductionVar().getType().isInteger())
    return because(loop, "a launch does not know its bounds");
  BatchedLoop found(loop, *lower, *step, tripCount(*lower, *upper, *step));
  if (lower->dependsOnProgramId() || step->dependsOnProgramId() ||
      found.trips.dependsOnProgramId())
    return because(loop, "its bounds depend on the program");
  if (Obstacle why = found.classifyCarried())
    return *why;
  if (Obstacle why = found.findVarying())
    return *why;
  if (Obstacle why = findDependence(loop, loop))
    return *why;
  return found;
}

//===----------------------------------------------------------------------===//
// How it is batched
//===----------------------------------------------------------------------===//

Type BatchedLoop::batchedType(Type type) const {
  SmallVector<int64_t> shape{length};
  if (auto tile = dyn_cast<RankedTensorType>(type))
    llvm::append_range(shape, tile.getShape());
  return RankedTensorType::get(shape, getElementTypeOrSelf(type));
}

/// `value` with the axis.
Value BatchedLoop::batched(OpBuilder &b, Value value) {
  if (Value known = onAxis.lookup(value))
    return known;
  auto type = cast<RankedTensorType>(batchedType(value.getType()));
  auto axes = llvm::to_vector(llvm::seq<unsigned>(1, type.getRank()));
  return repeatOver(b, value.getLoc(), invariant.lookupOrDefault(value), axes,
                    type.getShape());
}

/// An operand of `op` with the axis. If a scalar operand is beside tiles, it
/// becomes as large as these.
Value BatchedLoop::batchedFor(OpBuilder &b, Operation *op, Value operand) {
  Value value = batched(b, operand);
  if (isa<RankedTensorType>(operand.getType()) || !isElementwise(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return value;
  auto type = cast<RankedTensorType>(batchedType(op->getResult(0).getType()));
  return repeatOver(b, op->getLoc(), value, {0}, type.getShape());
}

void BatchedLoop::note(Operation *copy) {
  if (auto store = dyn_cast<triton::StoreOp>(copy))
    stores.push_back(store);
}

void BatchedLoop::emit(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  if (auto splat = dyn_cast<triton::SplatOp>(op)) {
    auto type = cast<RankedTensorType>(batchedType(splat.getType()));
    onAxis[splat] =
        repeatOver(b, loc, batched(b, splat.getSrc()), {0}, type.getShape());
    return;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(batchedFor(b, op, operand));
  Operation *copy = cloneOnto(
      b, op, operands, [&](Type type) { return batchedType(type); }, invariant);
  note(copy);
  if (DictionaryAttr attrs = getAttrsBehindAxis(op))
    copy->setAttrs(attrs);
  dropHints(copy);
  for (auto [result, batched] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    onAxis[result] = batched;
}

/// Whether a reduction by `step` that starts with `start` starts with nothing.
static bool isNeutral(Operation *step, Value start) {
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(step))
    return matchPattern(start, m_NegInfFloat());
  return isa<arith::AddFOp>(step) && matchPattern(start, m_AnyZeroFloat());
}

/// The result of a reduction behind the loop. Positions behind the last
/// iteration have a value that changes nothing: the initial value, or zero.
Value BatchedLoop::emitReduction(OpBuilder &b, unsigned number) {
  Operation *step = loop.getYieldedValues()[number].getDefiningOp();
  Location loc = step->getLoc();
  Value all = batched(b, combined[number]), start = loop.getInits()[number];
  if (isReal && !mutation::isMade("batch:others are added")) {
    auto type = cast<RankedTensorType>(all.getType());
    Value mask = repeatOver(b, loc, isReal, {0}, type.getShape());
    Value none = isIdempotent(step) ? batched(b, start) : zeroOf(b, loc, type);
    all = arith::SelectOp::create(b, loc, mask, all, none);
  }
  auto reduce = triton::ReduceOp::create(b, loc, ValueRange{all}, /*axis=*/0);
  Type element = getElementTypeOrSelf(all.getType());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&reduce.getCombineOp(), {}, {element, element},
                                {loc, loc});
    Operation *combine = b.clone(*step);
    combine->setOperands(body->getArguments());
    combine->getResult(0).setType(element);
    triton::ReduceReturnOp::create(b, loc, combine->getResults());
  }
  if (isNeutral(step, start))
    return reduce->getResult(0);
  Operation *total = b.clone(*step);
  total->setOperands({start, reduce->getResult(0)});
  return total->getResult(0);
}

/// start + number · step
static Value advance(OpBuilder &b, Location loc, Value start, Value step,
                     Value number) {
  number = castInteger(b, loc, number, getElementTypeOrSelf(step.getType()));
  Value distance = arith::MulIOp::create(b, loc, number, step);
  if (isPointer(start.getType()))
    return triton::AddPtrOp::create(b, loc, start.getType(), start, distance);
  return arith::AddIOp::create(b, loc, start, distance);
}

/// A value that advances from `start` in steps of `step`, on the axis.
Value BatchedLoop::advanceOnAxis(OpBuilder &b, Value start, Value step) {
  Location loc = loop.getLoc();
  auto axis = RankedTensorType::get({length}, b.getI32Type());
  Value numbers = triton::MakeRangeOp::create(b, loc, axis, 0, length);
  Value steps = batched(b, step);
  auto type = cast<RankedTensorType>(steps.getType());
  numbers = repeatOver(b, loc, numbers, {0}, type.getShape());
  return advance(b, loc, batched(b, start), steps, numbers);
}

/// The value that has advanced to the end of the loop.
Value BatchedLoop::advanceToEnd(OpBuilder &b, unsigned number) {
  Location loc = loop.getLoc();
  Value count =
      countIterations(b, loc, loop.getLowerBound(), loop.getUpperBound(),
                      loop.getStep(), /*isUnsigned=*/false);
  Value step = invariant.lookupOrDefault(combined[number]);
  count = castInteger(b, loc, count, getElementTypeOrSelf(step.getType()));
  return advance(b, loc, loop.getInits()[number], step,
                 splatTo(b, loc, count, step.getType()));
}

SmallVector<triton::StoreOp> BatchedLoop::batch(int64_t n) {
  length = n;
  OpBuilder b(loop);
  for (Operation &op : loop.getBody()->without_terminator())
    if (!onAxisOps.contains(&op) && !reductions.contains(&op))
      note(b.clone(op, invariant));
  Value index = loop.getInductionVar();
  onAxis[index] = advanceOnAxis(b, loop.getLowerBound(), loop.getStep());
  for (unsigned number : advancing)
    onAxis[loop.getRegionIterArg(number)] =
        advanceOnAxis(b, loop.getInits()[number], combined[number]);
  if (!exact)
    isReal = arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt,
                                   batched(b, index),
                                   batched(b, loop.getUpperBound()));
  for (Operation *op : onAxisOps)
    emit(b, op);
  for (auto [number, result] : llvm::enumerate(loop.getResults()))
    if (!result.use_empty())
      result.replaceAllUsesWith(advancing.contains(number)
                                    ? advanceToEnd(b, number)
                                    : emitReduction(b, number));
  loop.erase();
  return stores;
}
