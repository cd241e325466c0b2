//===- Plan.cpp - What to launch for a gradient ---------------------------===//
#include "ExprText.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult mlir::autodiff::parseItems(OpAsmParser &parser, Region &body) {
  if (parser.parseRegion(body))
    return failure();
  if (body.empty())
    body.emplaceBlock();
  return success();
}

void mlir::autodiff::printItems(OpAsmPrinter &printer, Operation *,
                                Region &body) {
  printer.printRegion(body);
}

ParseResult mlir::autodiff::parseNumbers(OpAsmParser &parser,
                                         ArrayAttr &numbers) {
  SmallVector<ExprAttr> list;
  if (parseList(parser, list))
    return failure();
  numbers = ArrayAttr::get(parser.getContext(),
                           SmallVector<Attribute>(list.begin(), list.end()));
  return success();
}

void mlir::autodiff::printNumbers(OpAsmPrinter &printer, Operation *,
                                  ArrayAttr numbers) {
  printList<ExprAttr>(printer, llvm::to_vector(numbers.getAsRange<ExprAttr>()));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The position of an item in a plan: by kind, then by number.
static std::pair<int, unsigned> placeOf(Operation *item) {
  return llvm::TypeSwitch<Operation *, std::pair<int, unsigned>>(item)
      .Case([](RearrangedOp) { return std::pair(0, 0u); })
      .Case([](AssumeOp) { return std::pair(1, 0u); })
      .Case([](OfferOp) { return std::pair(2, 0u); })
      .Case([](StoredOp) { return std::pair(3, 0u); })
      .Case([](AccessedOp op) {
        return std::pair(4, op.getAccesses().getArgument());
      })
      .Case([](LiveOp) { return std::pair(5, 0u); })
      .Case([](BufferOp op) { return std::pair(6, op.getNumber()); })
      .Case([](HostSizeOp op) { return std::pair(7, op.getNumber()); })
      .Case([](GradientOp op) {
        return std::pair(8, op.getGradient().getArgument());
      })
      .Case([](CheckOp op) { return std::pair(9, op.getOperand().getIndex()); })
      .Case([](LaunchOp) { return std::pair(10, 0u); })
      .Case([](StepOp op) { return std::pair(11, unsigned(op.getStage())); })
      .Default(std::pair(12, 0u)); // what to ask for next
}

/// Whether two items describe the same thing.
static bool clash(Operation *one, Operation *other) {
  if (auto check = dyn_cast<CheckOp>(one))
    if (auto another = dyn_cast<CheckOp>(other))
      return check.getOperand() == another.getOperand();
  if (auto launch = dyn_cast<LaunchOp>(one))
    if (auto another = dyn_cast<LaunchOp>(other))
      return launch.getKernelAttr() == another.getKernelAttr();
  return isa<RearrangedOp, AccessedOp, BufferOp, HostSizeOp, GradientOp>(one) &&
         placeOf(one) == placeOf(other);
}

void PlanOp::build(OpBuilder &, OperationState &state) {
  state.addRegion()->emplaceBlock();
}

PlanOp PlanOp::of(ModuleOp module) {
  auto plans = module.getOps<PlanOp>();
  return plans.empty() ? PlanOp() : *plans.begin();
}

PlanOp PlanOp::getOrCreate(ModuleOp module) {
  if (PlanOp plan = of(module))
    return plan;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  return create(builder, module.getLoc());
}

void PlanOp::insert(Operation *item) {
  Block &block = getBody().front();
  auto next = llvm::find_if(
      block, [&](Operation &other) { return placeOf(item) < placeOf(&other); });
  block.getOperations().insert(next, item);
}

LaunchOp PlanOp::findLaunch(StringRef kernel) {
  for (auto launch : getItems<LaunchOp>())
    if (launch.getKernel() == kernel)
      return launch;
  return {};
}

LaunchOp PlanOp::launch(FunctionOpInterface kernel) {
  if (LaunchOp known = findLaunch(kernel.getName()))
    return known;
  LaunchOp previous;
  for (Operation *op = kernel->getPrevNode(); op && !previous;
       op = op->getPrevNode())
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      previous = findLaunch(function.getName());
  auto launches = getItems<LaunchOp>();
  LaunchOp first = launches.empty() ? LaunchOp() : *launches.begin();
  auto launch = add<LaunchOp>(kernel.getName());
  if (previous)
    launch->moveAfter(previous);
  else if (first)
    launch->moveBefore(first);
  return launch;
}

/// The item that describes an operand.
static Operation *findDescription(PlanOp plan, OperandAttr operand) {
  auto isAbout = [&](Operation &item) {
    unsigned index = operand.getIndex();
    return llvm::TypeSwitch<Operation *, bool>(&item)
        .Case([&](BufferOp op) {
          return operand.getKind() == OperandKind::Buffer &&
                 op.getNumber() == index;
        })
        .Case([&](GradientOp op) {
          return operand.getKind() == OperandKind::Gradient &&
                 op.getGradient().getArgument() == index;
        })
        .Case([&](HostSizeOp op) {
          return operand.getKind() == OperandKind::Size &&
                 op.getNumber() == index;
        })
        .Default(false);
  };
  Block &block = plan.getBody().front();
  auto found = llvm::find_if(block, isAbout);
  return found == block.end() ? nullptr : &*found;
}

Attribute PlanOp::getDescription(OperandAttr operand) {
  Operation *item = findDescription(*this, operand);
  if (!item)
    return {};
  return llvm::TypeSwitch<Operation *, Attribute>(item)
      .Case([](BufferOp op) { return op.getBuffer(); })
      .Case([](GradientOp op) { return op.getGradient(); })
      .Case([](HostSizeOp op) { return op.getValue(); });
}

void PlanOp::describe(OperandAttr operand, Attribute description) {
  if (Operation *known = findDescription(*this, operand))
    known->erase();
  if (auto buffer = dyn_cast<BufferAttr>(description))
    add<BufferOp>(operand.getIndex(), buffer);
  else if (auto gradient = dyn_cast<GradientAttr>(description))
    add<GradientOp>(gradient);
  else
    add<HostSizeOp>(operand.getIndex(), cast<ExprAttr>(description));
}

void PlanOp::require(OperandAttr operand, CheckAttr check) {
  for (auto known : getItems<CheckOp>())
    if (known.getOperand() == operand)
      return known.setFactAttr(check);
  add<CheckOp>(operand, check);
}

//===----------------------------------------------------------------------===//
// What has to hold
//===----------------------------------------------------------------------===//

LogicalResult PlanOp::verify() {
  auto module = cast<ModuleOp>((*this)->getParentOp());
  if (of(module) != *this)
    return emitOpError("is the second one of its module");
  SmallVector<Operation *> items;
  for (Operation &item : getBody().front()) {
    if (!isa<RearrangedOp, AssumeOp, OfferOp, StoredOp, AccessedOp, LiveOp,
             BufferOp, HostSizeOp, GradientOp, CheckOp, LaunchOp, StepOp,
             NextOp>(item))
      return item.emitOpError("is no item of a plan");
    for (Operation *earlier : items)
      if (clash(earlier, &item))
        return item.emitOpError("repeats what this plan says already");
    items.push_back(&item);
  }
  return success();
}

LogicalResult RearrangedOp::verify() {
  return getLaunch().getGrid().size() == 3
             ? success()
             : emitOpError("needs a grid of three numbers");
}

LogicalResult LaunchOp::verify() {
  if (ArrayAttr grid = getGridAttr(); grid && grid.size() != 3)
    return emitOpError("needs a grid of three numbers");
  if (DictionaryAttr options = getOptionsAttr())
    for (NamedAttribute option : options)
      if (!isa<IntegerAttr>(option.getValue()))
        return emitOpError("has an option that is no integer: ")
               << option.getName();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto lookUp = [&](FlatSymbolRefAttr name) {
    return symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, name);
  };
  FunctionOpInterface kernel = lookUp(getKernelAttr());
  if (!kernel)
    return emitOpError("is of a kernel that the module does not have: ")
           << getKernelAttr();
  auto plan = cast<PlanOp>((*this)->getParentOp());
  for (unsigned place = 0; place < kernel.getNumArguments(); ++place) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(place, kOperandAttr);
    bool isMemory = operand && (operand.getKind() == OperandKind::Buffer ||
                                operand.getKind() == OperandKind::Size);
    if (isMemory && !plan.getDescription(operand))
      return emitOpError("is of a kernel with an operand that the plan does "
                         "not describe: ")
             << operand;
  }
  if (!getInPlaceOfAttr())
    return success();
  if (!lookUp(getInPlaceOfAttr()))
    return emitOpError("is in place of a kernel that the module does not "
                       "have: ")
           << getInPlaceOfAttr();
  return getWhen() ? success()
                   : emitOpError("is in place of another one at no time");
}
