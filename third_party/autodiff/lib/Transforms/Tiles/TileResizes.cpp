//===- TileResizes.cpp - How values of a kernel change with tiles ---------===//
#include "TileResizes.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Combiner.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// What is needed
//===----------------------------------------------------------------------===//

/// Tiles have one length along the axes in question.
LogicalResult TileResizes::noteSize(Value value, Resize resize) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (!tile || resize >= tile.getRank())
    return failure();
  if (size == 0)
    size = tile.getDimSize(resize);
  return success(tile.getDimSize(resize) == size &&
                 (isWidening() || size % factor == 0));
}

/// A part of a zero tile is zero.
Resize TileResizes::simplify(Value value, Resize resize) {
  return resize == kSummand && matchPattern(value, m_AnyZeroFloat()) ? kSame
                                                                     : resize;
}

LogicalResult TileResizes::need(Value value, Resize resize) {
  resize = simplify(value, resize);
  if (!visited.insert({value, resize}).second)
    return success();
  if (resize >= 0 && failed(noteSize(value, resize)))
    return failure();
  if (Operation *op = value.getDefiningOp())
    needed[op].insert(resize);
  worklist.push_back({value, resize});
  return success();
}

/// What `user` makes of a value must be a function of one index.
LogicalResult TileResizes::need(Operation *user, Value value, Resize resize) {
  if (isWidening() && !isIndexArithmetic(user) && !isOneIndex(value, resize))
    return failure();
  return need(value, resize);
}

bool TileResizes::isStore(Operation *op) {
  return isa<triton::StoreOp>(op) ||
         (isa<triton::AtomicRMWOp>(op) && op->use_empty());
}

LogicalResult TileResizes::needStore(Operation *op) {
  Operation *parent = op->getParentOp();
  Resize resize = kSame;
  if (isWidening()) {
    std::optional<Resize> axis = axisOf(op->getOperand(0));
    if (!axis || parent != source || !isa<triton::StoreOp>(op))
      return failure();
    resize = *axis;
  } else if (parent != source) {
    auto axis = op->getAttrOfType<IntegerAttr>(kDividedAttr);
    if (loop->isAncestor(parent) && !(parent == loop && axis))
      return failure();
    for (Operation *each = parent; each != source; each = each->getParentOp()) {
      auto around = dyn_cast<scf::ForOp>(each);
      if (!around)
        return failure();
      for (Value bound :
           {around.getLowerBound(), around.getUpperBound(), around.getStep()})
        if (failed(need(around, bound, kSame)))
          return failure();
    }
    if (parent == loop)
      resize = static_cast<Resize>(axis.getInt());
  }
  stores[op] = resize;
  for (Value operand : op->getOperands())
    if (failed(need(op, operand, resize)))
      return failure();
  return success();
}

LogicalResult TileResizes::needCarried(scf::ForOp op, unsigned number,
                                       Resize resize) {
  auto [known, isNew] = carried.try_emplace({op, number}, resize);
  if (!isNew)
    return success(known->second == resize);
  if (op == loop && resize != kSame)
    return failure();
  for (Value bound : {op.getLowerBound(), op.getUpperBound(), op.getStep()})
    if (failed(need(op, bound, kSame)))
      return failure();
  return success(succeeded(need(op, op.getInitArgs()[number], resize)) &&
                 succeeded(need(op, op.getYieldedValues()[number],
                                op == loop ? kSummand : resize)));
}

LogicalResult TileResizes::needYielded(scf::IfOp op, unsigned number,
                                       Resize resize) {
  auto [known, isNew] = carried.try_emplace({op, number}, resize);
  if (!isNew)
    return success(known->second == resize);
  return success(
      resize != kSummand && succeeded(need(op, op.getCondition(), kSame)) &&
      succeeded(need(op, op.thenYield().getOperand(number), resize)) &&
      succeeded(need(op, op.elseYield().getOperand(number), resize)));
}

/// The resizes of operands for which the result is one of several summands.
static Resizes resizesOfSummand(Operation *op) {
  auto reduce = dyn_cast<triton::ReduceOp>(op);
  if (reduce && (op->getNumOperands() != 1 ||
                 classifyCombiner(reduce.getCombineOp()) != Combiner::Sum))
    return std::nullopt;
  if (isa<triton::DotOp, triton::ReduceOp>(op))
    return llvm::map_to_vector(op->getOpOperands(), [](OpOperand &use) {
      std::optional<unsigned> summed = triton::AxisMap::of(use)->getSummed();
      return summed ? static_cast<Resize>(*summed) : kSummand;
    });
  if ((triton::isMove(op) && !isa<triton::UnsplatOp>(op)) ||
      isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp>(op))
    return SmallVector<Resize>(op->getNumOperands(), kSummand);
  return std::nullopt;
}

