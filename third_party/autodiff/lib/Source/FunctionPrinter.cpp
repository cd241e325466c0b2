//===- FunctionPrinter.cpp - The lines of a function ----------------------===//
#include "FunctionPrinter.h"

#include "Types.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

/// Longer subexpressions get a line of their own.
static constexpr size_t kLongestPart = 72;

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

void FunctionPrinter::line(const llvm::Twine &text) {
  announced.push_back(text.str());
  for (StringRef each : announced)
    lines += (std::string(4 * depth, ' ') + each + "\n").str();
  announced.clear();
}

void FunctionPrinter::assign(Value value, const Text &text) {
  std::string name = names.give(value);
  variables[value] = name;
  line(name + " = " + text.text);
}

/// Writes a line for each value that waits.
void FunctionPrinter::flush() {
  SmallVector<Waiting> all = std::move(waiting);
  SmallVector<std::string> later = std::move(announced);
  waiting.clear();
  for (Waiting &each : all) {
    announced = std::move(each.comment);
    assign(each.value, each.text);
  }
  announced = std::move(later);
}

/// Keeps a value until the line that it will be a part of.
void FunctionPrinter::wait(Value value, Text text) {
  waiting.push_back({value, std::move(text), std::exchange(announced, {})});
}

LogicalResult FunctionPrinter::fail(Operation *op, const llvm::Twine &why) {
  return op->emitError("no form in Python for '")
         << op->getName() << "'" << (why.isTriviallyEmpty() ? "" : ": ") << why;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FunctionPrinter::Waiting *FunctionPrinter::findWaiting(Value value) {
  auto *place = llvm::find_if(
      waiting, [&](const Waiting &each) { return each.value == value; });
  return place == waiting.end() ? nullptr : place;
}

/// Lets only the values that the next line needs wait, in this order; writes
/// lines for the others.
void FunctionPrinter::settle(ArrayRef<Value> needed) {
  SmallVector<Value> waited;
  for (Value value : needed) {
    auto single = implicit.find(value);
    Value meant = single == implicit.end() ? value : single->second;
    if (findWaiting(meant))
      waited.push_back(meant);
  }
  bool isTop = waited.size() <= waiting.size();
  for (size_t i = 0; isTop && i < waited.size(); ++i)
    isTop = waiting[waiting.size() - waited.size() + i].value == waited[i];
  if (!isTop)
    flush();
}

/// Whether Triton's conversion of a literal gives `number` exactly. Triton
/// takes a literal for a float32, or if it is too large, for a 64-bit integer
/// or float.
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
    [[fallthrough]];
  case Use::Object:
    return {"tl.full(" + shapeText(value.getType()) + ", " + literal + ", " +
            typeText(type) + ")"};
  }
}

/// The text for `value` in a line; it then no longer waits.
Text FunctionPrinter::reference(Value value, Use use) {
  if (std::optional<Attribute> element = elementOf(value))
    return constantText(value, *element, use);
  if (auto single = implicit.find(value); single != implicit.end())
    return reference(single->second, use);
  if (Waiting *place = findWaiting(value)) {
    Text text = place->text;
    SmallVector<std::string> comment = std::move(place->comment);
    llvm::append_range(comment, announced);
    announced = std::move(comment);
    waiting.erase(place);
    return text;
  }
  auto known = variables.find(value);
  return {known == variables.end() ? "<unknown>" : known->second};
}

std::string FunctionPrinter::variable(Value value) {
  settle({value});
  return reference(value, Use::Alone).text;
}

/// Whether Triton broadcasts this mask of an access to its addresses.
static bool isMaskOf(Value value, Operation *access) {
  return llvm::TypeSwitch<Operation *, bool>(access)
      .Case<tt::LoadOp, tt::StoreOp, tt::AtomicRMWOp>([&](auto op) {
        return llvm::count(op->getOperands(), value) == 1 &&
               op.getMask() == value;
      })
      .Default([](Operation *) { return false; });
}

/// Whether Triton itself broadcasts for `user` what `op` broadcasts, a scalar
/// or a smaller tile. Then another operand is a tile, and the longest axes of
/// all operands, without broadcasts, are the result's.
static bool extends(Operation *user, Operation *op) {
  if (!joins(user))
    return false;
  auto result = cast<RankedTensorType>(user->getResult(0).getType());
  SmallVector<int64_t> longest(result.getRank(), 0);
  for (Value operand : user->getOperands()) {
    if (elementOf(operand) || operand.getDefiningOp<tt::SplatOp>())
      continue;
    if (auto broadcast = operand.getDefiningOp<tt::BroadcastOp>())
      operand = broadcast.getSrc();
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getRank() != result.getRank())
      return false;
    for (auto [length, own] : llvm::zip(longest, type.getShape()))
      length = std::max(length, own);
  }
  // Beside a scalar, a broadcast tile may be written without the broadcast.
  return isa<tt::SplatOp>(op) ? longest.front() > 0
                              : ArrayRef(longest) == result.getShape();
}

