//===- ResizeTiles.cpp - Longer and shorter tiles -------------------------===//
//
// Both are theorems about a number, the digit, that tells neighbours apart.
//
// Longer: where a value is a function of digit · size + position along an axis
// of its tiles, the tiles of `factor` neighbours are one tile. Integers have to
// be such sums (LinearForm), and so has what a comparison compares; whatever is
// computed from them elementwise, loaded, or multiplied then is, too.
//
// Shorter: a part of a tile along an axis depends on that part of its operands.
// What is summed over the axis is the sum over the parts, if an iteration only
// adds it to what the loop carries.
//
//===----------------------------------------------------------------------===//
#include "ResizeTiles.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;

namespace {
/// How a value of the new kernel stands for one of the old kernel: an axis that
/// has another length, or one of these.
using Form = int;
constexpr Form kSame = -1;
/// One of several summands.
constexpr Form kPart = -2;

class TileResizer {
public:
  TileResizer(triton::FuncOp source, Value digit, unsigned factor)
      : source(source), digit(digit), factor(factor),
        loop(isa<BlockArgument>(digit)
                 ? cast<scf::ForOp>(digit.getParentBlock()->getParentOp())
                 : scf::ForOp()) {}

  /// Null if that cannot be done.
  triton::FuncOp run();

  SmallVector<llvm::json::Value> conditions;

private:
  bool isWidening() const { return !loop; }

  // What is needed, and in which form.
  LogicalResult need(Value value, Form form);
  LogicalResult need(Operation *user, Value value, Form form);
  LogicalResult needStore(triton::StoreOp op);
  LogicalResult needCarried(scf::ForOp op, unsigned number, Form form);
  LogicalResult needYielded(scf::IfOp op, unsigned number, Form form);
  LogicalResult needOperands(OpResult result, Form form);
  LogicalResult needOperands(BlockArgument argument, Form form);
  LogicalResult needEverything();
  LogicalResult noteSize(Value value, Form form);

  // Whether widening is right.
  void collectDependent();
  bool isOneIndex(Value value, Form form);
  std::optional<LinearForm> formOf(Value value) const;
  bool isFormOfIndex(const std::optional<LinearForm> &form, Form axis) const;
  std::optional<Form> axisOf(Value pointer);
  bool comparesIndex(Operation *op, Form form) const;
  bool noteProduct(arith::MulIOp op, Form axis);

  // The new kernel.
  Type typeIn(Type type, Form form) const;
  void emit(Block &block, OpBuilder &b);
  void emit(Operation *op, Form form, OpBuilder &b);
  void emitPrograms(ProgramsOp op, OpBuilder &b);
  void emitStore(triton::StoreOp op, OpBuilder &b);
  void emitLoop(scf::ForOp op, OpBuilder &b);
  void emitBranch(scf::IfOp op, OpBuilder &b);
  void emitShortened(OpBuilder &b);
  void emitYield(Block &block, ArrayRef<unsigned> kept, Operation *parent,
                 OpBuilder &b);
  SmallVector<unsigned> keptResults(Operation *op) const;
  Value lookup(Value value, Form form) const;

  triton::FuncOp source, target;
  Value digit;
  unsigned factor;
  scf::ForOp loop; // whose induction variable the digit is

  llvm::DenseSet<Value> dependent;
  int64_t size = 0; // of tiles, in the old kernel
  llvm::DenseMap<std::pair<Value, Form>, Value> values;
  SmallVector<std::pair<Value, Form>> worklist;
  llvm::DenseMap<Operation *, llvm::SmallSetVector<Form, 2>> needed;
  /// The forms of results of loops and branches.
  llvm::DenseMap<std::pair<Operation *, unsigned>, Form> carried;
  llvm::DenseMap<Operation *, Form> stores;
  Value offset; // of the part within the tile
};
} // namespace

//===----------------------------------------------------------------------===//
// What is needed
//===----------------------------------------------------------------------===//

/// Operations that make sums of indices, as LinearForm sees them.
static bool isAffine(Operation *op) {
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp,
                         arith::ExtSIOp, arith::IndexCastOp, triton::AddPtrOp,
                         triton::SplatOp, triton::BroadcastOp,
                         triton::ExpandDimsOp, triton::TransOp,
                         triton::MakeRangeOp>(op);
}

