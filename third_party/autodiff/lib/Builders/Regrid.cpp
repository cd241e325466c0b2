//===- Regrid.cpp - A kernel whose programs are numbered anew -------------===//
#include "autodiff/Builders/Regrid.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/UsedValues.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::createSize(OpBuilder &b, Location loc,
                                 ExprAttr expression) {
  if (std::optional<int64_t> known = expression.getConstant())
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(*known));
  Value size = SizeOp::create(b, loc, expression);
  return arith::TruncIOp::create(b, loc, b.getI32Type(), size);
}

ExprAttr mlir::autodiff::extentOf(const ScalarExpr &digit) {
  if (digit.isProgramId())
    return digit.getGrid().getExpr();
  return addOf(ExprAttr::get(ExprKind::MostOfPrograms, digit.getExpr()), 1);
}

SmallVector<Value> mlir::autodiff::takeApart(OpBuilder &b, Location loc,
                                             Value number,
                                             ArrayRef<Value> extents) {
  SmallVector<Value> digits;
  for (Value extent : extents) {
    digits.push_back(arith::RemSIOp::create(b, loc, number, extent));
    number = arith::DivSIOp::create(b, loc, number, extent);
  }
  return digits;
}

triton::FuncOp mlir::autodiff::createBeside(triton::FuncOp kernel,
                                            const llvm::Twine &name) {
  OpBuilder builder(kernel);
  builder.setInsertionPointAfter(
      getBackwards(kernel->getParentOfType<ModuleOp>()).back());
  auto created = cast<triton::FuncOp>(kernel->cloneWithoutRegions());
  builder.insert(created);
  nameKernel(created, name);
  Block *body = builder.createBlock(&created.getBody());
  for (BlockArgument argument : kernel.getArguments())
    body->addArgument(argument.getType(), argument.getLoc());
  return created;
}

ProgramNumbers mlir::autodiff::numberPrograms(OpBuilder &b,
                                              triton::FuncOp kernel,
                                              ExprAttr count,
                                              ArrayRef<ScalarExpr> digits) {
  SmallVector<Attribute> extents{count};
  for (const ScalarExpr &digit : digits)
    extents.push_back(extentOf(digit));
  auto box = ProgramsOp::create(
      b, kernel.getLoc(), SmallVector<Type>(extents.size(), b.getI32Type()),
      b.getArrayAttr(extents));
  ProgramNumbers numbers{box.getResult(0), {}};
  for (auto [digit, value] :
       llvm::zip_equal(digits, box.getPlaces().drop_front()))
    numbers.digits.push_back({digit, value});
  ExprAttr one = ExprAttr::get(b.getContext(), 1);
  setGrid(kernel, {countPrograms(digits, count), one, one});
  return numbers;
}

ExprAttr mlir::autodiff::countPrograms(ArrayRef<ScalarExpr> digits,
                                       ExprAttr factor) {
  for (const ScalarExpr &digit : digits)
    factor = mulOf(factor, extentOf(digit));
  return factor;
}

ExprAttr mlir::autodiff::countPartials(ArrayRef<ScalarExpr> summed,
                                       ExprAttr others,
                                       ProgramRange perProcessor) {
  MLIRContext *context = others.getContext();
  ExprAttr processors = ExprAttr::get(context, ExprKind::Processors, 0);
  ExprAttr each = ExprAttr::get(context, perProcessor.most);
  ExprAttr work = countPrograms(summed, ExprAttr::get(context, 1));
  if (perProcessor.most > perProcessor.least)
    each =
        maxOf(perProcessor.least,
              minOf(each, ceilDivOf(mulOf(Target::kSummedForMost, processors),
                                    maxOf(work, 1))));
  ExprAttr wanted = ceilDivOf(mulOf(each, processors), maxOf(others, 1));
  return maxOf(minOf(work, wanted), 1);
}

void Regrid::bind(Value source, Value value, bool varies) {
  map.map(source, value);
  if (varies)
    variant.insert(source);
}

void Regrid::bindDigit(ScalarExpr digit, Value value, bool varies) {
  digits.push_back({digit, value, varies});
}

void Regrid::bindPrograms(const ProgramNumbers &programs) {
  for (const auto &[digit, value] : programs.digits)
    bindDigit(digit, value, false);
}

/// The new value of a scalar that is made of digits, of a program id that the
/// forward does not use, or of a size of the grid; null for everything else.
Value Regrid::ofDigit(Value source) {
  if (!source.getType().isSignlessInteger())
    return {};
  std::optional<ScalarExpr> expression = ScalarExpr::of(source);
  if (!expression)
    return {};
  bool varies = false;
  if (Value number = ofNumber(*expression, source.getLoc(), varies)) {
    OpBuilder &b = varies ? varying : once;
    bind(source, castInteger(b, source.getLoc(), number, source.getType()),
         varies);
    return map.lookup(source);
  }
  if (source.getDefiningOp<triton::GetNumProgramsOp>()) {
    bind(source, createSize(once, source.getLoc(), expression->getExpr()),
         false);
    return map.lookup(source);
  }
  bool isUnused = expression->isProgramId() &&
                  llvm::none_of(digits, [&](const Digit &digit) {
                    return digit.expression.mentionsAxis(expression->getAxis());
                  });
  if (!isUnused)
    return {};
  bind(source,
       arith::ConstantOp::create(once, source.getLoc(),
                                 once.getIntegerAttr(source.getType(), 0)),
       false);
  return map.lookup(source);
}

