//===- Exchange.cpp - Make iterations programs ----------------------------===//
#include "ArgumentUses.h"
#include "Handover.h"
#include "ParallelLoop.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_EXCHANGE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;

namespace {
/// What an iteration adds to the gradient of one argument.
struct Contribution {
  AccumulateOp op;
  triton::LoadOp load; // the primal's
  ParallelLoop loop;
};

/// An argument's gradient that an exchanged kernel can store.
struct Candidate {
  unsigned argument;
  SmallVector<Contribution> contributions;
  /// The numbers of iterations are below this: an expression.
  llvm::json::Value count;
  /// The digits of program ids that the address does not depend on.
  SmallVector<ScalarExpr> summed;
};

struct Exchange : autodiff::impl::ExchangeBase<Exchange> {
  using ExchangeBase::ExchangeBase;

  void runOnOperation() override;
  std::optional<Contribution> locate(AccumulateOp op) const;
  std::optional<Candidate> examine(unsigned argument, const ArgumentUse &use);
  SmallVector<Contribution> locateFollowers(const ArgumentUse &use,
                                            ArrayRef<Candidate> group) const;
  SmallVector<Contribution> findFollowers(ArrayRef<Candidate> group) const;
  triton::FuncOp build(ArrayRef<Candidate> group,
                       ArrayRef<Contribution> followers, unsigned number,
                       Handover &handover) const;

  triton::FuncOp backward;
  llvm::DenseMap<unsigned, Operation *> sites;
  SmallVector<ScalarExpr> digits;
};

/// Builds the kernel in which the iterations of loops are programs.
class ExchangedKernel {
public:
  ExchangedKernel(triton::FuncOp backward, ArrayRef<ScalarExpr> digits,
                  ArrayRef<Candidate> group, ArrayRef<Contribution> followers,
                  unsigned number);

  /// Uses what the handover leaves. Null if something in the loops cannot be
  /// computed that way.
  triton::FuncOp build(const Handover &handover);

private:
  void collectLoops();
  LogicalResult runLoop(const ParallelLoop &loop);
  LogicalResult runPrograms(const ParallelLoop &loop, OpBuilder &b, Value index,
                            Value from, Value to, ArrayRef<unsigned> adding);
  LogicalResult runFollowers(const ParallelLoop &loop, OpBuilder &b,
                             Regrid &regrid, Value index);
  LogicalResult store(const Candidate &candidate, Value sum);
  void bindAllZero(Regrid &regrid) const;
  Value indexOf(OpBuilder &b, Regrid &regrid, const ParallelLoop &loop) const;
  bool isSplit() const;
  void splitPrograms(ArrayRef<ScalarExpr> staying);
  SmallVector<unsigned> candidatesOf(const ParallelLoop &loop) const;

  triton::FuncOp backward, kernel;
  ArrayRef<ScalarExpr> digits, summed;
  ArrayRef<Candidate> group;
  ArrayRef<Contribution> followers;
  unsigned number;
  Location loc;
  SmallVector<ParallelLoop> loops;
  ArrayRef<std::pair<Value, Value>> handover;
  llvm::json::Value count; // of iteration numbers
  OpBuilder builder;       // at the end of the kernel
  ProgramNumbers programs;
  Value zero;
  Value iteration; // the number that a program stands for
  /// Which of how many partial sums a program makes; null for whole sums.
  Value partial, stride;
  StringAttr partials;
  /// The sums so far, by candidate.
  SmallVector<Value> sums;
  llvm::DenseSet<Operation *> followed;
};
} // namespace

//===----------------------------------------------------------------------===//
// Building a kernel
//===----------------------------------------------------------------------===//

ExchangedKernel::ExchangedKernel(triton::FuncOp backward,
                                 ArrayRef<ScalarExpr> digits,
                                 ArrayRef<Candidate> group,
                                 ArrayRef<Contribution> followers,
                                 unsigned number)
    : backward(backward), digits(digits), summed(group.front().summed),
      group(group), followers(followers), number(number),
      loc(backward.getLoc()), count(group.front().count),
      builder(backward.getContext()) {}

void ExchangedKernel::collectLoops() {
  for (const Candidate &candidate : group)
    for (const Contribution &contribution : candidate.contributions)
      if (llvm::none_of(loops, [&](const ParallelLoop &loop) {
            return loop.getLoop() == contribution.loop.getLoop();
          }))
        loops.push_back(contribution.loop);
}

/// For values that do not depend on the summed digits.
void ExchangedKernel::bindAllZero(Regrid &regrid) const {
  regrid.bindPrograms(programs);
  for (const ScalarExpr &digit : summed)
    regrid.bindDigit(digit, zero, false);
}