/// The resizes of operands for which an axis of the result has another length.
static Resizes resizesOfAxis(Operation *op, Resize axis) {
  SmallVector<Resize> resizes(op->getNumOperands(), kSame);
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.isSplat() ? Resizes(resizes) : std::nullopt;
  if (isa<triton::MakeRangeOp>(op))
    return resizes;
  if (isa<triton::LoadOp>(op) && !mayWrite(op)) {
    for (auto [operand, resize] : llvm::zip_equal(op->getOperands(), resizes))
      if (isa<RankedTensorType>(operand.getType()))
        resize = axis;
    return resizes;
  }
  bool isKnown =
      isa<triton::AxisMapOpInterface>(op) ||
      (op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0);
  if (!isKnown || mayWrite(op))
    return std::nullopt;
  for (auto [use, resize] : llvm::zip_equal(op->getOpOperands(), resizes)) {
    auto map = triton::AxisMap::of(use);
    // An inserted axis has length one.
    if (!map || map->isMixed() ||
        map->ofResult(axis) == triton::AxisMap::Kind::New)
      return std::nullopt;
    if (std::optional<unsigned> place = map->toOperand(axis))
      resize = *place;
  }
  return resizes;
}

Resizes TileResizes::ofOperands(Operation *op, Resize resize) {
  if (resize == kSummand)
    return resizesOfSummand(op);
  if (resize >= 0)
    return resizesOfAxis(op, resize);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  if (!captured.empty() || mayWrite(op))
    return std::nullopt;
  return SmallVector<Resize>(op->getNumOperands(), kSame);
}

LogicalResult TileResizes::needOperands(OpResult result, Resize resize) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  // Summands and shorter tiles only exist in the loop.
  bool isOutside = loop && !loop->isProperAncestor(op);
  if (isOutside && resize != kSame &&
      (resize == kSummand || isa<scf::ForOp, scf::IfOp>(op)))
    return failure();
  if (isa<ProgramsOp>(op))
    return success();
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return needCarried(inner, number, resize);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return needYielded(branch, number, resize);
  if (auto product = dyn_cast<arith::MulIOp>(op);
      product && isWidening() && resize >= 0 && !noteProduct(product, resize))
    return failure();
  Resizes resizes = ofOperands(op, resize);
  if (!resizes)
    return failure();
  bool isChecked = isWidening() && comparesIndex(op, resize);
  for (auto [operand, each] : llvm::zip_equal(op->getOperands(), *resizes))
    if (failed(isChecked ? need(operand, each) : need(op, operand, each)))
      return failure();
  return success();
}

LogicalResult TileResizes::needOperands(BlockArgument argument, Resize resize) {
  auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!inner || argument.getArgNumber() == 0)
    return success(resize == kSame);
  // In the loop over parts, a carried sum may only be added to.
  bool isOutside = loop && !loop->isProperAncestor(inner);
  if (inner == loop ? resize != kSummand
                    : resize == kSummand || (isOutside && resize != kSame))
    return failure();
  return needCarried(inner, argument.getArgNumber() - 1,
                     resize == kSummand ? kSame : resize);
}