/// Tiles have one length along the axes in question.
LogicalResult TileResizer::noteSize(Value value, Form form) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (!tile || form >= tile.getRank())
    return failure();
  if (size == 0)
    size = tile.getDimSize(form);
  return success(tile.getDimSize(form) == size &&
                 (isWidening() || size % factor == 0));
}

/// Zero is a part of zero.
static Form simplified(Value value, Form form) {
  return form == kPart && matchPattern(value, m_AnyZeroFloat()) ? kSame : form;
}

LogicalResult TileResizer::need(Value value, Form form) {
  form = simplified(value, form);
  if (!values.try_emplace({value, form}).second)
    return success();
  if (form >= 0 && failed(noteSize(value, form)))
    return failure();
  if (Operation *op = value.getDefiningOp())
    needed[op].insert(form);
  worklist.push_back({value, form});
  return success();
}

/// What `user` makes of a value must be a function of one index.
LogicalResult TileResizer::need(Operation *user, Value value, Form form) {
  if (isWidening() && !isAffine(user) && !isOneIndex(value, form))
    return failure();
  return need(value, form);
}

LogicalResult TileResizer::needStore(triton::StoreOp op) {
  Form form = kSame;
  if (isWidening()) {
    std::optional<Form> axis = axisOf(op.getPtr());
    if (!axis)
      return failure();
    form = *axis;
  }
  stores[op] = form;
  for (Value operand : op->getOperands())
    if (failed(need(op, operand, form)))
      return failure();
  return success();
}

LogicalResult TileResizer::needCarried(scf::ForOp op, unsigned number,
                                       Form form) {
  auto [known, isNew] = carried.try_emplace({op, number}, form);
  if (!isNew)
    return success(known->second == form);
  if (op == loop && form != kSame)
    return failure();
  for (Value bound : {op.getLowerBound(), op.getUpperBound(), op.getStep()})
    if (failed(need(op, bound, kSame)))
      return failure();
  return success(succeeded(need(op, op.getInitArgs()[number], form)) &&
                 succeeded(need(op, op.getYieldedValues()[number],
                                op == loop ? kPart : form)));
}

LogicalResult TileResizer::needYielded(scf::IfOp op, unsigned number,
                                       Form form) {
  auto [known, isNew] = carried.try_emplace({op, number}, form);
  if (!isNew)
    return success(known->second == form);
  return success(form != kPart &&
                 succeeded(need(op, op.getCondition(), kSame)) &&
                 succeeded(need(op, op.thenYield().getOperand(number), form)) &&
                 succeeded(need(op, op.elseYield().getOperand(number), form)));
}

using Forms = std::optional<SmallVector<Form>>;

/// The forms of operands that make a part of the result.
static Forms formsOfPart(Operation *op) {
  if (auto dot = dyn_cast<triton::DotOp>(op)) {
    Form rank = cast<RankedTensorType>(dot.getType()).getRank();
    return SmallVector<Form>{rank - 1, rank - 2, kPart};
  }
  if (auto reduce = dyn_cast<triton::ReduceOp>(op)) {
    Operation *combine = &reduce.getCombineOp().front().front();
    if (op->getNumOperands() == 1 && isa<arith::AddFOp>(combine) &&
        isa<triton::ReduceReturnOp>(combine->getNextNode()))
      return SmallVector<Form>{static_cast<Form>(reduce.getAxis())};
    return std::nullopt;
  }
  if (isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp,
          triton::TransOp, triton::SplatOp, triton::BroadcastOp,
          triton::ExpandDimsOp, triton::ReshapeOp>(op))
    return SmallVector<Form>(op->getNumOperands(), kPart);
  return std::nullopt;
}

