//===- Branches.cpp - Branches and their sides ----------------------------===//
#include "Branches.h"

using namespace mlir;

Block *mlir::autodiff::findWork(scf::IfOp branch) {
  auto isEmpty = [](Block *block) {
    return !block || &block->front() == block->getTerminator();
  };
  if (isEmpty(branch.elseBlock()))
    return branch.thenBlock();
  return isEmpty(branch.thenBlock()) ? branch.elseBlock() : nullptr;
}

Value mlir::autodiff::addResult(scf::IfOp &branch, Value onTrue,
                                Value onFalse) {
  OpBuilder b(branch);
  Location loc = branch.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(onTrue.getType());
  auto extended = scf::IfOp::create(b, loc, types, branch.getCondition(),
                                    /*withElseRegion=*/true);
  extended->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to, value] :
       {std::tuple{&branch.getThenRegion(), &extended.getThenRegion(), onTrue},
        std::tuple{&branch.getElseRegion(), &extended.getElseRegion(),
                   onFalse}}) {
    if (!from->empty())
      to->takeBody(*from);
    Block &block = to->front();
    auto yield =
        dyn_cast_or_null<scf::YieldOp>(block.empty() ? nullptr : &block.back());
    if (!yield) {
      OpBuilder end = OpBuilder::atBlockEnd(&block);
      yield = scf::YieldOp::create(end, loc);
    }
    yield->insertOperands(yield->getNumOperands(), value);
  }
  branch->replaceAllUsesWith(
      extended.getResults().take_front(branch.getNumResults()));
  branch.erase();
  branch = extended;
  return extended.getResults().back();
}