LogicalResult TileResizes::collect() {
  if (isWidening())
    collectDependent();
  WalkResult walk = source.walk([&](Operation *op) {
    bool isFine = isStore(op) ? succeeded(needStore(op))
                              : op->getNumRegions() > 0 || !mayWrite(op);
    return isFine ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  while (!worklist.empty()) {
    auto [value, resize] = worklist.pop_back_val();
    auto result = dyn_cast<OpResult>(value);
    if (failed(result ? needOperands(result, resize)
                      : needOperands(cast<BlockArgument>(value), resize)))
      return failure();
  }
  return success(size != 0);
}

//===----------------------------------------------------------------------===//
// One index
//===----------------------------------------------------------------------===//

/// Collects the values that may change with the digit.
void TileResizes::collectDependent() {
  dependent.insert(digit);
  size_t before;
  do {
    before = dependent.size();
    source.walk([&](Operation *op) {
      auto mark = [&](Value value, ArrayRef<Value> sources) {
        if (llvm::any_of(sources,
                         [&](Value v) { return dependent.contains(v); }))
          dependent.insert(value);
      };
      if (auto inner = dyn_cast<scf::ForOp>(op)) {
        for (auto [number, result] : llvm::enumerate(inner.getResults()))
          for (Value value :
               {Value(result), Value(inner.getRegionIterArg(number))})
            mark(value, {inner.getLowerBound(), inner.getUpperBound(),
                         inner.getStep(), inner.getInitArgs()[number],
                         inner.getYieldedValues()[number]});
        mark(inner.getInductionVar(), {inner.getLowerBound(), inner.getStep()});
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        for (auto [number, result] : llvm::enumerate(branch.getResults()))
          mark(result,
               {branch.getCondition(), branch.thenYield().getOperand(number),
                branch.elseYield().getOperand(number)});
      } else {
        SmallVector<Value> operands(op->getOperands());
        for (Value result : op->getResults())
          mark(result, operands);
      }
    });
  } while (dependent.size() != before);
}

std::optional<LinearForm> TileResizes::formOf(Value value) const {
  return LinearForm::of(value, [&](Value v) { return !dependent.contains(v); });
}

/// Whether the digit has the coefficient `length` times that of the position
/// along the axis.
bool TileResizes::isFormOfIndex(const std::optional<LinearForm> &form,
                                Resize axis, int64_t length) const {
  if (!form)
    return false;
  Dimension place{Dimension::Kind::Place,
                  cast<OpResult>(digit).getResultNumber()};
  Dimension position{Dimension::Kind::Axis, static_cast<unsigned>(axis)};
  std::optional<ScalarExpr> ofDigit = form->coefficientOf(place);
  std::optional<ScalarExpr> ofPosition = form->coefficientOf(position);
  if (!ofDigit || !ofPosition)
    return !ofDigit && !ofPosition;
  return *ofDigit == *ofPosition * ScalarExpr::constant(length);
}

/// Whether a value is a function of digit · size + position, and of nothing
/// else that depends on these. A value that is no linear form is, if its
/// operands are.
bool TileResizes::isOneIndex(Value value, Resize resize) {
  if (resize == kSame)
    return !dependent.contains(value);
  if (failed(noteSize(value, resize)))
    return false;
  if (isFormOfIndex(formOf(value), resize, size))
    return true;
  Operation *op = value.getDefiningOp();
  if (!isIndexArithmetic(op))
    return true;
  if (isa<triton::MakeRangeOp>(op))
    return false;
  Resizes resizes = resizesOfAxis(op, resize);
  return resizes && llvm::all_of(llvm::zip_equal(op->getOperands(), *resizes),
                                 [&](auto operand) {
                                   return isOneIndex(std::get<0>(operand),
                                                     std::get<1>(operand));
                                 });
}

/// Whether `op` compares two linear forms whose difference is such a function.
bool TileResizes::comparesIndex(Operation *op, Resize resize) const {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare || resize < 0 ||
      compare.getPredicate() > arith::CmpIPredicate::sge)
    return false;
  std::optional<LinearForm> lhs = formOf(compare.getLhs());
  std::optional<LinearForm> rhs = formOf(compare.getRhs());
  return lhs && rhs && isFormOfIndex(*lhs - *rhs, resize, size);
}

/// The axis along which a neighbour's addresses continue.
std::optional<Resize> TileResizes::axisOf(Value pointer) {
  auto tile = dyn_cast<RankedTensorType>(pointer.getType());
  std::optional<LinearForm> form = formOf(pointer);
  if (!tile || !form || !dependent.contains(pointer))
    return std::nullopt;
  for (Resize axis = 0; axis < tile.getRank(); ++axis)
    if (isFormOfIndex(form, axis, tile.getDimSize(axis)) &&
        form->coefficientOf(
            {Dimension::Kind::Axis, static_cast<unsigned>(axis)}))
      return axis;
  return std::nullopt;
}

/// The product of a position and a stride must not overflow in a longer tile.
bool TileResizes::noteProduct(arith::MulIOp op, Resize axis) {
  std::optional<LinearForm> form = formOf(op.getResult());
  std::optional<ScalarExpr> stride =
      form ? form->coefficientOf(
                 {Dimension::Kind::Axis, static_cast<unsigned>(axis)})
           : std::nullopt;
  unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
  if (!stride || width > 32)
    return true;
  int64_t limit = llvm::maxIntN(width) / (size * factor);
  if (std::optional<int64_t> constant = stride->getConstant())
    return std::abs(*constant) <= limit;
  ExprAttr expression = stride->get(source.getContext());
  // |stride| ≤ limit
  conditions.push_back(
      maxOf(0, subOf(limit + 1, maxOf(expression, subOf(0, expression)))));
  return true;
}

std::optional<Resize> TileResizes::ofCarried(Operation *op,
                                             unsigned number) const {
  auto known = carried.find({op, number});
  return known == carried.end() ? std::nullopt : std::optional(known->second);
}
