//===- PythonPrinter.cpp - Kernels as Triton Python -----------------------===//
//
// Triton makes operations in the order in which Python evaluates a line. So
// that the same ones come in the same order, a value becomes part of another
// one's line only if what waits to be written is its operands, in order; else
// all that waits becomes lines first. Constants have no order.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Source/Python.h"

#include "Expression.h"
#include "Names.h"
#include "Types.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

/// Longer lines become two.
static constexpr size_t kLongestPart = 72;

namespace {
/// Functions of the printed module that kernels call: combine functions.
class Helpers {
public:
  /// The name of a function that does what `region` does; null if it has no
  /// form.
  std::optional<std::string> nameFor(Region &region, Names &names);
  /// That of one that calls a function of a library.
  std::string nameFor(tt::ExternElementwiseOp op, Names &names);
  StringRef getText() const { return text; }

private:
  std::string text;
  llvm::StringMap<std::string> known; // by body
};

/// Prints a function, or a combine function.
class FunctionPrinter {
public:
  FunctionPrinter(Helpers &helpers, Names &module, unsigned indent = 1)
      : helpers(helpers), names(module), moduleNames(module), depth(indent) {}

  LogicalResult printKernel(tt::FuncOp kernel, raw_ostream &os);
  /// The lines of a combine function, with names for its arguments.
  LogicalResult printCombine(Block &block, StringRef name, std::string &out);

private:
  /// A value that no line has been written for.
  struct Waiting {
    Value value;
    Text text;
    /// Of a tile that is extended: the smaller one, which will do where Triton
    /// extends it.
    std::optional<Text> smaller;
  };

  // Lines.
  void line(const llvm::Twine &text);
  void assign(Value value, const Text &text);
  void flush();

  // Values.
  Text reference(Value value, Use use, Operation *user);
  Text constantText(Value value, Attribute element, Use use);
  bool isWaiting(Value value) const;
  void settle(ArrayRef<Value> needed);
  std::string variable(Value value);
  /// Gives values a name, which is returned.
  std::string call(ArrayRef<Value> values, std::string name) {
    for (Value value : values)
      variables[value] = name;
    return name;
  }
  std::string bound(Value value);

  // Operations.
  LogicalResult printBlock(Block &block);
  LogicalResult print(Operation *op);
  LogicalResult print(scf::ForOp loop);
  LogicalResult print(scf::IfOp branch);
  LogicalResult print(scf::WhileOp loop);
  LogicalResult printCombining(Operation *op, Region &combine);
  LogicalResult printSplit(tt::SplitOp split);
  LogicalResult print(tt::ExternElementwiseOp call);
  LogicalResult print(tt::ElementwiseInlineAsmOp assembly);
  /// A line for an operation of several results, or a part of one.
  LogicalResult finish(Operation *op, std::string text);
  std::string arguments(Operation *op);
  LogicalResult printChoice(arith::SelectOp select);
  LogicalResult printPlain(Operation *op);
  LogicalResult printReturns(tt::FuncOp kernel);
  LogicalResult fail(Operation *op, const llvm::Twine &why = "");
  void printYield(ArrayRef<std::string> targets, ValueRange values);
  bool isImplicit(tt::SplatOp splat) const;

  Helpers &helpers;
  Names names;
  Names &moduleNames;
  unsigned depth;
  std::string lines;
  SmallVector<Waiting> waiting;
  llvm::DenseMap<Value, std::string> variables;
  // Single values that stand for tiles of themselves.
  llvm::DenseMap<Value, Value> implicit;
};
} // namespace

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

void FunctionPrinter::line(const llvm::Twine &text) {
  lines += std::string(4 * depth, ' ') + text.str() + "\n";
}

void FunctionPrinter::assign(Value value, const Text &text) {
  std::string name = names.give(value);
  variables[value] = name;
  line(name + " = " + text.text);
}

