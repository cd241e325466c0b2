//===- InterchangedKernel.cpp - Iterations as programs
//-----------------------===//
#include "InterchangedKernel.h"

#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

InterchangedKernel::InterchangedKernel(triton::FuncOp backward,
                                       ArrayRef<ScalarExpr> digits,
                                       ArrayRef<Candidate> group,
                                       ArrayRef<LoopAccumulate> followers,
                                       unsigned number)
    : backward(backward), digits(digits), summed(group.front().summed),
      group(group), followers(followers), number(number),
      loc(backward.getLoc()), count(group.front().count),
      builder(backward.getContext()) {}

void InterchangedKernel::collectLoops() {
  for (const Candidate &candidate : group)
    for (const LoopAccumulate &contribution : candidate.contributions)
      if (llvm::none_of(loops, [&](const ParallelLoop &loop) {
            return loop.getLoop() == contribution.loop.getLoop();
          }))
        loops.push_back(contribution.loop);
}

/// For values that do not depend on the summed digits.
void InterchangedKernel::bindAllZero(Regrid &regrid) const {
  regrid.bindPrograms(programs);
  for (const ScalarExpr &digit : summed)
    regrid.bindDigit(digit, zero, false);
}

/// The primal's induction variable; null if it cannot be computed.
Value InterchangedKernel::indexOf(OpBuilder &b, Regrid &regrid,
                                  const ParallelLoop &loop) const {
  scf::ForOp primal = loop.getPrimal();
  Value step = regrid.get(primal.getStep());
  Value start =
      loop.isStartVarying() ? step : regrid.get(primal.getLowerBound());
  if (!step || !start)
    return {};
  Value number = castInteger(b, loc, iteration, step.getType());
  Value index = arith::MulIOp::create(b, loc, number, step);
  if (loop.isStartVarying())
    return index;
  return arith::AddIOp::create(b, loc, start, index);
}

/// The candidates that a loop contributes to, by place in the group.
SmallVector<unsigned>
InterchangedKernel::candidatesOf(const ParallelLoop &loop) const {
  SmallVector<unsigned> places;
  for (auto [place, candidate] : llvm::enumerate(group))
    if (llvm::any_of(candidate.contributions, [&](const LoopAccumulate &c) {
          return c.loop.getLoop() == loop.getLoop();
        }))
      places.push_back(place);
  return places;
}

LogicalResult InterchangedKernel::refuse(const char *what, const Reason &why) {
  reason = because(backward,
                   "a program of an iteration's own cannot compute {0}: {1}",
                   what, why);
  return failure();
}

/// Adds what all programs that have the iteration contribute in this loop.
LogicalResult InterchangedKernel::runLoop(const ParallelLoop &loop) {
  SmallVector<unsigned> adding = candidatesOf(loop);
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  Value index = indexOf(builder, atZero, loop);
  if (!index)
    return refuse("which iteration it is", atZero.why());
  Value last = createSize(builder, loc, extentOf(summed.back()));
  if ((loop.isUniform() && loop.count() == count) ||
      mutation::isMade("interchange:iterations that no program has"))
    return runPrograms(loop, builder, index, zero, last, adding);

  // Only some programs have it, those with a digit within a range; or, where
  // another loop is longer, none.
  SmallVector<ScalarExpr> deciding = llvm::filter_to_vector(
      summed, [&](const ScalarExpr &digit) { return loop.dependsOn(digit); });
  if (deciding.size() > 1 ||
      (deciding.size() == 1 && !(deciding[0] == summed.back()))) {
    reason = because(backward,
                     "which programs run an iteration of the loop at "
                     "{0} depends on several numbers: {1}",
                     loop.getLoop(), deciding);
    return failure();
  }
  FailureOr<std::pair<Value, Value>> range =
      loop.invert(builder, summed.back(), last, index, atZero);
  if (failed(range)) {
    reason =
        because(backward,
                "which programs run an iteration of the loop at {0} is not "
                "known: its bounds are no sums of multiples of {1}",
                loop.getLoop(), summed.back());
    return failure();
  }
  Type i32 = builder.getI32Type();
  Value from = castInteger(builder, loc, range->first, i32);
  Value to = castInteger(builder, loc, range->second, i32);

  // Without any, there may be no memory to read at this index.
  Value any =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, from, to);
  SmallVector<Type> types;
  SmallVector<Value> before;
  for (unsigned place : adding) {
    types.push_back(sums[place].getType());
    before.push_back(sums[place]);
  }
  auto branch = scf::IfOp::create(builder, loc, types, any, true);
  OpBuilder otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, before);
  OpBuilder then = branch.getThenBodyBuilder();
  if (failed(runPrograms(loop, then, index, from, to, adding)))
    return failure();
  SmallVector<Value> after;
  for (auto [place, result] : llvm::zip_equal(adding, branch.getResults())) {
    after.push_back(sums[place]);
    sums[place] = result;
  }
  scf::YieldOp::create(then, loc, after);
  return success();
}

