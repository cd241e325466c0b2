//===- ControlFlow.cpp - Loops, branches and returns ----------------------===//
#include "FunctionPrinter.h"

#include "Types.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Statement.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

/// Ends an iteration or a side of a branch with one assignment.
void FunctionPrinter::printYield(ArrayRef<std::string> targets,
                                 ValueRange values) {
  if (targets.empty())
    return flush();
  settle(SmallVector<Value>(values));
  SmallVector<std::string> texts;
  for (Value value : values)
    texts.push_back(reference(value, Use::Alone).text);
  flush();
  std::string begin = llvm::join(targets, ", ") + " = ";
  std::string all = llvm::join(texts, ", ");
  bool fits = 4 * depth + begin.size() + all.size() <= kLongestLine;
  if (texts.size() == 1 || fits)
    return line(begin + all);
  line(begin + "(");
  ++depth;
  for (StringRef text : texts)
    line(text + ",");
  --depth;
  line(")");
}

/// The text of a variable's value before a loop. Of two variables that begin as
/// one tensor, Triton's frontend takes the first for one that never changes if
/// it becomes the second, which another iteration has changed. So each begins
/// as a tensor of its own; `begun` has the texts of those before it.
std::string FunctionPrinter::beginning(Value start, llvm::StringSet<> &begun) {
  std::string text = reference(start, Use::Alone).text;
  if (elementOf(start) || begun.insert(text).second ||
      autodiff::mutation::isMade("source:two variables of one tensor"))
    return text;
  return "tl.where(True, " + text + ", " + text + ")";
}

static std::string attributesOf(scf::ForOp loop) {
  std::string text;
  auto add = [&](StringRef attribute, StringRef keyword) {
    Attribute value = loop->getAttr(attribute);
    if (auto number = dyn_cast_or_null<IntegerAttr>(value);
        number && !number.getType().isInteger(1))
      text += (", " + keyword + "=" + Twine(number.getInt())).str();
    else if (value)
      text += (", " + keyword + "=True").str();
  };
  add("tt.num_stages", "num_stages");
  add("tt.loop_unroll_factor", "loop_unroll_factor");
  add("tt.flatten", "flatten");
  add("tt.warp_specialize", "warp_specialize");
  add("tt.disallow_acc_multi_buffer", "disallow_acc_multi_buffer");
  add("llvm.loop_annotation", "disable_licm");
  return text;
}

std::string FunctionPrinter::bound(Value value) {
  std::optional<Attribute> number = elementOf(value);
  if (number && value.getType().isInteger(64) &&
      !autodiff::mutation::isMade("source:bounds in few bits"))
    return "tl.full([], " + literalText(*number) + ", tl.int64)";
  return reference(value, Use::Alone).text;
}

LogicalResult FunctionPrinter::print(scf::ForOp loop) {
  flush();
  llvm::StringSet<> begun;
  for (auto [start, argument, result, yielded] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getResults(), loop.getYieldedValues())) {
    std::string name = names.give(argument, findVariableOf(yielded));
    line(name + " = " + beginning(start, begun));
    call({argument, result}, name);
  }
  std::string counter = names.give(loop.getInductionVar(), "i");
  variables[loop.getInductionVar()] = counter;
  std::string from = bound(loop.getLowerBound()),
              to = bound(loop.getUpperBound()), step = bound(loop.getStep());
  std::string attributes = attributesOf(loop);
  std::string range = attributes.empty() ? "range(" : "tl.range(";
  std::string bounds = to;
  if (step != "1")
    bounds = from + ", " + to + ", " + step;
  else if (from != "0")
    bounds = from + ", " + to;
  line("for " + counter + " in " + range + bounds + attributes + "):");
  ++depth;
  size_t empty = lines.size();
  if (failed(printBlock(*loop.getBody())))
    return failure();
  SmallVector<std::string> targets;
  for (Value argument : loop.getRegionIterArgs())
    targets.push_back(variables[argument]);
  printYield(targets, loop.getYieldedValues());
  if (lines.size() == empty)
    line("pass");
  --depth;
  return success();
}

