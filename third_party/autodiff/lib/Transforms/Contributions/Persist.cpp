//===- Persist.cpp - Few programs do the work of many ---------------------===//
#include "SumLevels.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PERSIST
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("persist"), kParts("partial-sums");

namespace {
/// One of these contributions, and the check of its argument's gradient.
struct CheckedAccumulate {
  AccumulateOp op;
  CheckAttr check;
  /// Those of the shared digits that stay programs.
  SmallVector<ScalarExpr> apart;
};

struct Persist : autodiff::impl::PersistBase<Persist> {
  using PersistBase::PersistBase;

  void transform() override;
  void persistIn(triton::FuncOp kernel);
  Obstacle build(ArrayRef<ScalarExpr> serial, ArrayRef<SharedSum> sums);
  void separate(const SharedSum &sum);

  triton::FuncOp backward;
  ArrayRef<ScalarExpr> digits;
};
} // namespace

/// The number of a combination of values of `digits`, the first one fastest.
static Value numberOf(OpBuilder &b, Location loc, ArrayRef<ScalarExpr> digits,
                      llvm::function_ref<Value(const ScalarExpr &)> valueOf) {
  Value number;
  for (const ScalarExpr &digit : llvm::reverse(digits)) {
    Value value = valueOf(digit);
    if (number) {
      Value extent = createSize(b, loc, extentOf(digit));
      number = arith::MulIOp::create(b, loc, number, extent);
      value = arith::AddIOp::create(b, loc, number, value);
    }
    number = value;
  }
  return number;
}

/// Gives the contributions of each program a partial sum of their own.
void Persist::separate(const SharedSum &sum) {
  OpBuilder b = OpBuilder::atBlockBegin(&backward.getBody().front());
  Location loc = backward.getLoc();
  Value partial = numberOf(b, loc, sum.shared, [&](const ScalarExpr &digit) {
    return castInteger(b, loc, digit.emit(b, loc, backward.getArguments()),
                       b.getI32Type());
  });
  if (mutation::isMade("persist:one partial sum for all programs"))
    partial = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  ExprAttr one = ExprAttr::get(&getContext(), 1);
  CheckAttr check = sum.getCheck(digits);
  ExprAttr partials = countPrograms(sum.shared, one);
  if (!always)
    check = check.within(LimitAttr::get(
        &getContext(), partials, ExprAttr::get(&getContext(), kMostParts)));
  for (AccumulateOp op : sum.ops) {
    op.getPartialMutable().assign(partial);
    op.setPartialsAttr(partials);
    op.setWholeAttr(check);
    kParts.passed(op,
                  "programs that differ in {0} have partial sums of their "
                  "own",
                  sum.shared);
  }
}