/// Whether only operations that Triton adds by itself are between a tile and
/// its first use, or the operation that contains it.
static bool isDirectlyBeforeUse(Operation *op) {
  Block *block = op->getBlock();
  auto isNext = [&](Operation *next) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return block->findAncestorOpInBlock(*user) == next;
    });
  };
  Operation *next = op->getNextNode();
  while (next && !isNext(next) &&
         (isa<tt::BroadcastOp, tt::SplatOp>(next) ||
          next->hasTrait<OpTrait::ConstantLike>()))
    next = next->getNextNode();
  return next && isNext(next) && (op->hasOneUse() || next->getNumRegions() > 0);
}

/// Attributes that promise something about a result's elements, and the
/// functions of Triton that set them.
constexpr std::pair<StringRef, StringRef> kHints[] = {
    {"tt.contiguity", "max_contiguous"},
    {"tt.constancy", "max_constancy"},
    {"tt.divisibility", "multiple_of"}};

static bool hasHints(Operation *op) {
  return llvm::any_of(kHints,
                      [&](auto hint) { return op->hasAttr(hint.first); });
}

/// The text of `op`, with the promises about its elements.
static Text hinted(Operation *op, Text text) {
  for (auto [attribute, function] : kHints) {
    auto numbers = op->getAttrOfType<DenseIntElementsAttr>(attribute);
    if (!numbers)
      continue;
    auto each = llvm::map_range(numbers.getValues<APInt>(), [](APInt number) {
      return std::to_string(number.getZExtValue());
    });
    text = {("tl." + function + "(" + text.text + ", [" +
             llvm::join(each, ", ") + "])")
                .str()};
  }
  return text;
}

