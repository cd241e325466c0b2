//===- Tally.cpp - Who adds to a block of a sum alone ---------------------===//
#include "Tally.h"

#include "Runs.h"
#include "ShadowPointers.h"
#include "SharedBlocks.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

Tally::Tally(const AtomicSum &sum, const SumBlocks &blocks, ExprAttr when)
    : sum(sum), blocks(blocks), when(when),
      buffer(nextBuffer(sum.kernel->getParentOfType<ModuleOp>())) {}

LogicalResult Tally::lower(triton::FuncOp additions) {
  count(additions);
  createShared("clear");
  createShared("round");
  return split();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// An expression that is 1 in launches that count runs, and 0 in others.
ExprAttr Tally::isTallied() const { return minOf(1, when); }

std::string Tally::nameOf(llvm::StringRef role) const {
  triton::FuncOp kernel = sum.kernel;
  return (kernel.getSymName() + "_" + role + llvm::Twine(sum.argument)).str();
}

/// Appends an argument for the counts of runs.
BlockArgument Tally::appendTally(triton::FuncOp kernel) const {
  Type type = IntegerType::get(kernel.getContext(), 32);
  return appendBuffer(kernel, buffer, type,
                      describeMemory(BufferKind::Tally,
                                     "tally" + std::to_string(sum.argument),
                                     type, mulOf(isTallied(), blocks.count())));
}

/// Appends an argument for the gradient in the tensor's own type.
BlockArgument Tally::appendRounded(triton::FuncOp kernel) const {
  BlockArgument primal = kernel.getArgument(sum.argument);
  return appendShadow(kernel, primal, OperandKind::Rounded,
                      getPointee(primal.getType()), {});
}

static Value compareTo(OpBuilder &b, Location loc,
                       arith::CmpIPredicate predicate, Value number,
                       int64_t bound) {
  return arith::CmpIOp::create(b, loc, predicate, number,
                               integerOf(b, loc, number.getType(), bound));
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

static void addTo(OpBuilder &b, Location loc, Value tally, Value blocks,
                  Value number, Value mask) {
  triton::AtomicRMWOp::create(b, loc, number.getType(), triton::RMWOp::ADD,
                              pointInto(b, loc, tally, blocks), number, mask,
                              triton::MemSemantic::RELAXED,
                              triton::MemSyncScope::GPU);
}

/// Counts a run in each block that it touches; twice if there are several, so
/// that it is alone in none of them.
static void countRuns(triton::AtomicRMWOp add, const SumBlocks &blocks,
                      Value tally) {
  OpBuilder b(add);
  Location loc = add.getLoc();
  Runs runs = Runs::of(b, add);
  Value block = blocks.find(b, loc, runs.first);
  Type type = withElementType(block.getType(), b.getI32Type());
  auto constant = [&](int64_t number) {
    return integerOf(b, loc, type, number);
  };
  if (Runs::areLanes(add))
    return addTo(b, loc, tally, block, constant(1), runs.isActive);
  Value others =
      arith::SubIOp::create(b, loc, blocks.find(b, loc, runs.last), block);
  others = castInteger(b, loc, others, b.getI32Type());
  bool isMistaken = mutation::isMade("tally:alone in several blocks");
  Value number = arith::SelectOp::create(
      b, loc, compareTo(b, loc, arith::CmpIPredicate::sgt, others, 0),
      constant(isMistaken ? 1 : 2), constant(1));
  Value count = arith::SelectOp::create(
      b, loc, runs.isActive, arith::AddIOp::create(b, loc, others, constant(1)),
      constant(0));
  auto bound = [&](int64_t number) {
    return integerOf(b, loc, b.getI32Type(), number);
  };
  auto loop = scf::ForOp::create(
      b, loc, bound(0), reduceAll<arith::MaxSIOp>(b, loc, count), bound(1));
  b.setInsertionPointToStart(loop.getBody());
  Value step = splatTo(b, loc, loop.getInductionVar(), type);
  Value mask =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, step, count);
  Value next = arith::AddIOp::create(b, loc, block,
                                     castInteger(b, loc, step, b.getI64Type()));
  addTo(b, loc, tally, next, number, mask);
}

void Tally::count(triton::FuncOp additions) const {
  Builder builder(additions.getContext());
  nameKernel(additions, nameOf("tally"));
  additions->setAttr(kRoleAttr, builder.getStringAttr("tally"));
  LaunchOp launch = launchOf(additions);
  launch.setWhenAttr(when);
  BlockArgument tally = appendTally(additions);
  SmallVector<triton::AtomicRMWOp> adds;
  additions.walk([&](triton::AtomicRMWOp add) { adds.push_back(add); });
  // A program has few runs.
  if (llvm::none_of(adds, Runs::areLanes))
    launch.setOptionsAttr(builder.getDictionaryAttr(
        builder.getNamedAttr("num_warps", builder.getI32IntegerAttr(1))));
  for (triton::AtomicRMWOp add : adds) {
    countRuns(add, blocks, tally);
    add.erase();
  }
}

//===----------------------------------------------------------------------===//
// Blocks that several runs add to
//===----------------------------------------------------------------------===//

/// Creates a kernel that clears, or rounds, the blocks to which several runs
/// add.
void Tally::createShared(llvm::StringRef role) const {
  triton::FuncOp kernel = createBeside(sum.kernel, nameOf(role));
  kernel->setAttr(kRoleAttr, StringAttr::get(kernel.getContext(), role));
  BlockArgument memory = kernel.getArgument(sum.place);
  SharedBlocks shared(kernel, appendTally(kernel), blocks);
  OpBuilder &b = shared.getBuilder();
  Location loc = kernel.getLoc();
  Value pointer = shared.point(memory);
  Type type = withElementType(pointer.getType(), getPointee(memory.getType()));
  Value value = constantOf(b, loc, type, 0.0);
  if (role == "round") {
    BlockArgument rounded = appendRounded(kernel);
    value = triton::LoadOp::create(b, loc, pointer, shared.getMask(), value);
    value = castFloat(b, loc, value, getPointee(rounded.getType()));
    pointer = shared.point(rounded);
  }
  triton::StoreOp::create(b, loc, pointer, value, shared.getMask());
  dropUnusedArguments(kernel, [](OperandKind) { return true; });
}

//===----------------------------------------------------------------------===//
// Runs that are alone
//===----------------------------------------------------------------------===//

/// Whether the runs of an addition are alone in their blocks.
static Value areAlone(OpBuilder &b, triton::AtomicRMWOp add,
                      const SumBlocks &blocks, Value tally) {
  Location loc = add.getLoc();
  Runs runs = Runs::of(b, add);
  Value pointer = pointInto(b, loc, tally, blocks.find(b, loc, runs.first));
  Type type = withElementType(runs.first.getType(), b.getI32Type());
  Value number = triton::LoadOp::create(b, loc, pointer, runs.isActive,
                                        integerOf(b, loc, type, 0));
  return compareTo(b, loc, arith::CmpIPredicate::eq, number, 1);
}

/// Whether the runs of an addition are stored: none in launches that do not
/// count.
Value Tally::areStored(OpBuilder &b, triton::AtomicRMWOp add,
                       Value tally) const {
  Location loc = add.getLoc();
  Value isTallied = SizeOp::create(b, loc, this->isTallied());
  Type type;
  auto branch = scf::IfOp::create(
      b, loc, compareTo(b, loc, arith::CmpIPredicate::ne, isTallied, 0),
      [&](OpBuilder &b, Location loc) {
        Value alone = areAlone(b, add, blocks, tally);
        type = alone.getType();
        scf::YieldOp::create(b, loc, alone);
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, integerOf(b, loc, type, 0));
      });
  return branch.getResult(0);
}