/// Replaces the backward by one whose programs each do a part of the work of
/// those that differ in `serial`, and sum in registers.
Obstacle Persist::build(ArrayRef<ScalarExpr> serial,
                        ArrayRef<SharedSum> group) {
  Location loc = backward.getLoc();
  SmallVector<ScalarExpr> staying = findUnmentioned(digits, serial);
  triton::FuncOp kernel =
      createBeside(backward, backward.getSymName() + "_persistent");
  kernel->moveBefore(backward);
  OpBuilder b = OpBuilder::atBlockEnd(&kernel.getBody().front());
  double registers = countRegisters(backward);
  SmallVector<CheckedAccumulate> contributions;
  for (const SharedSum &sum : group) {
    registers += sum.countAdded();
    for (AccumulateOp op : sum.ops)
      contributions.push_back(
          {op, sum.getCheck(digits), findUnmentioned(sum.shared, serial)});
  }
  ExprAttr one = ExprAttr::get(&getContext(), 1);
  ExprAttr partials =
      countPartials(serial, countPrograms(staying, one),
                    programsFor(Target::of(backward), registers));
  ProgramNumbers programs = numberPrograms(b, kernel, partials, staying);
  Value stride = createSize(b, loc, partials);
  Value work, zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  SmallVector<Value> extents, sums;
  for (const ScalarExpr &digit : serial) {
    extents.push_back(createSize(b, loc, extentOf(digit)));
    work = work ? Value(arith::MulIOp::create(b, loc, work, extents.back()))
                : extents.back();
  }
  for (CheckedAccumulate &each : contributions)
    sums.push_back(constantOf(b, loc, each.op.getValue().getType(), 0.0));
  auto loop = scf::ForOp::create(b, loc, programs.number, work, stride, sums);

  // The work of one program of the old grid.
  OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
  OpBuilder once = b;
  once.setInsertionPoint(loop);
  Regrid regrid(kernel, once, inside);
  regrid.bindPrograms(programs);
  SmallVector<Value> parts =
      takeApart(inside, loc, loop.getInductionVar(), extents);
  for (auto [digit, value] : llvm::zip_equal(serial, parts))
    regrid.bindDigit(digit, value, true);
  SmallVector<Value> next(loop.getRegionIterArgs());
  bool succeeded = true;
  Reason why;
  for (Operation &op : backward.getBody().front().without_terminator()) {
    auto found = llvm::find_if(
        contributions, [&](CheckedAccumulate &each) { return each.op == &op; });
    if (found != contributions.end()) {
      Value value = regrid.get(found->op.getValue());
      Value &sum = next[found - contributions.begin()];
      if (value && mutation::isMade("persist:the last program alone"))
        sum = value;
      else if (value)
        sum = arith::AddFOp::create(inside, op.getLoc(), sum, value);
      succeeded &= value != nullptr;
    } else if (mayWrite(&op)) {
      succeeded &= mlir::succeeded(regrid.copy(&op));
    }
    if (!succeeded && !why)
      why =
          because(&op, "one program cannot do the work of several at {0}: {1}",
                  &op, regrid.why());
  }
  scf::YieldOp::create(inside, loc, next);

  // Addresses and masks do not depend on what is summed.
  Regrid atZero(kernel, b, b);
  atZero.bindPrograms(programs);
  for (const ScalarExpr &digit : serial)
    atZero.bindDigit(digit, zero, false);
  auto valueOf = [&](const ScalarExpr &digit) {
    return llvm::find_if(
               programs.digits,
               [&](const auto &known) { return known.first == digit; })
        ->second;
  };
  for (auto [each, sum] : llvm::zip_equal(contributions, loop.getResults())) {
    Value partial = programs.number;
    if (!each.apart.empty()) {
      Value others = numberOf(b, loc, each.apart, valueOf);
      partial = arith::AddIOp::create(
          b, loc, arith::MulIOp::create(b, loc, others, stride), partial);
    }
    succeeded = succeeded && mlir::succeeded(accumulateWhole(
                                 b, each.op, atZero, sum, each.check, partial,
                                 countPrograms(each.apart, partials)));
  }
  triton::ReturnOp::create(b, loc, ValueRange());
  if (!succeeded) {
    eraseKernel(kernel);
    return why ? why
               : because(backward,
                         "addresses or masks depend on what would be "
                         "summed over: {0}",
                         atZero.why());
  }
  for (const CheckedAccumulate &each : contributions)
    kRemarks.passed(each.op,
                    "programs of {0} do the work of several each, and sum "
                    "over {1} in registers",
                    kernel.getSymName(), serial);
  eraseKernel(backward);
  return std::nullopt;
}

void Persist::transform() {
  digits = getAnalysis<Contributions>().getDigits();
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    persistIn(each);
}

/// Decides for all arguments together, see SumLevels.h.
void Persist::persistIn(triton::FuncOp kernel) {
  backward = kernel;
  SumLevels levels(kernel, getAnalysis<Contributions>(), atomic);
  SmallVector<ScalarExpr> serial = levels.findShape();
  Obstacle why;
  if (!serial.empty() && !always)
    why = levels.findCost(serial);
  if (why)
    serial.clear();
  // What is not summed in registers, in the kernel that is copied.
  for (const SharedSum &sum : levels.getSums()) {
    if (!serial.empty() && sum.isInRegistersOf(serial))
      continue;
    Obstacle other = sum.notInRegisters;
    if (!other && !serial.empty())
      other = because(backward,
                      "programs would sum over {0}, and do so over {1} for "
                      "another argument",
                      sum.shared, serial);
    Obstacle memory = always ? std::nullopt : levels.findCostOfParts(sum);
    for (Contribution op : sum.ops) {
      kRemarks.missed(op, other ? *other : *why);
      if (memory)
        kParts.missed(op, *memory);
    }
    if (!memory)
      separate(sum);
  }
  if (serial.empty())
    return;
  SmallVector<SharedSum, 0> inRegisters = levels.getInRegisters(serial);
  if (Obstacle failed = build(serial, inRegisters))
    for (const SharedSum &sum : inRegisters) {
      for (Contribution op : sum.ops)
        kRemarks.missed(op, *failed);
      if (always || !levels.findCostOfParts(sum))
        separate(sum);
    }
}