/// Has programs with digits of zero compute the places that others share, which
/// carry them from where their loops start.
LogicalResult InterchangedKernel::bindShared(const ParallelLoop &loop,
                                             OpBuilder &once, Value index,
                                             Regrid &regrid) {
  if (!loop.isStartVarying())
    return success();
  Regrid atZero(kernel, once, once);
  bindAllZero(atZero);
  if (failed(loop.bind(atZero, once, iteration, index)))
    return refuse("where the loop starts", atZero.why());
  for (Value place : loop.findSharedPlaces(summed))
    if (Value shared = atZero.get(place))
      regrid.bind(place, shared, false);
  return success();
}

/// Runs over the summed digits, the last one between `from` and `to`.
LogicalResult InterchangedKernel::runPrograms(const ParallelLoop &loop,
                                              OpBuilder &b, Value index,
                                              Value from, Value to,
                                              ArrayRef<unsigned> adding) {
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  SmallVector<Value> extents;
  for (const ScalarExpr &digit : summed.drop_back())
    extents.push_back(createSize(b, loc, extentOf(digit)));
  if (partial && !mutation::isMade("interchange:overlapping partial sums"))
    from = arith::AddIOp::create(b, loc, from, partial);
  SmallVector<scf::ForOp> nest;
  SmallVector<Value> carried;
  for (unsigned place : adding)
    carried.push_back(sums[place]);
  OpBuilder inside = b;
  for (unsigned depth = 0; depth < summed.size(); ++depth) {
    bool innermost = depth + 1 == summed.size();
    auto run = scf::ForOp::create(inside, loc, innermost ? from : zero,
                                  innermost ? to : extents[depth],
                                  innermost && stride ? stride : one, carried);
    if (!nest.empty())
      scf::YieldOp::create(inside, loc, run.getResults());
    nest.push_back(run);
    carried.assign(run.getRegionIterArgs().begin(),
                   run.getRegionIterArgs().end());
    inside = OpBuilder::atBlockEnd(run.getBody());
  }

  OpBuilder once = b;
  once.setInsertionPoint(nest.front());
  Regrid regrid(kernel, once, inside);
  regrid.bindPrograms(programs);
  for (auto [digit, loop] : llvm::zip_equal(summed, nest))
    regrid.bindDigit(digit, loop.getInductionVar(), true);
  for (auto [value, reloaded] : handover)
    regrid.redirect(value, reloaded);
  if (failed(loop.bind(regrid, inside, iteration, index)))
    return refuse("where the loop starts", regrid.why());
  if (failed(bindShared(loop, once, index, regrid)))
    return failure();
  for (auto [sum, place] : llvm::zip_equal(carried, adding))
    for (const LoopAccumulate &contribution : group[place].contributions) {
      if (contribution.loop.getLoop() != loop.getLoop())
        continue;
      AccumulateOp op = contribution.op;
      Value value = regrid.get(op.getValue());
      if (!value)
        return refuse("what is contributed", regrid.why());
      if (mutation::isMade("interchange:the last program alone"))
        sum = value;
      else
        sum = arith::AddFOp::create(inside, op.getLoc(), sum, value);
    }
  if (failed(runFollowers(loop, inside, regrid, index)))
    return failure();
  scf::YieldOp::create(inside, loc, carried);
  for (auto [place, result] :
       llvm::zip_equal(adding, nest.front().getResults()))
    sums[place] = result;
  return success();
}

/// What one iteration of one program stores is stored in the place of both.
LogicalResult InterchangedKernel::runFollowers(const ParallelLoop &loop,
                                               OpBuilder &b, Regrid &regrid,
                                               Value index) {
  llvm::DenseSet<Operation *> bound{loop.getLoop()};
  for (const LoopAccumulate &follower : followers) {
    // Of several loops that run alike, one stores it.
    if (!follower.loop.runsLike(loop) || !followed.insert(follower.op).second)
      continue;
    if (bound.insert(follower.loop.getLoop()).second &&
        failed(follower.loop.bind(regrid, b, iteration, index)))
      return failure();
    if (!mutation::isMade("interchange:followers left behind") &&
        failed(regrid.copy(follower.op)))
      return refuse("what else is contributed", regrid.why());
  }
  return success();
}