/// The forms of operands that make the result with another length of an axis.
static Forms formsOfAxis(Operation *op, Form axis) {
  SmallVector<Form> forms(op->getNumOperands(), kSame);
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.isSplat() ? Forms(forms) : std::nullopt;
  if (isa<triton::MakeRangeOp, triton::SplatOp>(op))
    return forms;
  if (auto expand = dyn_cast<triton::ExpandDimsOp>(op)) {
    Form inserted = expand.getAxis();
    if (axis == inserted)
      return std::nullopt;
    return SmallVector<Form>{axis - (axis > inserted)};
  }
  if (auto broadcast = dyn_cast<triton::BroadcastOp>(op)) {
    auto from = cast<RankedTensorType>(broadcast.getSrc().getType());
    if (from.getDimSize(axis) != 1)
      forms[0] = axis;
    return forms;
  }
  if (auto trans = dyn_cast<triton::TransOp>(op))
    return SmallVector<Form>{trans.getOrder()[axis]};
  if (auto reduce = dyn_cast<triton::ReduceOp>(op)) {
    Form reduced = reduce.getAxis();
    return SmallVector<Form>(forms.size(), axis + (axis >= reduced));
  }
  if (auto dot = dyn_cast<triton::DotOp>(op)) {
    Form columns = cast<RankedTensorType>(dot.getType()).getRank() - 1;
    return SmallVector<Form>{axis == columns ? kSame : axis,
                             axis == columns - 1 ? kSame : axis, axis};
  }
  bool isElementwise =
      op->hasTrait<OpTrait::Elementwise>() || isa<triton::LoadOp>(op);
  if (!isElementwise || op->getNumRegions() > 0 || mayWrite(op))
    return std::nullopt;
  for (auto [operand, form] : llvm::zip_equal(op->getOperands(), forms))
    if (isa<RankedTensorType>(operand.getType()))
      form = axis;
  return forms;
}

static Forms formsOfOperands(Operation *op, Form form) {
  if (form == kPart)
    return formsOfPart(op);
  if (form >= 0)
    return formsOfAxis(op, form);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  if (!captured.empty() || mayWrite(op))
    return std::nullopt;
  return SmallVector<Form>(op->getNumOperands(), kSame);
}

LogicalResult TileResizer::needOperands(OpResult result, Form form) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  // Parts and shorter tiles exist in the loop only.
  bool isOutside = loop && !loop->isProperAncestor(op);
  if (isOutside && form != kSame &&
      (form == kPart || isa<scf::ForOp, scf::IfOp>(op)))
    return failure();
  if (isa<ProgramsOp>(op))
    return success();
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return needCarried(inner, number, form);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return needYielded(branch, number, form);
  if (auto product = dyn_cast<arith::MulIOp>(op);
      product && isWidening() && form >= 0 && !noteProduct(product, form))
    return failure();
  Forms forms = formsOfOperands(op, form);
  if (!forms)
    return failure();
  bool isChecked = isWidening() && comparesIndex(op, form);
  for (auto [operand, each] : llvm::zip_equal(op->getOperands(), *forms))
    if (failed(isChecked ? need(operand, each) : need(op, operand, each)))
      return failure();
  return success();
}

LogicalResult TileResizer::needOperands(BlockArgument argument, Form form) {
  auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!inner || argument.getArgNumber() == 0)
    return success(form == kSame);
  // In the loop that goes over parts, a sum is only added to.
  bool isOutside = loop && !loop->isProperAncestor(inner);
  if (inner == loop ? form != kPart
                    : form == kPart || (isOutside && form != kSame))
    return failure();
  return needCarried(inner, argument.getArgNumber() - 1,
                     form == kPart ? kSame : form);
}