/// Whether Triton broadcasts a scalar or a smaller tile by itself wherever it
/// is used. Also inside of loops, since Triton hoists loop invariants. Where a
/// scalar is broadcast makes no difference later.
static bool isImplicit(Operation *op) {
  Value tile = op->getResult(0);
  auto isExtended = [&](Operation *user) {
    return op->getBlock()->findAncestorOpInBlock(*user) &&
           (isMaskOf(tile, user) || extends(user, op));
  };
  return !hasHints(op) && llvm::all_of(tile.getUsers(), isExtended) &&
         (isa<tt::SplatOp>(op) || isDirectlyBeforeUse(op));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Whether a result may become part of the one line that uses it.
static bool isForOneLine(Value result) {
  return result.hasOneUse() &&
         (*result.user_begin())->getBlock() == result.getParentBlock();
}

LogicalResult FunctionPrinter::printPlain(Operation *op) {
  auto uses = usesOf(op);
  if (!uses)
    return fail(op);
  SmallVector<Value> needed;
  for (auto [value, use] : *uses) {
    if (use == Use::Repeated && findWaiting(value))
      flush();
    needed.push_back(value);
  }
  settle(needed);
  std::optional<Text> text = expressionOf(
      op, [&](Value value, Use use) { return reference(value, use); });
  if (op->getNumResults() == 0 || op->getResult(0).use_empty()) {
    flush();
    line(text->text);
    return success();
  }
  text = hinted(op, std::move(*text));
  Value result = op->getResult(0);
  if (isForOneLine(result) && text->text.size() <= kLongestPart) {
    wait(result, std::move(*text));
    return success();
  }
  flush();
  assign(result, *text);
  return success();
}

/// A scalar condition chooses between two tiles, or descriptors.
LogicalResult FunctionPrinter::printChoice(arith::SelectOp select) {
  flush();
  std::string chosen = names.give(select.getResult());
  line("if " + variable(select.getCondition()) + ":");
  ++depth;
  line(chosen + " = " + reference(select.getTrueValue(), Use::Alone).text);
  --depth;
  line("else:");
  ++depth;
  line(chosen + " = " + reference(select.getFalseValue(), Use::Alone).text);
  --depth;
  variables[select.getResult()] = chosen;
  return success();
}

/// The function of Triton's library that reduces or scans in the same way;
/// empty if there is none. Library functions first convert numbers of fewer
/// than 32 bits.
static StringRef findInLibrary(Operation *op, Region &combine) {
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (op->getNumOperands() > 1 || element.getIntOrFloatBitWidth() < 32)
    return "";
  Block &block = combine.front();
  Operation &only = block.front();
  if (only.getNextNode() != block.getTerminator() ||
      only.getOperands() != block.getArguments())
    return "";
  bool isScan = isa<tt::ScanOp>(op);
  return llvm::TypeSwitch<Operation *, StringRef>(&only)
      .Case<arith::AddFOp, arith::AddIOp>(
          [&](auto) { return isScan ? "cumsum" : "sum"; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [&](auto) { return isScan ? "cumprod" : ""; })
      .Case<arith::MaxNumFOp, arith::MaxSIOp>(
          [&](auto) { return isScan ? "" : "max"; })
      .Case<arith::MinNumFOp, arith::MinSIOp>(
          [&](auto) { return isScan ? "" : "min"; })
      .Default([](Operation *) { return ""; });
}

/// A reduction or a scan.
LogicalResult FunctionPrinter::printCombining(Operation *op, Region &combine) {
  auto scan = dyn_cast<tt::ScanOp>(op);
  std::string axis =
      std::to_string(scan ? scan.getAxis() : cast<tt::ReduceOp>(op).getAxis());
  std::string end = scan && scan.getReverse() ? ", reverse=True)" : ")";
  if (StringRef name = findInLibrary(op, combine); !name.empty())
    return finish(
        op, ("tl." + name + "(" + arguments(op) + ", " + axis + end).str());
  std::optional<std::string> function =
      helpers.nameFor(combine, "combine", moduleNames);
  if (!function)
    return fail(op, "of its combine function");
  bool isOne = op->getNumOperands() == 1;
  std::string text = isOne ? arguments(op) : "(" + arguments(op) + ")";
  StringRef called = scan ? "tl.associative_scan(" : "tl.reduce(";
  return finish(op,
                (called + text + ", " + axis + ", " + *function + end).str());
}

std::string FunctionPrinter::arguments(Operation *op, Use use) {
  settle(SmallVector<Value>(op->getOperands()));
  SmallVector<std::string> operands;
  for (Value value : op->getOperands())
    operands.push_back(reference(value, use).text);
  return llvm::join(operands, ", ");
}

LogicalResult FunctionPrinter::finish(Operation *op, std::string text) {
  text = hinted(op, {std::move(text)}).text;
  if (op->getNumResults() == 1 && isForOneLine(op->getResult(0))) {
    wait(op->getResult(0), {text});
    return success();
  }
  flush();
  if (op->use_empty()) {
    line(text);
    return success();
  }
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

LogicalResult FunctionPrinter::print(tt::MapElementwiseOp map) {
  std::optional<std::string> function =
      helpers.nameFor(map.getScalarOp(), "of_element", moduleNames);
  if (!function)
    return fail(map, "of its function");
  std::string text = "tl.map_elementwise(" + *function + ", " + arguments(map);
  if (map.getPack() == 1)
    return finish(map, text + ")");
  // Triton returns a tuple, even of one tile.
  StringRef end = map->getNumResults() == 1 ? ")[0]" : ")";
  return finish(map,
                text + ", pack=" + std::to_string(map.getPack()) + end.str());
}

LogicalResult FunctionPrinter::print(Operation *op) {
  llvm::append_range(announced, comments.take(op, kLongestLine - 4 * depth));
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
  if (auto map = dyn_cast<tt::MapElementwiseOp>(op))
    return print(map);
  if (auto split = dyn_cast<tt::SplitOp>(op))
    return finish(split, "tl.split(" + arguments(split) + ")");
  if (auto call = dyn_cast<tt::CallOp>(op))
    return print(call);
  if (auto call = dyn_cast<tt::ExternElementwiseOp>(op))
    return print(call);
  if (auto assembly = dyn_cast<tt::ElementwiseInlineAsmOp>(op))
    return print(assembly);
  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isa<RankedTensorType, tt::TensorDescType>(select.getType()) &&
      !isa<RankedTensorType>(select.getCondition().getType()))
    return printChoice(select);
  if (isa<tt::SplatOp, tt::BroadcastOp>(op) && isImplicit(op)) {
    Value source = op->getOperand(0);
    if (findWaiting(source) && !op->hasOneUse())
      flush();
    implicit[op->getResult(0)] = source;
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