/// Writes a line for all that waits.
void FunctionPrinter::flush() {
  SmallVector<Waiting> all = std::move(waiting);
  waiting.clear();
  for (Waiting &each : all)
    assign(each.value, each.text);
}

LogicalResult FunctionPrinter::fail(Operation *op, const llvm::Twine &why) {
  return op->emitError("no form in Python for '")
         << op->getName() << "'" << (why.isTriviallyEmpty() ? "" : ": ") << why;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool FunctionPrinter::isWaiting(Value value) const {
  return llvm::any_of(waiting,
                      [&](const Waiting &each) { return each.value == value; });
}

/// Lets only what the next line needs, in this order, wait.
void FunctionPrinter::settle(ArrayRef<Value> needed) {
  SmallVector<Value> waited;
  for (Value value : needed) {
    auto single = implicit.find(value);
    Value meant = single == implicit.end() ? value : single->second;
    if (isWaiting(meant))
      waited.push_back(meant);
  }
  bool isTop = waited.size() <= waiting.size();
  for (size_t i = 0; isTop && i < waited.size(); ++i)
    isTop = waiting[waiting.size() - waited.size() + i].value == waited[i];
  if (!isTop)
    flush();
}

/// Whether Triton, which takes a literal for a float32 or, where it is too
/// large, for an integer or float of 64 bits, converts it to `number`.
static bool survivesConversion(Attribute number) {
  auto real = dyn_cast<FloatAttr>(number);
  if (!real || !real.getType().isF64())
    return true;
  APFloat narrow = real.getValue();
  bool isInexact = false;
  narrow.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                 &isInexact);
  return !isInexact;
}

Text FunctionPrinter::constantText(Value value, Attribute element, Use use) {
  std::string literal = literalText(element);
  Type type = getElementTypeOrSelf(value.getType());
  bool isOwn = type.isF32() || type.isInteger(32);
  bool isTile = isa<RankedTensorType>(value.getType());
  switch (use) {
  case Use::Joined:
    return {literal};
  case Use::Stored:
    if (survivesConversion(element))
      return {literal};
    return {"tl.full([], " + literal + ", " + typeText(type) + ")"};
  case Use::Passed:
    if (isOwn)
      return {literal};
    return {"tl.full([], " + literal + ", " + typeText(type) + ")"};
  case Use::Alone:
  case Use::Repeated:
    if (isOwn && !isTile)
      return {literal};
    return {"tl.full(" + shapeText(value.getType()) + ", " + literal + ", " +
            typeText(type) + ")"};
  }
}

/// Whether nothing but what Triton makes by itself comes between two
/// operations.
static bool isDirectlyBefore(Operation *op, Operation *user) {
  while ((op = op->getNextNode()) != user)
    if (!op || !(isa<tt::BroadcastOp, tt::SplatOp>(op) ||
                 op->hasTrait<OpTrait::ConstantLike>()))
      return false;
  return true;
}

/// Whether Triton extends an operand of `user` as the `tt.broadcast` does that
/// it comes from: the operands' axes, the longest of each, are the result's.
static bool extends(Operation *user, Value extended) {
  auto broadcast = extended.getDefiningOp<tt::BroadcastOp>();
  auto result = dyn_cast<RankedTensorType>(extended.getType());
  if (!joins(user) || !isDirectlyBefore(broadcast, user))
    return false;
  SmallVector<int64_t> longest(result.getRank(), 1);
  for (Value operand : user->getOperands()) {
    if (elementOf(operand) || operand.getDefiningOp<tt::SplatOp>())
      continue;
    if (auto other = operand.getDefiningOp<tt::BroadcastOp>();
        other && other->hasOneUse() && isDirectlyBefore(other, user))
      operand = other.getSrc();
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getRank() != result.getRank())
      return false;
    for (auto [length, own] : llvm::zip(longest, type.getShape()))
      length = std::max(length, own);
  }
  return ArrayRef(longest) == result.getShape();
}

