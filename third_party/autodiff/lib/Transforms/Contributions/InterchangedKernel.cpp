//===- InterchangedKernel.cpp - Iterations as programs --------------------===//
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

void InterchangedKernel::collectNests() {
  for (const Candidate &candidate : group)
    for (const LoopAccumulate &contribution : candidate.contributions)
      if (llvm::none_of(nests, [&](const ParallelNest &nest) {
            return nest.getInnermost() == contribution.nest.getInnermost();
          }))
        nests.push_back(contribution.nest);
}

/// For values that do not depend on the summed digits.
void InterchangedKernel::bindAllZero(Regrid &regrid) const {
  regrid.bindPrograms(programs);
  for (const ScalarExpr &digit : summed)
    regrid.bindDigit(digit, zero, false);
}

/// The primal's induction variable in the iteration with this number; null if
/// it cannot be computed.
Value InterchangedKernel::indexOf(OpBuilder &b, Regrid &regrid,
                                  const ParallelLoop &loop,
                                  Value number) const {
  scf::ForOp primal = loop.getPrimal();
  Value step = regrid.get(primal.getStep());
  Value start =
      loop.isStartVarying() ? step : regrid.get(primal.getLowerBound());
  if (!step || !start)
    return {};
  number = castInteger(b, loc, number, step.getType());
  Value index = arith::MulIOp::create(b, loc, number, step);
  if (loop.isStartVarying())
    return index;
  return arith::AddIOp::create(b, loc, start, index);
}

/// Finds the number of each owned loop's iteration, which a program stands for.
void InterchangedKernel::takeNumberApart(const ParallelNest &nest) {
  auto [known, isNew] = numbers.try_emplace(nest.getInnermost());
  if (!isNew)
    return;
  if (nest.getOwned().size() == 1) {
    known->second = {iteration};
    return;
  }
  SmallVector<Value> extents;
  for (const ParallelLoop &loop : llvm::reverse(nest.getOwned()))
    extents.push_back(createSize(builder, loc, loop.count()));
  SmallVector<Value> parts = takeApart(builder, loc, iteration, extents);
  if (!mutation::isMade("interchange:numbers of the other loop"))
    std::reverse(parts.begin(), parts.end());
  known->second = std::move(parts);
}

ArrayRef<Value> InterchangedKernel::numbersOf(const ParallelNest &nest) const {
  return numbers.find(nest.getInnermost())->second;
}

/// The induction variables of the primal's owned loops; none if one of them
/// cannot be computed.
std::optional<SmallVector<Value>>
InterchangedKernel::indicesOf(OpBuilder &b, Regrid &regrid,
                              const ParallelNest &nest) {
  SmallVector<Value> indices;
  for (auto [loop, number] : llvm::zip_equal(nest.getOwned(), numbersOf(nest)))
    if (Value index = indexOf(b, regrid, loop, number))
      indices.push_back(index);
    else
      return std::nullopt;
  return indices;
}

/// Binds the owned loops' iterations that a program stands for.
LogicalResult InterchangedKernel::bind(const ParallelNest &nest, Regrid &regrid,
                                       OpBuilder &b, ArrayRef<Value> indices) {
  for (auto [loop, number, index] :
       llvm::zip_equal(nest.getOwned(), numbersOf(nest), indices))
    if (failed(loop.bind(regrid, b, number, index)))
      return failure();
  return success();
}