/// The whole gradient at the addresses of this iteration. They, and the mask,
/// are the same for all programs: those with digits of zero compute them.
LogicalResult InterchangedKernel::store(const Candidate &candidate, Value sum) {
  const LoopAccumulate &contribution = candidate.contributions.front();
  const ParallelLoop &loop = contribution.loop;
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  Value index = indexOf(builder, atZero, loop);
  if (!index || failed(loop.bind(atZero, builder, iteration, index)))
    return refuse("which iteration it is", atZero.why());
  std::optional<AccessSpace> space =
      loop.findSpace(contribution.op.getLoad(), count);
  SmallVector<ScalarExpr> staying = findUnmentioned(digits, summed);
  CheckAttr check = space->toSummedCheck(candidate.argument, summed, staying);
  if (!space->boundsIterations() && differs(staying) &&
      !mutation::isMade("interchange:beyond what is read"))
    check = check.aboutWhole();
  if (!candidate.limits.empty() &&
      !mutation::isMade("interchange:beyond the mask"))
    check = check.within(candidate.limits);
  if (failed(accumulateWhole(builder, contribution.op, atZero, sum, check,
                             partial, partials)))
    return refuse("the address", atZero.why());
  return success();
}

/// Whether programs that differ in `staying` may have fewer iterations: zeros
/// are stored where the others would be, which nobody may have read.
bool InterchangedKernel::differs(ArrayRef<ScalarExpr> staying) const {
  return llvm::any_of(loops, [&](const ParallelLoop &loop) {
    return !loop.hasSameBase(staying) ||
           llvm::any_of(staying, [&](const ScalarExpr &digit) {
             return loop.dependsOn(digit);
           });
  });
}

/// Whether a value is computed with a product in the block that it is in.
static bool needsProduct(Value value, Block *block,
                         llvm::DenseSet<Value> &visited) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block || !visited.insert(value).second)
    return false;
  return isa<triton::DotOp>(op) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return needsProduct(operand, block, visited);
         });
}

bool mlir::autodiff::addsProducts(const Candidate &candidate) {
  return llvm::any_of(candidate.contributions, [](const LoopAccumulate &c) {
    AccumulateOp op = c.op;
    llvm::DenseSet<Value> visited;
    return needsProduct(op.getValue(), op->getBlock(), visited);
  });
}

/// Where there is little to do for a program, there are few programs for the
/// iterations (rows of a norm in pieces): the sums over others are divided.
bool InterchangedKernel::isSplit() const {
  return llvm::none_of(group, addsProducts);
}

/// Numbers programs by iterations, then by parts of what is summed.
void InterchangedKernel::splitPrograms(ArrayRef<ScalarExpr> staying) {
  ExprAttr parts =
      countPartials(summed.take_back(), countPrograms(staying, count),
                    {Target::kFewestPrograms, Target::kFewestPrograms});
  programs = numberPrograms(builder, kernel, mulOf(count, parts), staying);
  Value iterations = createSize(builder, loc, count);
  iteration = arith::RemSIOp::create(builder, loc, programs.number, iterations);
  partial = arith::DivSIOp::create(builder, loc, programs.number, iterations);
  stride = createSize(builder, loc, parts);
  partials = parts;
}

triton::FuncOp InterchangedKernel::build(const Handover &left) {
  handover = left.get();
  collectLoops();
  kernel = createBeside(backward, backward.getSymName() + "_interchanged" +
                                      llvm::Twine(number));
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  SmallVector<ScalarExpr> staying = findUnmentioned(digits, summed);
  if (isSplit())
    splitPrograms(staying);
  else
    programs = numberPrograms(builder, kernel, count, staying);
  if (!iteration)
    iteration = programs.number;
  zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  for (const Candidate &candidate : group) {
    AccumulateOp op = candidate.contributions.front().op;
    sums.push_back(constantOf(builder, loc, op.getValue().getType(), 0.0));
  }
  bool succeeded = llvm::all_of(loops, [&](const ParallelLoop &loop) {
    return mlir::succeeded(runLoop(loop));
  });
  for (auto [candidate, sum] : llvm::zip_equal(group, sums))
    succeeded = succeeded && mlir::succeeded(store(candidate, sum));
  if (succeeded) {
    triton::ReturnOp::create(builder, loc, ValueRange());
    return kernel;
  }
  eraseKernel(kernel);
  return {};
}
