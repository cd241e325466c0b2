//===- ScalarCode.cpp - Code that runs on elements ------------------------===//
//
// The regions of reductions, scans and maps are scalar code. They are inlined
// where their elements are computed, branches and loops included.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "autodiff/Support/Structure.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

void Lowering::setScalars(ValueRange from, ValueRange to) {
  for (auto [value, scalar] : llvm::zip_equal(from, to))
    scalars[value] = scalar;
}

SmallVector<Value> Lowering::inlineScalars(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    inlineScalar(b, &op);
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return getScalar(value); });
}

void Lowering::inlineScalar(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  auto typesOf = [](TypeRange types) {
    return llvm::map_to_vector(types, getScalarType);
  };
  auto inlineInto = [&](Block &from, Block *to) {
    OpBuilder inner = OpBuilder::atBlockEnd(to);
    scf::YieldOp::create(inner, loc, inlineScalars(inner, from));
  };
  auto valuesOf = [&](ValueRange values) {
    return llvm::map_to_vector(values,
                               [&](Value value) { return getScalar(value); });
  };

  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    auto copy = scf::IfOp::create(b, loc, typesOf(op->getResultTypes()),
                                  getScalar(branch.getCondition()),
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
    inlineInto(branch.getThenRegion().front(), copy.thenBlock());
    if (branch.getElseRegion().empty()) {
      OpBuilder inner = OpBuilder::atBlockEnd(copy.elseBlock());
      scf::YieldOp::create(inner, loc);
    } else {
      inlineInto(branch.getElseRegion().front(), copy.elseBlock());
    }
    return setScalars(op->getResults(), copy.getResults());
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<Value> inits = valuesOf(loop.getInits());
    auto copy =
        scf::WhileOp::create(b, loc, typesOf(op->getResultTypes()), inits);
    auto locations = [&](size_t count) {
      return SmallVector<Location>(count, loc);
    };
    OpBuilder inner(b);
    Block *before =
        inner.createBlock(&copy.getBefore(), {}, ValueRange(inits).getTypes(),
                          locations(inits.size()));
    setScalars(loop.getBeforeArguments(), before->getArguments());
    SmallVector<Value> forwarded = inlineScalars(inner, *loop.getBeforeBody());
    scf::ConditionOp::create(inner, loc, forwarded.front(),
                             ValueRange(forwarded).drop_front());
    Block *after =
        inner.createBlock(&copy.getAfter(), {}, copy.getResultTypes(),
                          locations(copy.getNumResults()));
    setScalars(loop.getAfterArguments(), after->getArguments());
    inlineInto(*loop.getAfterBody(), after);
    return setScalars(op->getResults(), copy.getResults());
  }
  SmallVector<Value> operands = valuesOf(op->getOperands());
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto copy = scf::ForOp::create(
        b, loc, operands[0], operands[1], operands[2],
        ValueRange(operands).drop_front(3),
        [&](OpBuilder &inner, Location, Value index, ValueRange carried) {
          setScalar(loop.getInductionVar(), index);
          setScalars(loop.getRegionIterArgs(), carried);
          scf::YieldOp::create(inner, loc,
                               inlineScalars(inner, *loop.getBody()));
        });
    return setScalars(op->getResults(), copy.getResults());
  }
  if (op->getNumResults() == 1 && op->getNumRegions() == 0 &&
      !llvm::is_contained(operands, Value()))
    return setScalar(op->getResult(0), lowerScalar(b, op, operands));
  fail(op, "in code that runs on elements");
  for (Value result : op->getResults())
    setScalar(result, getPoison(b, loc, getScalarType(result.getType())));
}

SmallVector<Value> Lowering::combine(OpBuilder &b, Region &region,
                                     ValueRange lhs, ValueRange rhs) {
  Block &block = region.front();
  setScalars(block.getArguments().take_front(lhs.size()), lhs);
  setScalars(block.getArguments().drop_front(lhs.size()), rhs);
  return inlineScalars(b, block);
}

void Lowering::lowerMap(tt::MapElementwiseOp op) {
  if (op.getPack() != 1)
    return fail(op, "of several elements at a time");
  if (autodiff::structureRegion(op.getScalarOp()).failed())
    return fail(op);
  Location loc = op.getLoc();
  Block &block = op.getScalarOp().front();
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
    Element element(*this, b);
    for (auto [argument, source] :
         llvm::zip_equal(block.getArguments(), op.getSrcs()))
      setScalar(argument, element.get(source, indices));
    SmallVector<Value> results = inlineScalars(b, block);
    for (Value &result : results)
      if (result.getType().isInteger(1))
        result = arith::ExtUIOp::create(b, loc, b.getI8Type(), result);
    return results;
  };
  SmallVector<RankedTensorType> types =
      llvm::map_to_vector(op.getResultTypes(), [](Type type) {
        return getStorageTensor(asTile(type));
      });
  SmallVector<Value> tensors = generate(loc, types, {}, body);
  for (auto [result, tensor] : llvm::zip_equal(op.getResults(), tensors))
    setTensor(result, tensor);
}