/// What stands for `value` in the line of `user`; it no longer waits.
Text FunctionPrinter::reference(Value value, Use use, Operation *user) {
  if (std::optional<Attribute> element = elementOf(value))
    return constantText(value, *element, use);
  if (auto single = implicit.find(value); single != implicit.end())
    return reference(single->second, use, user);
  if (!waiting.empty() && isWaiting(value)) {
    auto place = llvm::find_if(
        waiting, [&](const Waiting &each) { return each.value == value; });
    bool isExtended = place->smaller && user && extends(user, value);
    Text text = isExtended ? *place->smaller : place->text;
    waiting.erase(place);
    return text;
  }
  auto known = variables.find(value);
  return {known == variables.end() ? "<unknown>" : known->second};
}

std::string FunctionPrinter::variable(Value value) {
  settle({value});
  return reference(value, Use::Alone, nullptr).text;
}

/// Whether a tile of a single value is one by itself where it is used.
bool FunctionPrinter::isImplicit(tt::SplatOp splat) const {
  auto isSingle = [](Value value) {
    return value.getDefiningOp<tt::SplatOp>() || elementOf(value);
  };
  return llvm::all_of(splat->getUsers(), [&](Operation *user) {
    return user->getBlock() == splat->getBlock() && joins(user) &&
           llvm::any_of(user->getOperands(), [&](Value other) {
             return other != splat.getResult() && !isSingle(other) &&
                    isa<RankedTensorType>(other.getType());
           });
  });
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult FunctionPrinter::printPlain(Operation *op) {
  auto uses = usesOf(op);
  if (!uses)
    return fail(op);
  SmallVector<Value> needed;
  for (auto [value, use] : *uses) {
    if (use == Use::Repeated && isWaiting(value))
      flush();
    needed.push_back(value);
  }
  settle(needed);
  std::optional<Text> smaller;
  std::optional<Text> text = expressionOf(op, [&](Value value, Use use) {
    Text operand = reference(value, use, op);
    if (isa<tt::BroadcastOp>(op))
      smaller = operand;
    return operand;
  });
  if (op->getNumResults() == 0 || op->getResult(0).use_empty()) {
    flush();
    line(text->text);
    return success();
  }
  Value result = op->getResult(0);
  bool isForOne = result.hasOneUse() &&
                  (*result.user_begin())->getBlock() == op->getBlock();
  if (isForOne && text->text.size() <= kLongestPart) {
    waiting.push_back({result, std::move(*text), std::move(smaller)});
    return success();
  }
  flush();
  assign(result, *text);
  return success();
}

/// A condition that is no tile chooses one of two tiles.
LogicalResult FunctionPrinter::printChoice(arith::SelectOp select) {
  flush();
  std::string chosen = names.give(select.getResult());
  line("if " + variable(select.getCondition()) + ":");
  ++depth;
  line(chosen + " = " +
       reference(select.getTrueValue(), Use::Alone, select).text);
  --depth;
  line("else:");
  ++depth;
  line(chosen + " = " +
       reference(select.getFalseValue(), Use::Alone, select).text);
  --depth;
  variables[select.getResult()] = chosen;
  return success();
}

LogicalResult FunctionPrinter::printSplit(tt::SplitOp split) {
  std::string tile = variable(split.getSrc());
  flush();
  std::string left = names.give(split.getOutLHS()),
              right = names.give(split.getOutRHS());
  line(left + ", " + right + " = tl.split(" + tile + ")");
  variables[split.getOutLHS()] = left;
  variables[split.getOutRHS()] = right;
  return success();
}

/// A reduction or a scan.
LogicalResult FunctionPrinter::printCombining(Operation *op, Region &combine) {
  std::optional<std::string> function = helpers.nameFor(combine, moduleNames);
  if (!function)
    return fail(op, "of its combine function");
  bool isOne = op->getNumOperands() == 1;
  std::string text = isOne ? arguments(op) : "(" + arguments(op) + ")";
  if (auto reduce = dyn_cast<tt::ReduceOp>(op)) {
    text = "tl.reduce(" + text + ", " + std::to_string(reduce.getAxis()) +
           ", " + *function + ")";
  } else {
    auto scan = cast<tt::ScanOp>(op);
    text = "tl.associative_scan(" + text + ", " +
           std::to_string(scan.getAxis()) + ", " + *function +
           (scan.getReverse() ? ", reverse=True)" : ")");
  }
  return finish(op, text);
}

std::string FunctionPrinter::arguments(Operation *op) {
  settle(SmallVector<Value>(op->getOperands()));
  SmallVector<std::string> operands;
  for (Value value : op->getOperands())
    operands.push_back(reference(value, Use::Alone, op).text);
  return llvm::join(operands, ", ");
}

LogicalResult FunctionPrinter::finish(Operation *op, std::string text) {
  if (op->getNumResults() == 1 && op->getResult(0).hasOneUse() &&
      (*op->getResult(0).user_begin())->getBlock() == op->getBlock()) {
    waiting.push_back({op->getResult(0), {text}, std::nullopt});
    return success();
  }
  flush();
  SmallVector<std::string> results;
  for (Value result : op->getResults())
    results.push_back(call({result}, names.give(result)));
  line(llvm::join(results, ", ") + " = " + text);
  return success();
}

LogicalResult FunctionPrinter::print(tt::ExternElementwiseOp op) {
  std::string function = helpers.nameFor(op, moduleNames);
  return finish(op, function + "(" + arguments(op) + ")");
}

/// A string of Python.
static std::string quoted(StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printEscapedString(text, os);
  std::string python;
  // LLVM writes `\0A`, Python `\x0A`.
  for (size_t i = 0; i < escaped.size(); ++i) {
    python += escaped[i];
    if (escaped[i] == '\\' && escaped[i + 1] == '\\')
      python += escaped[++i];
    else if (escaped[i] == '\\')
      python += "x";
  }
  return "\"" + python + "\"";
}

LogicalResult FunctionPrinter::print(tt::ElementwiseInlineAsmOp op) {
  std::string operands = arguments(op);
  SmallVector<std::string> types;
  for (Type type : op.getResultTypes())
    types.push_back(typeText(getElementTypeOrSelf(type)));
  std::string dtype =
      types.size() == 1 ? types[0] : "(" + llvm::join(types, ", ") + ")";
  return finish(op, "tl.inline_asm_elementwise(" + quoted(op.getAsmString()) +
                        ", " + quoted(op.getConstraints()) + ", [" + operands +
                        "], dtype=" + dtype +
                        ", is_pure=" + (op.getPure() ? "True" : "False") +
                        ", pack=" + std::to_string(op.getPackedElement()) +
                        ")");
}

/// Ends an iteration or a side of a branch: one assignment for all.
void FunctionPrinter::printYield(ArrayRef<std::string> targets,
                                 ValueRange values) {
  if (targets.empty())
    return flush();
  settle(SmallVector<Value>(values));
  SmallVector<std::string> texts;
  for (Value value : values)
    texts.push_back(reference(value, Use::Alone, nullptr).text);
  flush();
  line(llvm::join(targets, ", ") + " = " + llvm::join(texts, ", "));
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
  if (number && value.getType().isInteger(64))
    return "tl.full([], " + literalText(*number) + ", tl.int64)";
  return reference(value, Use::Alone, nullptr).text;
}

LogicalResult FunctionPrinter::print(scf::ForOp loop) {
  flush();
  for (auto [start, argument, result] : llvm::zip_equal(
           loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    std::string name = names.give(argument);
    line(name + " = " + reference(start, Use::Alone, loop).text);
    call({argument, result}, name);
  }
  std::string counter = names.give(loop.getInductionVar(), "i");
  variables[loop.getInductionVar()] = counter;
  std::string from = bound(loop.getLowerBound()),
              to = bound(loop.getUpperBound()), step = bound(loop.getStep());
  std::string attributes = attributesOf(loop);
  std::string range = attributes.empty() ? "range(" : "tl.range(";
  line("for " + counter + " in " + range + from + ", " + to + ", " + step +
       attributes + "):");
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
  SmallVector<std::string> targets;
  for (Value result : branch.getResults())
    targets.push_back(names.give(result));
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
  scf::ConditionOp condition = loop.getConditionOp();
  if (!llvm::equal(condition.getArgs(), loop.getBeforeArguments()))
    return fail(loop, "its condition hands on other values");
  flush();
  for (auto [start, before, after, result] :
       llvm::zip_equal(loop.getInits(), loop.getBeforeArguments(),
                       loop.getAfterArguments(), loop.getResults())) {
    std::string name = names.give(before);
    line(name + " = " + reference(start, Use::Alone, loop).text);
    call({before, after, result}, name);
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
  for (Value argument : loop.getAfterArguments())
    targets.push_back(variables[argument]);
  printYield(targets, loop.getYieldOp().getOperands());
  --depth;
  return success();
}

LogicalResult FunctionPrinter::print(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return elementOf(op->getResult(0)) ? success()
                                       : fail(op, "its elements differ");
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return print(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return print(branch);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return print(loop);
  if (auto reduce = dyn_cast<tt::ReduceOp>(op))
    return printCombining(op, reduce.getCombineOp());
  if (auto scan = dyn_cast<tt::ScanOp>(op))
    return printCombining(op, scan.getCombineOp());
  if (auto split = dyn_cast<tt::SplitOp>(op))
    return printSplit(split);
  if (auto call = dyn_cast<tt::ExternElementwiseOp>(op))
    return print(call);
  if (auto assembly = dyn_cast<tt::ElementwiseInlineAsmOp>(op))
    return print(assembly);
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isa<RankedTensorType>(select.getType()) &&
      !isa<RankedTensorType>(select.getCondition().getType()))
    return printChoice(select);
  if (auto splat = dyn_cast<tt::SplatOp>(op); splat && isImplicit(splat)) {
    if (isWaiting(splat.getSrc()) && !splat->hasOneUse())
      flush();
    implicit[splat.getResult()] = splat.getSrc();
    return success();
  }
  return printPlain(op);
}

LogicalResult FunctionPrinter::printBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(print(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Blocks one after the other, between which programs may return.
LogicalResult FunctionPrinter::printReturns(tt::FuncOp kernel) {
  Block *block = &kernel.getBody().front();
  while (true) {
    if (failed(printBlock(*block)))
      return failure();
    Operation *end = block->getTerminator();
    auto branch = dyn_cast<cf::CondBranchOp>(end);
    if (isa<tt::ReturnOp>(end)) {
      flush();
      return success();
    }
    if (!branch || branch->getNumOperands() > 1 ||
        !isa<tt::ReturnOp>(branch.getTrueDest()->getTerminator()))
      return fail(end);
    std::string condition = variable(branch.getCondition());
    flush();
    line("if " + condition + ":");
    ++depth;
    if (failed(printBlock(*branch.getTrueDest())))
      return failure();
    flush();
    line("return");
    --depth;
    block = branch.getFalseDest();
  }
}

/// What a launch has to keep to, in words.
static std::string divisibilityOf(tt::FuncOp kernel, BlockArgument argument) {
  auto by = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                 "tt.divisibility");
  return by ? ", a multiple of " + std::to_string(by.getInt()) : "";
}

LogicalResult FunctionPrinter::printKernel(tt::FuncOp kernel, raw_ostream &os) {
  if (kernel.getNumResults() > 0)
    return fail(kernel, "it returns something");
  SmallVector<std::string> parameters;
  for (BlockArgument argument : kernel.getArguments())
    parameters.push_back(call(
        {argument},
        names.give(argument, "arg" + std::to_string(argument.getArgNumber()))));
  if (failed(printReturns(kernel)))
    return failure();
  if (lines.empty())
    line("pass");
  for (auto [argument, name] :
       llvm::zip_equal(kernel.getArguments(), parameters))
    os << "# " << name << ": " << typeText(argument.getType())
       << divisibilityOf(kernel, argument) << "\n";
  os << "@triton.jit\ndef " << kernel.getSymName() << "("
     << llvm::join(parameters, ", ") << "):\n"
     << lines;
  return success();
}

LogicalResult FunctionPrinter::printCombine(Block &block, StringRef name,
                                            std::string &out) {
  SmallVector<std::string> parameters;
  for (BlockArgument argument : block.getArguments())
    parameters.push_back(
        call({argument},
             names.unique(std::string(1, 'a' + argument.getArgNumber() % 26))));
  // What is constant outside is written where it is used.
  if (failed(printBlock(block)))
    return failure();
  Operation *end = block.getTerminator();
  settle(SmallVector<Value>(end->getOperands()));
  SmallVector<std::string> results;
  for (Value value : end->getOperands()) {
    if (!elementOf(value) && !isWaiting(value) && !variables.count(value))
      return failure();
    results.push_back(reference(value, Use::Alone, end).text);
  }
  flush();
  line("return " + llvm::join(results, ", "));
  out = "@triton.jit\ndef " + name.str() + "(" + llvm::join(parameters, ", ") +
        "):\n" + lines;
  return success();
}

std::optional<std::string> Helpers::nameFor(Region &region, Names &names) {
  std::string body;
  if (!region.hasOneBlock() ||
      failed(FunctionPrinter(*this, names)
                 .printCombine(region.front(), "<name>", body)) ||
      StringRef(body).contains("<unknown>"))
    return std::nullopt;
  auto [place, isNew] = known.try_emplace(body);
  if (isNew) {
    place->second = names.unique("combine");
    size_t start = body.find("<name>");
    text += body.replace(start, 6, place->second) + "\n\n";
  }
  return place->second;
}

std::string Helpers::nameFor(tt::ExternElementwiseOp op, Names &names) {
  auto dtype = [](Type type) { return typeText(getElementTypeOrSelf(type)); };
  SmallVector<std::string> parameters, types;
  for (Value operand : op->getOperands()) {
    parameters.push_back(std::string(1, 'a' + parameters.size()));
    types.push_back(dtype(operand.getType()));
  }
  std::string all = llvm::join(parameters, ", ");
  std::string body =
      "(" + all + ", _semantic=None):\n    return tl.core.extern_elementwise(" +
      quoted(op.getLibname()) + ", " + quoted(op.getLibpath()) + ", [" + all +
      "], {(" + llvm::join(types, ", ") + ",): (" + quoted(op.getSymbol()) +
      ", " + dtype(op.getType()) +
      ")}, is_pure=" + (op.getPure() ? "True" : "False") +
      ", _semantic=_semantic)\n";
  auto [place, isNew] = known.try_emplace(body);
  if (isNew) {
    place->second = names.unique(op.getSymbol().ltrim('_'));
    text += "@tl.core.extern\ndef " + place->second + body + "\n\n";
  }
  return place->second;
}

LogicalResult mlir::autodiff::printPython(ModuleOp module, raw_ostream &os) {
  Names names;
  Helpers helpers;
  std::string kernels;
  llvm::raw_string_ostream body(kernels);
  for (auto kernel : module.getOps<tt::FuncOp>())
    if (kernel.isPublic())
      names.unique(kernel.getSymName());
  for (auto kernel : module.getOps<tt::FuncOp>()) {
    if (!kernel.isPublic())
      continue;
    body << "\n\n";
    if (failed(FunctionPrinter(helpers, names).printKernel(kernel, body)))
      return failure();
  }
  os << "import triton\nimport triton.language as tl\n";
  if (!helpers.getText().empty())
    os << "\n\n" << helpers.getText().rtrim() << "\n";
  os << kernels;
  return success();
}
