//===- LiveTiles.cpp - How much is held of tiles at a time ----------------===//
#include "autodiff/Analysis/LiveTiles.h"

using namespace mlir;
using namespace mlir::autodiff;

double LiveTiles::countMost(triton::FuncOp kernel, Operation *first,
                            Operation *last) {
  this->first = first;
  this->last = last;
  isCounted = !last;
  visit(kernel.getBody().front());
  return most;
}

void LiveTiles::hold(Value value, unsigned form, double size) {
  if (!live[value].try_emplace(form, size).second)
    return;
  held += size;
  take(0);
}

void LiveTiles::define(Value value) {
  for (auto [form, size] : live.lookup(value))
    held -= size;
  live.erase(value);
}

void LiveTiles::visit(Operation *op) {
  if (op == first || op == last)
    isCounted = op == last;
  take(0);
  for (Value result : op->getResults())
    define(result);
  if (op->getNumRegions() > 0)
    useFromInside(op);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      visit(block);
  use(op);
}

void LiveTiles::visit(Block &block) {
  for (Operation &op : llvm::reverse(block))
    visit(&op);
  for (Value argument : block.getArguments())
    define(argument);
}
