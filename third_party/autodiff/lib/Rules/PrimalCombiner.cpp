//===- PrimalCombiner.cpp - The primal's combine functions ----------------===//
#include "PrimalCombiner.h"

#include "autodiff/Rules/TileFunction.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::autodiff;

SmallVector<Value> mlir::autodiff::scanWith(Region &region, ValueRange tiles,
                                            unsigned axis, bool reverse,
                                            Differentiation &in) {
  IRMapping mapping;
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(region, captures);
  for (Value capture : captures)
    mapping.map(capture, in.primal(capture));
  auto inlineRegion = [&](OpBuilder &b, ValueRange running, ValueRange next) {
    // A scan from the end has new elements on the left.
    if (reverse)
      std::swap(running, next);
    Block &block = region.front();
    mapping.map(block.getArguments().take_front(tiles.size()), running);
    mapping.map(block.getArguments().drop_front(tiles.size()), next);
    for (Operation &op : block.without_terminator())
      b.clone(op, mapping);
    return llvm::map_to_vector(
        block.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  return scanWith(in.builder, in.loc(), tiles, axis, reverse, inlineRegion);
}

LogicalResult mlir::autodiff::pushPairs(
    Operation *op, Region &region, Tangents &tangents,
    llvm::function_ref<SmallVector<Value>(ValueRange tiles, CombineBuilder)>
        combine) {
  FailureOr<TileFunction> function =
      TileFunction::lift(region, /*shape=*/std::nullopt);
  if (failed(function))
    return failure();
  if (function->findActiveCapture(tangents))
    return op->emitError("no forward-mode rule for a combine function that "
                         "uses a differentiated value from outside; combine it "
                         "with the elements before or after");
  // Equal shares would depend on the order of elements.
  if (!mutation::isMade("tangents:even shares in pairs"))
    function->preferFirstOnTies();
  unsigned count = op->getNumOperands();
  llvm::BitVector members =
      function->findMembers(tangents.findActive(op->getOperands()));
  SmallVector<Value> tiles;
  for (Value source : op->getOperands())
    tiles.push_back(tangents.primal(source));
  for (unsigned index : members.set_bits())
    tiles.push_back(tangents.getOrZero(op->getOperand(index)));

  LogicalResult result = success();
  auto combinePairs = [&](OpBuilder &, ValueRange running, ValueRange next) {
    SmallVector<Value> arguments, moving;
    for (ValueRange side : {running, next}) {
      llvm::append_range(arguments, side.take_front(count));
      side = side.drop_front(count);
      for (unsigned index = 0; index < count; ++index) {
        moving.push_back(members[index] ? side.front() : Value());
        side = side.drop_front(members[index]);
      }
    }
    auto pairs = function->push(tangents, arguments, moving);
    result = failed(pairs) ? failure() : success();
    // An error was reported; the result just needs the right types.
    if (failed(pairs))
      return SmallVector<Value>(running);
    SmallVector<Value> combined = pairs->values;
    for (unsigned index : members.set_bits()) {
      Value tangent = pairs->tangents[index];
      combined.push_back(
          tangent ? tangent
                  : tangents.constant(pairs->values[index].getType(), 0.0));
    }
    return combined;
  };
  SmallVector<Value> combined = combine(tiles, combinePairs);
  tangents.primals.map(op->getResults(),
                       ArrayRef<Value>(combined).take_front(count));
  for (auto [index, tangent] : llvm::zip_equal(
           members.set_bits(), ArrayRef<Value>(combined).drop_front(count)))
    tangents.add(op->getResult(index), tangent);
  return result;
}