/// Starts from what the kernel stores at its end.
LogicalResult TileResizer::needEverything() {
  WalkResult walk = source.walk([&](Operation *op) {
    auto store = dyn_cast<triton::StoreOp>(op);
    bool isFine = store && op->getParentOp() == source
                      ? succeeded(needStore(store))
                      : op->getNumRegions() > 0 || !mayWrite(op);
    return isFine ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  while (!worklist.empty()) {
    auto [value, form] = worklist.pop_back_val();
    auto result = dyn_cast<OpResult>(value);
    if (failed(result ? needOperands(result, form)
                      : needOperands(cast<BlockArgument>(value), form)))
      return failure();
  }
  return success(size != 0);
}

//===----------------------------------------------------------------------===//
// One index
//===----------------------------------------------------------------------===//

/// What may change with the digit.
void TileResizer::collectDependent() {
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

std::optional<LinearForm> TileResizer::formOf(Value value) const {
  return LinearForm::of(value, [&](Value v) { return !dependent.contains(v); });
}

/// Whether the digit counts for `size` positions along the axis.
bool TileResizer::isFormOfIndex(const std::optional<LinearForm> &form,
                                Form axis) const {
  if (!form)
    return false;
  Dimension place{Dimension::Kind::Place,
                  cast<OpResult>(digit).getResultNumber()};
  Dimension position{Dimension::Kind::Axis, static_cast<unsigned>(axis)};
  std::optional<ScalarExpr> ofDigit = form->coefficientOf(place);
  std::optional<ScalarExpr> ofPosition = form->coefficientOf(position);
  if (!ofDigit || !ofPosition)
    return !ofDigit && !ofPosition;
  return *ofDigit == *ofPosition * ScalarExpr::constant(size);
}

/// Whether a value is a function of digit · size + position, and of nothing
/// else that these determine. What is not a sum of indices is, as its operands
/// are.
bool TileResizer::isOneIndex(Value value, Form form) {
  if (form == kSame)
    return !dependent.contains(value);
  if (failed(noteSize(value, form)))
    return false;
  if (isFormOfIndex(formOf(value), form))
    return true;
  Operation *op = value.getDefiningOp();
  if (!isAffine(op))
    return true;
  if (isa<triton::MakeRangeOp>(op))
    return false;
  Forms forms = formsOfAxis(op, form);
  return forms && llvm::all_of(llvm::zip_equal(op->getOperands(), *forms),
                               [&](auto operand) {
                                 return isOneIndex(std::get<0>(operand),
                                                   std::get<1>(operand));
                               });
}

/// Whether `op` compares two sums of indices whose difference is one.
bool TileResizer::comparesIndex(Operation *op, Form form) const {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare || form < 0 ||
      compare.getPredicate() > arith::CmpIPredicate::sge)
    return false;
  std::optional<LinearForm> lhs = formOf(compare.getLhs());
  std::optional<LinearForm> rhs = formOf(compare.getRhs());
  return lhs && rhs && isFormOfIndex(*lhs - *rhs, form);
}

/// The axis along which the addresses of a neighbour follow.
std::optional<Form> TileResizer::axisOf(Value pointer) {
  auto tile = dyn_cast<RankedTensorType>(pointer.getType());
  std::optional<LinearForm> form = formOf(pointer);
  if (!tile || !form || !dependent.contains(pointer))
    return std::nullopt;
  for (Form axis = 0; axis < tile.getRank(); ++axis) {
    size = tile.getDimSize(axis);
    if (size > 1 && isFormOfIndex(form, axis) &&
        form->coefficientOf(
            {Dimension::Kind::Axis, static_cast<unsigned>(axis)}))
      return axis;
  }
  return std::nullopt;
}

/// A position times a stride must not overflow where the tile is longer.
bool TileResizer::noteProduct(arith::MulIOp op, Form axis) {
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
  llvm::json::Value expression = stride->toJSON();
  // |stride| ≤ limit
  conditions.push_back(
      Array{"max", 0,
            Array{"sub", limit + 1,
                  Array{"max", expression, Array{"sub", 0, expression}}}});
  return true;
}

//===----------------------------------------------------------------------===//
// The new kernel
//===----------------------------------------------------------------------===//

Type TileResizer::typeIn(Type type, Form form) const {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || form < 0)
    return type;
  SmallVector<int64_t> shape(tile.getShape());
  shape[form] = isWidening() ? size * factor : size / factor;
  return tile.clone(shape);
}

Value TileResizer::lookup(Value value, Form form) const {
  return values.lookup({value, simplified(value, form)});
}

void TileResizer::emit(Operation *op, Form form, OpBuilder &b) {
  Location loc = op->getLoc();
  auto type = [&](unsigned number) {
    return typeIn(op->getResult(number).getType(), form);
  };
  auto put = [&](unsigned number, Value value) {
    values[{op->getResult(number), form}] = value;
  };
  DenseElementsAttr elements;
  if (form >= 0 && matchPattern(op, m_Constant(&elements)))
    return put(0, arith::ConstantOp::create(
                      b, loc, elements.resizeSplat(cast<ShapedType>(type(0)))));
  if (auto range = dyn_cast<triton::MakeRangeOp>(op); range && form >= 0) {
    auto tile = cast<RankedTensorType>(type(0));
    Value positions = triton::MakeRangeOp::create(
        b, loc, tile, range.getStart(),
        range.getStart() + static_cast<uint32_t>(tile.getDimSize(0)));
    if (offset) {
      Value first = triton::SplatOp::create(b, loc, tile, offset);
      positions = arith::AddIOp::create(b, loc, positions, first);
    }
    return put(0, positions);
  }
  Forms forms = formsOfOperands(op, form);
  Operation *copy = b.clone(*op);
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    copy->setOperand(number, lookup(operand, (*forms)[number]));
  for (auto [number, result] : llvm::enumerate(copy->getResults())) {
    result.setType(type(number));
    put(number, result);
  }
}

void TileResizer::emitPrograms(ProgramsOp op, OpBuilder &b) {
  auto copy = cast<ProgramsOp>(b.clone(*op));
  for (auto [old, place] : llvm::zip_equal(op.getPlaces(), copy.getPlaces()))
    values[{old, kSame}] = place;
  if (!isWidening() || digit.getDefiningOp() != op)
    return;
  unsigned number = cast<OpResult>(digit).getResultNumber();
  SmallVector<Attribute> extents(op.getExtents().getValue());
  llvm::json::Value extent = llvm::cantFail(
      llvm::json::parse(cast<StringAttr>(extents[number]).getValue()));
  extents[number] =
      toAttribute(b.getContext(), Array{"div", std::move(extent), factor});
  copy.setExtentsAttr(b.getArrayAttr(extents));
  Value count =
      arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(factor));
  values[{digit, kSame}] =
      arith::MulIOp::create(b, op.getLoc(), copy.getPlaces()[number], count);
}