/// Moves the builder up to where the runs of an addition are known, but what it
/// adds may still be loading.
static void goAhead(OpBuilder &b, triton::AtomicRMWOp add) {
  Operation *last = nullptr;
  for (Operation &op :
       llvm::make_range(add->getBlock()->begin(), add->getIterator()))
    if (isa<triton::LoadOp>(op) || add.getPtr().getDefiningOp() == &op ||
        (add.getMask() && add.getMask().getDefiningOp() == &op))
      last = &op;
  if (last)
    b.setInsertionPointAfter(last);
}

LogicalResult Tally::split(triton::AtomicRMWOp add, Value tally,
                           ShadowPointers &rounded) const {
  Value pointer = rounded.get(add.getPtr());
  if (!pointer)
    return failure();
  OpBuilder b(add);
  Location loc = add.getLoc();
  goAhead(b, add);
  Value stored = areStored(b, add, tally);
  b.setInsertionPoint(add);
  stored = Runs::toLanes(b, add, stored);
  Value added = arith::XOrIOp::create(b, loc, stored,
                                      integerOf(b, loc, stored.getType(), 1));
  if (Value mask = add.getMask()) {
    stored = arith::AndIOp::create(b, loc, mask, stored);
    added = arith::AndIOp::create(b, loc, mask, added);
  }
  Value value = castFloat(b, loc, add.getVal(), getPointee(pointer.getType()));
  triton::StoreOp::create(b, loc, pointer, value, stored);
  add.getMaskMutable().assign(added);
  add->removeAttr(kRunAxisAttr);
  return success();
}

LogicalResult Tally::split() const {
  triton::FuncOp kernel = sum.kernel;
  BlockArgument tally = appendTally(kernel);
  BlockArgument rounded = appendRounded(kernel);
  ShadowPointers shadow(kernel.getArgument(sum.place), rounded);
  for (triton::AtomicRMWOp add : sum.adds)
    if (failed(split(add, tally, shadow)))
      return failure();
  return success();
}