/// The candidates that a nest contributes to, by place in the group.
SmallVector<unsigned>
InterchangedKernel::candidatesOf(const ParallelNest &nest) const {
  SmallVector<unsigned> places;
  for (auto [place, candidate] : llvm::enumerate(group))
    if (llvm::any_of(candidate.contributions, [&](const LoopAccumulate &c) {
          return c.nest.getInnermost() == nest.getInnermost();
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

/// Adds what all programs that have the iteration contribute in this nest.
LogicalResult InterchangedKernel::runNest(const ParallelNest &nest) {
  SmallVector<unsigned> adding = candidatesOf(nest);
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  std::optional<SmallVector<Value>> indices = indicesOf(builder, atZero, nest);
  if (!indices)
    return refuse("which iteration it is", atZero.why());
  Value last =
      summed.empty() ? zero : createSize(builder, loc, extentOf(summed.back()));
  if ((nest.isUniform() && nest.count() == count) ||
      mutation::isMade("interchange:iterations that no program has"))
    return runPrograms(nest, builder, *indices, zero, last, adding);
  if ((!nest.isSingle() && nest.count() != count) || summed.empty()) {
    reason = because(backward,
                     "the loops at {0} and {1} have fewer iterations than "
                     "others, or in other programs",
                     nest.getOutermost(), nest.getInnermost());
    return failure();
  }
  unsigned place = nest.getVarying().value_or(0);
  const ParallelLoop &loop = nest.getOwned()[place];
  Value index = (*indices)[place];

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
  if (failed(runPrograms(nest, then, *indices, from, to, adding)))
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
LogicalResult InterchangedKernel::bindShared(const ParallelNest &nest,
                                             OpBuilder &once,
                                             ArrayRef<Value> indices,
                                             Regrid &regrid) {
  const ParallelLoop &loop = nest.getOwned()[*nest.getVarying()];
  if (!loop.isStartVarying())
    return success();
  Regrid atZero(kernel, once, once);
  bindAllZero(atZero);
  if (failed(bind(nest, atZero, once, indices)))
    return refuse("where the loop starts", atZero.why());
  for (Value place : loop.findSharedPlaces(summed))
    if (Value shared = atZero.get(place))
      regrid.bind(place, shared, false);
  return success();
}

/// Runs over the summed digits, the last one between `from` and `to`, and over
/// summed loops.
LogicalResult InterchangedKernel::runPrograms(const ParallelNest &nest,
                                              OpBuilder &b,
                                              ArrayRef<Value> indices,
                                              Value from, Value to,
                                              ArrayRef<unsigned> adding) {
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  SmallVector<Value> extents, trips;
  for (const ScalarExpr &digit : summed)
    extents.push_back(createSize(b, loc, extentOf(digit)));
  for (const ParallelLoop &loop : nest.getSummed())
    trips.push_back(createSize(b, loc, loop.count()));
  if (partial && !mutation::isMade("interchange:overlapping partial sums"))
    from = arith::AddIOp::create(b, loc, from, partial);
  SmallVector<scf::ForOp> runs;
  SmallVector<Value> carried;
  for (unsigned place : adding)
    carried.push_back(sums[place]);
  OpBuilder inside = b;
  auto run = [&](Value lower, Value upper, Value step) {
    auto loop = scf::ForOp::create(inside, loc, lower, upper, step, carried);
    if (!runs.empty())
      scf::YieldOp::create(inside, loc, loop.getResults());
    runs.push_back(loop);
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    inside = OpBuilder::atBlockEnd(loop.getBody());
  };
  for (auto [place, extent] : llvm::enumerate(extents))
    if (place + 1 < extents.size())
      run(zero, extent, one);
    else
      run(from, to, stride ? stride : one);
  for (Value count : trips)
    run(zero, count, one);

  OpBuilder once = b;
  once.setInsertionPoint(runs.front());
  Regrid regrid(kernel, once, inside);
  regrid.bindPrograms(programs);
  for (auto [digit, loop] : llvm::zip(summed, runs))
    regrid.bindDigit(digit, loop.getInductionVar(), true);
  for (auto [place, loop] : llvm::enumerate(nest.getSummed())) {
    Value counter = loop.getLoop().getInductionVar();
    Value number = runs[summed.size() + place].getInductionVar();
    number = castInteger(inside, loc, number, counter.getType());
    regrid.bind(counter, number, true);
  }
  for (auto [value, reloaded] : handover)
    regrid.redirect(value, reloaded);
  if (failed(bind(nest, regrid, inside, indices)))
    return refuse("where the loop starts", regrid.why());
  if (nest.getVarying() && failed(bindShared(nest, once, indices, regrid)))
    return failure();
  for (auto [sum, place] : llvm::zip_equal(carried, adding))
    for (const LoopAccumulate &contribution : group[place].contributions) {
      if (contribution.nest.getInnermost() != nest.getInnermost())
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
  if (failed(runFollowers(nest, inside, regrid, indices)))
    return failure();
  scf::YieldOp::create(inside, loc, carried);
  for (auto [place, result] :
       llvm::zip_equal(adding, runs.front().getResults()))
    sums[place] = result;
  return success();
}

/// What one iteration of one program stores is stored in the place of both.
LogicalResult InterchangedKernel::runFollowers(const ParallelNest &nest,
                                               OpBuilder &b, Regrid &regrid,
                                               ArrayRef<Value> indices) {
  llvm::DenseSet<Operation *> bound{nest.getInnermost()};
  for (const LoopAccumulate &follower : followers) {
    // Of several loops that run alike, one stores it.
    if (!follower.nest.runsLike(nest) || !followed.insert(follower.op).second)
      continue;
    if (bound.insert(follower.nest.getInnermost()).second &&
        failed(bind(follower.nest, regrid, b, indices)))
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
  const ParallelNest &nest = contribution.nest;
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  for (const ParallelLoop &loop : nest.getSummed()) {
    Value counter = loop.getLoop().getInductionVar();
    atZero.bind(counter, castInteger(builder, loc, zero, counter.getType()),
                false);
  }
  std::optional<SmallVector<Value>> indices = indicesOf(builder, atZero, nest);
  if (!indices || failed(bind(nest, atZero, builder, *indices)))
    return refuse("which iteration it is", atZero.why());
  std::optional<AccessSpace> space = nest.findSpace(contribution.op, count);
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
  return llvm::any_of(nests, [&](const ParallelNest &nest) {
    return !nest.hasSameBase(staying) ||
           llvm::any_of(staying, [&](const ScalarExpr &digit) {
             return nest.dependsOn(digit);
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
  return !summed.empty() && llvm::none_of(group, addsProducts);
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
  collectNests();
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
  for (const ParallelNest &nest : nests)
    takeNumberApart(nest);
  for (const LoopAccumulate &follower : followers)
    takeNumberApart(follower.nest);
  bool succeeded = llvm::all_of(nests, [&](const ParallelNest &nest) {
    return mlir::succeeded(runNest(nest));
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