void TileResizer::emitStore(triton::StoreOp op, OpBuilder &b) {
  Operation *copy = b.clone(*op);
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    copy->setOperand(number, lookup(operand, stores.lookup(op)));
}

SmallVector<unsigned> TileResizer::keptResults(Operation *op) const {
  SmallVector<unsigned> kept;
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (carried.contains({op, number}))
      kept.push_back(number);
  return kept;
}

void TileResizer::emitYield(Block &block, ArrayRef<unsigned> kept,
                            Operation *parent, OpBuilder &b) {
  Operation *yield = block.getTerminator();
  SmallVector<Value> results;
  for (unsigned number : kept) {
    Form form = parent == loop ? kPart : carried.lookup({parent, number});
    results.push_back(lookup(yield->getOperand(number), form));
  }
  scf::YieldOp::create(b, yield->getLoc(), results);
}

void TileResizer::emitLoop(scf::ForOp op, OpBuilder &b) {
  SmallVector<unsigned> kept = keptResults(op);
  if (kept.empty())
    return;
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  for (unsigned number : kept)
    inits.push_back(
        lookup(op.getInitArgs()[number], carried.lookup({op, number})));
  auto get = [&](Value bound) { return lookup(bound, kSame); };
  Value lower = get(op.getLowerBound()), upper = get(op.getUpperBound());
  Type type = lower.getType();
  auto constant = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, value));
  };
  if (op == loop) {
    lower = arith::MulIOp::create(b, loc, lower, constant(b, factor));
    upper = arith::MulIOp::create(b, loc, upper, constant(b, factor));
  }
  auto copy =
      scf::ForOp::create(b, loc, lower, upper, get(op.getStep()), inits);
  copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [place, number] : llvm::enumerate(kept)) {
    Form form = carried.lookup({op, number});
    values[{op.getRegionIterArg(number), op == loop ? kPart : form}] =
        copy.getRegionIterArg(place);
    values[{op.getResult(number), form}] = copy.getResult(place);
  }
  OpBuilder inside = OpBuilder::atBlockEnd(copy.getBody());
  Value index = copy.getInductionVar();
  if (op == loop) {
    Value part =
        arith::RemSIOp::create(inside, loc, index, constant(inside, factor));
    offset = castInteger(inside, loc,
                         arith::MulIOp::create(inside, loc, part,
                                               constant(inside, size / factor)),
                         b.getI32Type());
    index =
        arith::DivSIOp::create(inside, loc, index, constant(inside, factor));
    values[{digit, kSame}] = index;
    emitShortened(inside);
  }
  values[{op.getInductionVar(), kSame}] = index;
  emit(*op.getBody(), inside);
  emitYield(*op.getBody(), kept, op, inside);
}