/// The new value of a number that is a digit or made of digits; null for
/// others.
Value Regrid::ofNumber(const ScalarExpr &number, Location loc, bool &varies) {
  SmallVector<ScalarExpr> known;
  for (const Digit &digit : digits) {
    if (digit.expression == number) {
      varies |= digit.varies;
      return digit.value;
    }
    known.push_back(digit.expression);
  }
  std::optional<Division> division = findDivision(number, known);
  if (!division)
    return {};
  bool moves = false;
  Value quotient = ofNumber(division->quotient, loc, moves);
  Value remainder = ofNumber(division->remainder, loc, moves);
  if (!quotient || !remainder)
    return {};
  varies |= moves;
  OpBuilder &b = moves ? varying : once;
  Value scaled = arith::MulIOp::create(
      b, loc, quotient,
      createSize(once, loc, division->divisor.get(once.getContext())));
  return arith::AddIOp::create(b, loc, scaled, remainder);
}

/// Whether what an operation does to memory is to contribute to gradients: its
/// results can be computed without that.
static bool onlyContributes(Operation *op) {
  return !op->walk([](Operation *inner) {
              bool isOther = inner->getNumRegions() == 0 && mayWrite(inner) &&
                             !isa<AccumulateOp>(inner);
              return isOther ? WalkResult::interrupt() : WalkResult::advance();
            }).wasInterrupted();
}

/// What `op` gives is not known in the new kernel.
Elsewhere Regrid::refuse(Operation *op) {
  if (isa<triton::GetProgramIdOp>(op))
    reason = because(
        op, "it depends, at {0}, on a program id in a way of its own", op);
  else if (isa<LoopLikeOpInterface>(op))
    reason = because(op,
                     "it depends on what the loop at {0} carries from "
                     "iteration to iteration",
                     op);
  else
    reason = because(op, "it depends on what `{0}` at {1} does to memory",
                     op->getName().getStringRef(), op);
  return Elsewhere::Never;
}

/// Makes known what is bound, or made up of what is.
Elsewhere Regrid::ask(Value source) {
  if (map.contains(source))
    return Elsewhere::Known;
  if (auto argument = dyn_cast<BlockArgument>(source)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (!isa<triton::FuncOp>(parent))
      return refuse(parent);
    map.map(source, target.getArgument(argument.getArgNumber()));
    return Elsewhere::Known;
  }
  if (Value other = redirected.lookup(source)) {
    Value value = get(other);
    if (!value)
      return Elsewhere::Never;
    bind(source, value, variant.contains(other));
    return Elsewhere::Known;
  }
  if (ofDigit(source))
    return Elsewhere::Known;
  Operation *op = source.getDefiningOp();
  return isa<triton::GetProgramIdOp>(op) || !onlyContributes(op)
             ? refuse(op)
             : Elsewhere::Computed;
}

Operation *Regrid::clone(Operation *op, bool varies) {
  if (varies)
    variant.insert(op->result_begin(), op->result_end());
  return (varies ? varying : once).clone(*op, map);
}

Value Regrid::get(Value source) {
  auto copy = [&](Operation *op) {
    bool varies = llvm::any_of(
        getUsedValues(op), [&](Value used) { return variant.contains(used); });
    SmallVector<Operation *> contributions;
    clone(op, varies)->walk([&](AccumulateOp inner) {
      contributions.push_back(inner);
    });
    for (Operation *inner : contributions)
      inner->erase();
  };
  bool isKnown =
      visitSlice(source, [&](Value each) { return ask(each); }, copy);
  return isKnown ? map.lookup(source) : Value();
}

LogicalResult Regrid::copy(Operation *op) {
  for (Value used : getUsedValues(op))
    if (!get(used))
      return failure();
  clone(op, /*varies=*/true);
  return success();
}

LogicalResult mlir::autodiff::accumulateWhole(OpBuilder &b, AccumulateOp op,
                                              Regrid &atZero, Value sum,
                                              CheckAttr check, Value partial,
                                              ExprAttr partials) {
  Value pointer = atZero.get(op.getPtr());
  Value mask = op.getMask() ? atZero.get(op.getMask()) : Value();
  if (!pointer || (op.getMask() && !mask))
    return failure();
  AccumulateOp::create(b, op.getLoc(), pointer, sum, mask, partial,
                       op.getArgument(), op.getSite(), check, partials,
                       /*remainder=*/false, /*moved=*/ArrayAttr());
  return success();
}