/// The primal's induction variable.
Value ExchangedKernel::indexOf(OpBuilder &b, Regrid &regrid,
                               const ParallelLoop &loop) const {
  scf::ForOp primal = loop.getPrimal();
  Value step = regrid.get(primal.getStep());
  Value number = castInteger(b, loc, iteration, step.getType());
  Value index = arith::MulIOp::create(b, loc, number, step);
  if (loop.isStartVarying())
    return index;
  return arith::AddIOp::create(b, loc, regrid.get(primal.getLowerBound()),
                               index);
}

/// The candidates that a loop contributes to, by place in the group.
SmallVector<unsigned>
ExchangedKernel::candidatesOf(const ParallelLoop &loop) const {
  SmallVector<unsigned> places;
  for (auto [place, candidate] : llvm::enumerate(group))
    if (llvm::any_of(candidate.contributions, [&](const Contribution &c) {
          return c.loop.getLoop() == loop.getLoop();
        }))
      places.push_back(place);
  return places;
}

/// Adds what all programs that have the iteration contribute in this loop.
LogicalResult ExchangedKernel::runLoop(const ParallelLoop &loop) {
  SmallVector<unsigned> adding = candidatesOf(loop);
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  Value index = indexOf(builder, atZero, loop);
  Value last = createSize(builder, loc, extentOf(summed.back()));
  if ((loop.isUniform() && loop.count() == count) ||
      mutation::isMade("exchange:iterations that no program has"))
    return runPrograms(loop, builder, index, zero, last, adding);

  // Only some programs have it, those with a digit within a range; or, where
  // another loop is longer, none.
  SmallVector<ScalarExpr> deciding = llvm::filter_to_vector(
      summed, [&](const ScalarExpr &digit) { return loop.dependsOn(digit); });
  if (deciding.size() > 1 ||
      (deciding.size() == 1 && !(deciding[0] == summed.back())))
    return failure();
  FailureOr<std::pair<Value, Value>> range =
      loop.invert(builder, summed.back(), last, index, atZero);
  if (failed(range))
    return failure();
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

/// Runs over the summed digits, the last one between `from` and `to`.
LogicalResult ExchangedKernel::runPrograms(const ParallelLoop &loop,
                                           OpBuilder &b, Value index,
                                           Value from, Value to,
                                           ArrayRef<unsigned> adding) {
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  SmallVector<Value> extents;
  for (const ScalarExpr &digit : summed.drop_back())
    extents.push_back(createSize(b, loc, extentOf(digit)));
  if (partial && !mutation::isMade("exchange:overlapping partial sums"))
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
    return failure();
  for (auto [sum, place] : llvm::zip_equal(carried, adding))
    for (const Contribution &contribution : group[place].contributions) {
      if (contribution.loop.getLoop() != loop.getLoop())
        continue;
      AccumulateOp op = contribution.op;
      Value value = regrid.get(op.getValue());
      if (!value)
        return failure();
      if (mutation::isMade("exchange:the last program alone"))
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
LogicalResult ExchangedKernel::runFollowers(const ParallelLoop &loop,
                                            OpBuilder &b, Regrid &regrid,
                                            Value index) {
  llvm::DenseSet<Operation *> bound{loop.getLoop()};
  for (const Contribution &follower : followers) {
    // Of several loops that run alike, one stores it.
    if (!follower.loop.runsLike(loop) || !followed.insert(follower.op).second)
      continue;
    if (bound.insert(follower.loop.getLoop()).second &&
        failed(follower.loop.bind(regrid, b, iteration, index)))
      return failure();
    if (!mutation::isMade("exchange:followers left behind") &&
        failed(regrid.copy(follower.op)))
      return failure();
  }
  return success();
}

/// The whole gradient at the addresses of this iteration. They, and the mask,
/// are the same for all programs: those with digits of zero compute them.
LogicalResult ExchangedKernel::store(const Candidate &candidate, Value sum) {
  const Contribution &contribution = candidate.contributions.front();
  const ParallelLoop &loop = contribution.loop;
  Regrid atZero(kernel, builder, builder);
  bindAllZero(atZero);
  Value index = indexOf(builder, atZero, loop);
  if (failed(loop.bind(atZero, builder, iteration, index)))
    return failure();
  AccessSpace::Renumbering renumbering = loop.numberAlike(count);
  std::optional<AccessSpace> space =
      AccessSpace::of(contribution.load, &renumbering);
  return accumulateWhole(builder, contribution.op, atZero, sum,
                         space->toSummedCheck(candidate.argument, summed),
                         partial, partials);
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

/// Where there is little to do for a program, there are few programs for the
/// iterations (rows of a norm in pieces): the sums over others are divided.
bool ExchangedKernel::isSplit() const {
  return llvm::none_of(group, [](const Candidate &candidate) {
    return llvm::any_of(candidate.contributions, [](const Contribution &c) {
      AccumulateOp op = c.op;
      llvm::DenseSet<Value> visited;
      return needsProduct(op.getValue(), op->getBlock(), visited);
    });
  });
}

/// Numbers programs by iterations, then by parts of what is summed.
void ExchangedKernel::splitPrograms(ArrayRef<ScalarExpr> staying) {
  llvm::json::Value parts =
      countPartials(summed.take_back(), countPrograms(staying, count),
                    /*perProcessor=*/{2, 2});
  programs =
      numberPrograms(builder, kernel, Array{"mul", count, parts}, staying);
  Value iterations = createSize(builder, loc, count);
  iteration = arith::RemSIOp::create(builder, loc, programs.number, iterations);
  partial = arith::DivSIOp::create(builder, loc, programs.number, iterations);
  stride = createSize(builder, loc, parts);
  partials = toAttribute(builder.getContext(), std::move(parts));
}

triton::FuncOp ExchangedKernel::build(const Handover &left) {
  handover = left.get();
  collectLoops();
  kernel = createBeside(backward, backward.getSymName() + "_exchanged" +
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
  kernel.erase();
  return {};
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// The loops that an addition is in, which has to be at their outer level.
std::optional<Contribution> Exchange::locate(AccumulateOp op) const {
  auto load = dyn_cast<triton::LoadOp>(sites.lookup(op.getSite()));
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  auto primal = load ? dyn_cast<scf::ForOp>(load->getParentOp()) : nullptr;
  if (!loop || !primal || loop->getParentOp() != backward ||
      !isa<triton::FuncOp>(primal->getParentOp()))
    return std::nullopt;
  std::optional<ParallelLoop> parallel = ParallelLoop::of(loop, primal, digits);
  if (!parallel)
    return std::nullopt;
  return Contribution{op, load, *parallel};
}

/// Whether an exchanged kernel can store the gradient of `argument`, as far as
/// its addresses and loops tell.
std::optional<Candidate> Exchange::examine(unsigned argument,
                                           const ArgumentUse &use) {
  if (llvm::is_contained(atomic, argument) || !use.upstreams.empty())
    return std::nullopt;
  Candidate candidate{argument, {}, 0, {}};
  std::optional<AccessSpace> first;
  for (AccumulateOp op : use.accumulates) {
    std::optional<Contribution> contribution = locate(op);
    if (!contribution)
      return std::nullopt;
    const ParallelLoop &parallel = contribution->loop;
    AccessSpace::Renumbering renumbering = parallel.numberAlike(0);
    std::optional<AccessSpace> space =
        AccessSpace::of(contribution->load, &renumbering);
    if (!space || !space->isExact())
      return std::nullopt;
    llvm::json::Value count = parallel.count();
    if (!first) {
      first = space;
      candidate.count = std::move(count);
    } else if (!parallel.agreesWith(candidate.contributions[0].loop) ||
               op.getValue().getType() !=
                   candidate.contributions[0].op.getValue().getType() ||
               (!space->touchesSameAs(*first) &&
                !mutation::isMade("exchange:other addresses"))) {
      return std::nullopt;
    } else if (count != candidate.count) {
      candidate.count =
          Array{"max", std::move(candidate.count), std::move(count)};
    }
    candidate.contributions.push_back(*contribution);
  }
  candidate.summed = findUnmentioned(digits, first->getProgramDigits());
  if (candidate.summed.empty())
    return std::nullopt;
  // The digit that bounds depend on runs fastest.
  llvm::stable_sort(candidate.summed, [&](const auto &x, const auto &y) {
    auto decides = [&](const ScalarExpr &digit) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return c.loop.dependsOn(digit);
      });
    };
    return decides(x) < decides(y);
  });
  return candidate;
}

/// The uses, if each of their addresses is stored to by one program in one
/// iteration of a loop that the group runs, too; else nothing.
SmallVector<Contribution>
Exchange::locateFollowers(const ArgumentUse &use,
                          ArrayRef<Candidate> group) const {
  auto isRun = [&](const Contribution &follower) {
    return llvm::any_of(group, [&](const Candidate &candidate) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return follower.loop.runsLike(c.loop);
      });
    });
  };
  SmallVector<Contribution> followers;
  SmallVector<Operation *> loads;
  for (AccumulateOp op : use.accumulates) {
    std::optional<Contribution> follower = locate(op);
    if (!follower || op.getWhole() || !isRun(*follower))
      return {};
    followers.push_back(*follower);
    loads.push_back(follower->load);
  }
  std::optional<AccessSpace> space = AccessSpace::ofAll(loads);
  bool isOwned = use.upstreams.empty() && space &&
                 findUnmentioned(digits, space->getProgramDigits()).empty();
  return isOwned ? followers : SmallVector<Contribution>();
}