/// What is shorter in the loop but was computed before it.
void TileResizer::emitShortened(OpBuilder &b) {
  source.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == loop)
      return WalkResult::interrupt();
    for (Form form : needed.lookup(op))
      if (form >= 0)
        emit(op, form, b);
    return WalkResult::advance();
  });
}

void TileResizer::emitBranch(scf::IfOp op, OpBuilder &b) {
  SmallVector<unsigned> kept = keptResults(op);
  if (kept.empty())
    return;
  SmallVector<Type> types;
  for (unsigned number : kept)
    types.push_back(
        typeIn(op.getResult(number).getType(), carried.lookup({op, number})));
  auto copy =
      scf::IfOp::create(b, op.getLoc(), types, lookup(op.getCondition(), kSame),
                        /*withElseRegion=*/true);
  for (auto [place, number] : llvm::enumerate(kept))
    values[{op.getResult(number), carried.lookup({op, number})}] =
        copy.getResult(place);
  OpBuilder then = copy.getThenBodyBuilder();
  emit(*op.thenBlock(), then);
  emitYield(*op.thenBlock(), kept, op, then);
  OpBuilder otherwise = copy.getElseBodyBuilder();
  emit(*op.elseBlock(), otherwise);
  emitYield(*op.elseBlock(), kept, op, otherwise);
}

void TileResizer::emit(Block &block, OpBuilder &b) {
  for (Operation &op : block) {
    if (auto inner = dyn_cast<scf::ForOp>(op)) {
      emitLoop(inner, b);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      emitBranch(branch, b);
    } else if (auto store = dyn_cast<triton::StoreOp>(op)) {
      emitStore(store, b);
    } else if (auto programs = dyn_cast<ProgramsOp>(op)) {
      emitPrograms(programs, b);
    } else if (isa<triton::ReturnOp>(op)) {
      b.clone(op);
    } else {
      for (Form form : needed.lookup(&op))
        if (form < 0 || isWidening() || loop->isAncestor(&op))
          emit(&op, form, b);
    }
  }
}

triton::FuncOp TileResizer::run() {
  collectDependent();
  if (failed(needEverything()))
    return {};
  target = cast<triton::FuncOp>(source->cloneWithoutRegions());
  OpBuilder builder(source);
  builder.setInsertionPointAfter(source);
  builder.insert(target);
  Block *body = builder.createBlock(&target.getBody());
  for (BlockArgument argument : source.getArguments())
    values[{argument, kSame}] =
        body->addArgument(argument.getType(), argument.getLoc());
  builder.setInsertionPointToEnd(body);
  emit(source.getBody().front(), builder);
  return target;
}

triton::FuncOp
mlir::autodiff::widenTiles(triton::FuncOp kernel, OpResult place,
                           unsigned factor,
                           SmallVectorImpl<llvm::json::Value> &conditions) {
  TileResizer resizer(kernel, place, factor);
  triton::FuncOp wider = resizer.run();
  if (!wider)
    return {};
  llvm::append_range(conditions, resizer.conditions);
  auto programs = cast<ProgramsOp>(place.getOwner());
  auto extent =
      cast<StringAttr>(programs.getExtents()[place.getResultNumber()]);
  // The remainder is zero.
  conditions.push_back(Array{
      "max", 0,
      Array{"sub", 1,
            Array{"rem", llvm::cantFail(llvm::json::parse(extent.getValue())),
                  factor}}});
  Array grid =
      *llvm::cantFail(
           llvm::json::parse(
               kernel->getAttrOfType<StringAttr>(kGridAttr).getValue()))
           .getAsArray();
  grid[0] = Array{"div", grid[0], factor};
  wider->setAttr(kGridAttr, toAttribute(kernel.getContext(), std::move(grid)));
  return wider;
}

triton::FuncOp mlir::autodiff::narrowTiles(triton::FuncOp kernel,
                                           scf::ForOp loop, unsigned factor) {
  if (!matchPattern(loop.getStep(), m_One()))
    return {};
  return TileResizer(kernel, loop.getInductionVar(), factor).run();
}