LogicalResult FunctionPrinter::print(scf::IfOp branch) {
  std::string condition = variable(branch.getCondition());
  flush();
  SmallVector<StringRef> wishes;
  if (branch.getNumResults() > 0)
    for (Value yielded : branch.thenYield().getOperands())
      wishes.push_back(findVariableOf(yielded));
  // Triton sorts the results of a branch by name.
  SmallVector<std::string> targets =
      names.giveSorted(branch.getResults(), wishes);
  if (autodiff::mutation::isMade("source:results of a branch in another order"))
    std::reverse(targets.begin(), targets.end());
  auto printSide = [&](Region &side) -> LogicalResult {
    ++depth;
    size_t empty = lines.size();
    if (!side.empty()) {
      if (failed(printBlock(side.front())))
        return failure();
      printYield(targets, side.front().getTerminator()->getOperands());
    }
    if (lines.size() == empty)
      line("pass");
    --depth;
    return success();
  };
  line("if " + condition + ":");
  if (failed(printSide(branch.getThenRegion())))
    return failure();
  if (!branch.getElseRegion().empty()) {
    line("else:");
    if (failed(printSide(branch.getElseRegion())))
      return failure();
  }
  for (auto [result, name] : llvm::zip_equal(branch.getResults(), targets))
    variables[result] = name;
  return success();
}

LogicalResult FunctionPrinter::print(scf::WhileOp loop) {
  flush();
  llvm::StringSet<> begun;
  for (auto [start, before] :
       llvm::zip_equal(loop.getInits(), loop.getBeforeArguments())) {
    std::string name = names.give(before);
    line(name + " = " + beginning(start, begun));
    call({before}, name);
  }
  scf::ConditionOp condition = loop.getConditionOp();
  for (auto [passed, after, result] : llvm::zip_equal(
           condition.getArgs(), loop.getAfterArguments(), loop.getResults())) {
    auto own = dyn_cast<BlockArgument>(passed);
    if (!own || own.getOwner() != loop.getBeforeBody())
      return fail(loop, "its condition hands on other values");
    call({after, result}, variables[own]);
  }
  size_t empty = lines.size();
  if (failed(printBlock(*loop.getBeforeBody())))
    return failure();
  std::string test = variable(condition.getCondition());
  if (lines.size() != empty || !waiting.empty())
    return fail(loop, "its condition takes several lines");
  line("while " + test + ":");
  ++depth;
  if (failed(printBlock(*loop.getAfterBody())))
    return failure();
  SmallVector<std::string> targets;
  for (Value argument : loop.getBeforeArguments())
    targets.push_back(variables[argument]);
  printYield(targets, loop.getYieldOp().getOperands());
  --depth;
  return success();
}

/// Prints blocks one after the other; programs may return between them.
LogicalResult FunctionPrinter::printReturns(tt::FuncOp kernel) {
  Block *block = &kernel.getBody().front();
  while (true) {
    if (failed(printBlock(*block)))
      return failure();
    Operation *end = block->getTerminator();
    auto branch = dyn_cast<cf::CondBranchOp>(end);
    if (auto last = dyn_cast<tt::ReturnOp>(end)) {
      printReturn(last, /*isEarly=*/false);
      return success();
    }
    auto early =
        branch ? dyn_cast<tt::ReturnOp>(branch.getTrueDest()->getTerminator())
               : tt::ReturnOp();
    if (!early || branch->getNumOperands() > 1)
      return fail(end);
    std::string condition = variable(branch.getCondition());
    flush();
    line("if " + condition + ":");
    ++depth;
    if (failed(printBlock(*branch.getTrueDest())))
      return failure();
    printReturn(early, /*isEarly=*/true);
    --depth;
    block = branch.getFalseDest();
  }
}