/// Whether a loop does nothing but what `done` holds.
static bool doesOnly(scf::ForOp loop, const llvm::DenseSet<Operation *> &done) {
  bool others =
      loop.walk([&](Operation *op) {
            bool isOther = op != loop && op->getNumRegions() == 0 &&
                           mayWrite(op) && !done.contains(op);
            return isOther ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  return !others && loop->use_empty();
}

/// What else the kernel of a group stores on its way: all that loops are left
/// for, which then need not read their tiles again.
SmallVector<Contribution>
Exchange::findFollowers(ArrayRef<Candidate> group) const {
  llvm::DenseSet<Operation *> done;
  for (const Candidate &candidate : group)
    for (const Contribution &contribution : candidate.contributions)
      done.insert(contribution.op);
  SmallVector<Contribution> followers;
  for (auto &[argument, use] : collectUses(backward)) {
    bool isOwn = llvm::any_of(group, [&, argument = argument](const auto &c) {
      return c.argument == argument;
    });
    if (isOwn || llvm::is_contained(atomic, argument))
      continue;
    for (const Contribution &follower : locateFollowers(use, group)) {
      followers.push_back(follower);
      done.insert(follower.op);
    }
  }
  bool areAll = llvm::all_of(followers, [&](const Contribution &follower) {
    return doesOnly(follower.loop.getLoop(), done);
  });
  return areAll ? followers : SmallVector<Contribution>();
}

/// What an iteration of the loops that become superfluous reads.
static double bytesRead(ArrayRef<Contribution> followers) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  double bytes = 0;
  for (const Contribution &follower : followers)
    if (scf::ForOp loop = follower.loop.getLoop(); seen.insert(loop).second)
      for (auto load : loop.getBody()->getOps<triton::LoadOp>())
        bytes += bytesOf(load.getType());
  return bytes;
}

/// The group's kernel, with what is handed over to it; null if there is none,
/// or if more would be handed over for the followers than they save.
triton::FuncOp Exchange::build(ArrayRef<Candidate> group,
                               ArrayRef<Contribution> followers,
                               unsigned number, Handover &handover) const {
  SmallVector<Value> results;
  for (const Candidate &candidate : group)
    for (const Contribution &contribution : candidate.contributions)
      results.push_back(AccumulateOp(contribution.op).getValue());
  for (const Contribution &follower : followers)
    results.push_back(AccumulateOp(follower.op).getValue());
  handover.leave(results);
  if (!followers.empty() && handover.getBytes() > bytesRead(followers)) {
    handover.undo();
    return {};
  }
  ExchangedKernel exchanged(backward, digits, group, followers, number);
  if (triton::FuncOp kernel = exchanged.build(handover))
    return kernel;
  // Its place among the programs may have no number in the new kernel.
  handover.undo();
  if (!handover.isOptional())
    return {};
  return ExchangedKernel(backward, digits, group, followers, number)
      .build(handover);
}

/// Whatever takes the place of program ids can only do so at the outer level.
static void hoistProgramIds(triton::FuncOp kernel) {
  SmallVector<Operation *> ids;
  kernel.walk([&](Operation *op) {
    if (isa<triton::GetProgramIdOp, triton::GetNumProgramsOp>(op))
      ids.push_back(op);
  });
  Block &body = kernel.getBody().front();
  for (Operation *id : ids)
    id->moveBefore(&body, body.begin());
}

void Exchange::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  backward = getBackward(getOperation());
  sites = collectSites(primal);
  digits = findProgramDigits(primal);
  hoistProgramIds(backward);

  // Arguments whose kernels have the same order of iterations share one.
  SmallVector<SmallVector<Candidate>> groups;
  for (auto &[argument, use] : collectUses(backward)) {
    std::optional<Candidate> candidate = examine(argument, use);
    if (!candidate)
      continue;
    auto same = llvm::find_if(groups, [&](ArrayRef<Candidate> group) {
      return group[0].summed == candidate->summed &&
             group[0].count == candidate->count &&
             group[0].contributions[0].loop.agreesWith(
                 candidate->contributions[0].loop);
    });
    if (same == groups.end())
      same = groups.insert(groups.end(), SmallVector<Candidate>());
    same->push_back(*candidate);
  }
  Handover handover(backward, digits);
  for (auto [number, group] : llvm::enumerate(groups)) {
    SmallVector<Contribution> followers = findFollowers(group);
    triton::FuncOp kernel = build(group, followers, number, handover);
    if (!kernel && !followers.empty()) {
      followers.clear();
      kernel = build(group, followers, number, handover);
    }
    if (!kernel)
      continue;
    for (Candidate &candidate : group)
      for (Contribution &contribution : candidate.contributions)
        contribution.op.erase();
    for (Contribution &follower : followers)
      follower.op.erase();
  }
  // Nothing may be left to do for the kernel that stayed.
  if (getBackwards(getOperation()).size() > 1 && !mayWrite(backward))
    backward.erase();
}
