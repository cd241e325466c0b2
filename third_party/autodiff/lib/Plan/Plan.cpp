//===- Plan.cpp - The derived kernels of a module as a plan ---------------===//
#include "autodiff/Plan/Plan.h"

#include "Explain.h"
#include "PlanJson.h"
#include "autodiff/Analysis/FloatFlow.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/StoredStates.h"
#include "autodiff/Analysis/Writes.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Dump.h"
#include "autodiff/Target/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

std::string mlir::autodiff::spellType(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto pointer = dyn_cast<triton::PointerType>(type))
    os << "ptr<" << spellType(pointer.getPointeeType()) << ">";
  else
    os << type;
  return text;
}

std::string mlir::autodiff::printKernel(triton::FuncOp kernel) {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(kernel->getParentOp()->getLoc());
  auto copy = cast<triton::FuncOp>(kernel->clone());
  module->push_back(copy);
  kernel.walk([&](triton::CallOp call) {
    auto callee =
        SymbolTable::lookupNearestSymbolFrom(kernel, call.getCalleeAttr());
    module->push_back(callee->clone());
  });
  dropMarks(copy);
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, getPrintingFlags());
  return text;
}

namespace {
class PlanPrinter {
public:
  explicit PlanPrinter(ModuleOp module);

  llvm::json::Value print();

private:
  Object describe(LaunchOp launch);
  Array describeArguments();
  Array describeBackwards();
  Array describeGradients();
  Array describeChecks();
  Array describeHazards();
  Array describeHistory();
  Array describeSteps();
  Array findSnapshots();
  void describeRearrangement(Object &description);

  triton::FuncOp primal;
  PlanOp plan;
  LaunchOp forward, counting;
  /// In launch order, without the variants, which come behind the kernel they
  /// replace.
  SmallVector<LaunchOp> backwards, tallying;
  std::map<unsigned, bool> loaded, stored;
};
} // namespace

PlanPrinter::PlanPrinter(ModuleOp module)
    : primal(getPrimal(module)), plan(PlanOp::getOrCreate(module)) {
  for (auto launch : plan.getItems<LaunchOp>()) {
    llvm::StringRef role = getRole(getKernel(launch));
    if (role == "forward")
      forward = launch;
    else if (role == "count")
      counting = launch;
    else if (role == "backward")
      backwards.push_back(launch);
    else if (role != "variant")
      tallying.push_back(launch);
  }
}

static Array describe(ArrayAttr accesses) {
  Array list;
  for (auto access : accesses.getAsRange<DictionaryAttr>())
    list.push_back(
        Object{{"argument", access.getAs<IntegerAttr>("argument").getInt()},
               {"op", access.getAs<StringAttr>("op").getValue()},
               {"position", access.getAs<StringAttr>("position").getValue()}});
  return list;
}

static Object describe(DictionaryAttr options) {
  Object list;
  for (NamedAttribute option : options)
    list[option.getName().getValue()] =
        cast<IntegerAttr>(option.getValue()).getInt();
  return list;
}

/// Why what a kernel writes stays inside of memory, each operand and reason
/// once.
static Array describeWrites(triton::FuncOp kernel, PlanOp plan) {
  std::set<std::pair<unsigned, Inside>> found;
  for (const Write &write : findWrites(kernel, plan))
    found.insert({write.operand, write.inside});
  Array list;
  for (auto [operand, inside] : found)
    // Through addresses that it has loaded, the user's kernel writes to memory
    // that nobody knows.
    if (operand < kernel.getNumArguments())
      list.push_back(
          Object{{"operand", operand}, {"inside", stringifyInside(inside)}});
  return list;
}

Object PlanPrinter::describe(LaunchOp launch) {
  triton::FuncOp kernel = getKernel(launch);
  Array operands;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    operands.push_back(Object{{"kind", stringifyOperandKind(operand.getKind())},
                              {"index", operand.getIndex()}});
  }
  Object description{{"name", launch.getKernel()},
                     {"ttir", printKernel(kernel)},
                     {"grid", "primal"},
                     {"operands", std::move(operands)},
                     {"writes", describeWrites(kernel, plan)}};
  if (ArrayAttr grid = launch.getGridAttr())
    description["grid"] = toJSON(grid);
  if (DictionaryAttr options = launch.getOptionsAttr())
    description["options"] = ::describe(options);
  if (ExprAttr when = launch.getWhenAttr())
    description["when"] = toJSON(when);
  if (ArrayAttr accesses = launch.getAccessesAttr())
    description["accesses"] = ::describe(accesses);
  return description;
}

/// Whether what an atomic operation does, or leaves, depends on what was there,
/// other than that it is added to.
static bool dependsOnContent(Operation *atomic) {
  auto update = dyn_cast<triton::AtomicRMWOp>(atomic);
  bool isSumOrExchange =
      update &&
      (isBlindSum(update) || update.getAtomicRmwOp() == triton::RMWOp::XCHG);
  return !atomic->use_empty() || !isSumOrExchange;
}

Array PlanPrinter::describeArguments() {
  std::map<unsigned, bool> read;
  primal.walk([&](Operation *op) {
    auto note = [&](auto &set) {
      for (BlockArgument base : getBaseArguments(op->getOperand(0)))
        set[base.getArgNumber()] = true;
    };
    if (isa<triton::LoadOp>(op)) {
      note(loaded);
      note(read);
    } else if (isa<triton::StoreOp>(op)) {
      note(stored);
    } else if (isa<triton::AtomicRMWOp, triton::AtomicCASOp>(op)) {
      note(stored);
      if (dependsOnContent(op))
        note(read);
    }
  });
  Array arguments;
  for (BlockArgument argument : primal.getArguments()) {
    unsigned index = argument.getArgNumber();
    arguments.push_back(Object{{"type", spellType(argument.getType())},
                               {"loaded", read[index]},
                               {"stored", stored[index]}});
  }
  return arguments;
}

Array PlanPrinter::describeBackwards() {
  Array list;
  for (LaunchOp backward : backwards) {
    Object description = describe(backward);
    Array variants;
    for (LaunchOp launch : plan.getItems<LaunchOp>())
      if (launch.getInPlaceOf() == backward.getKernel())
        variants.push_back(describe(launch));
    if (!variants.empty())
      description["variants"] = std::move(variants);
    list.push_back(std::move(description));
  }
  return list;
}

/// Includes the kernels that count contributions, and that clear or round a
/// gradient.
Array PlanPrinter::describeGradients() {
  Array list;
  for (auto item : plan.getItems<GradientOp>()) {
    llvm::json::Value description = toJSON(item.getGradient());
    Object tallied;
    for (LaunchOp launch : tallying) {
      triton::FuncOp kernel = getKernel(launch);
      auto taken = OperandAttr::get(plan.getContext(), OperandKind::Gradient,
                                    item.getGradient().getArgument());
      for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
        if (kernel.getArgAttr(index, kOperandAttr) == taken)
          tallied[getRole(kernel)] = describe(launch);
    }
    if (!tallied.empty())
      (*description.getAsObject())["tallied"] = std::move(tallied);
    list.push_back(std::move(description));
  }
  return list;
}

/// One check for each output: if it is read, the check about that comes first.
Array PlanPrinter::describeChecks() {
  Array list;
  std::optional<unsigned> last;
  for (auto item : plan.getItems<CheckOp>()) {
    unsigned index = item.getOperand().getIndex();
    if (last != index)
      list.push_back(toJSON(item.getFact()));
    last = index;
  }
  return list;
}

Array PlanPrinter::describeHazards() {
  Array hazards;
  MLIRContext *context = plan.getContext();
  MemoryFlow memory(primal);
  for (const MemoryFlow::Hazard &hazard : memory.getHazards()) {
    Object object{{"written", hazard.written}, {"read", hazard.read}};
    if (hazard.unless) {
      Array equalities;
      for (auto &[a, b] : *hazard.unless)
        equalities.push_back(Array{toJSON(context, a), toJSON(context, b)});
      object["unless"] = std::move(equalities);
    }
    hazards.push_back(std::move(object));
  }
  return hazards;
}

Array PlanPrinter::describeHistory() {
  Array list;
  if (auto outputs = primal->getAttrOfType<ArrayAttr>(kHistoryAttr))
    for (auto output : outputs.getAsRange<DictionaryAttr>()) {
      int64_t argument = output.getAs<IntegerAttr>("argument").getInt();
      // Some stores have turned out never to happen.
      if (stored[argument])
        list.push_back(Object{
            {"argument", argument},
            {"inputs",
             Array(output.getAs<DenseI32ArrayAttr>("inputs").asArrayRef())}});
    }
  return list;
}

/// What a step is about: numbers of operands, or of a backward kernel.
Array PlanPrinter::describeSteps() {
  Array list;
  for (auto step : plan.getItems<StepOp>()) {
    Array about;
    if (auto operands = step.getOperandsAttr())
      for (auto operand : operands.getAsRange<OperandAttr>())
        about.push_back(operand.getIndex());
    for (auto [number, launch] : llvm::enumerate(backwards))
      if (launch.getKernelAttr() == step.getKernelAttr())
        about.push_back(number);
    list.push_back(Object{{"stage", stringifyHostStage(step.getStage())},
                          {"kind", stringifyStepKind(step.getKind())},
                          {"about", std::move(about)}});
  }
  return list;
}

/// The arguments that the forward overwrites, and whose old content the
/// backward reads.
Array PlanPrinter::findSnapshots() {
  std::set<unsigned> overwritten;
  SmallVector<LaunchOp> readers = backwards;
  if (counting)
    readers.push_back(counting);
  for (LaunchOp reader : readers) {
    triton::FuncOp kernel = getKernel(reader);
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
      auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
      if (operand.getKind() == OperandKind::Argument &&
          stored[operand.getIndex()] && loaded[operand.getIndex()])
        overwritten.insert(operand.getIndex());
    }
  }
  return Array(overwritten);
}

/// Describes the rearranged launch, and what the user's kernel touches.
void PlanPrinter::describeRearrangement(Object &description) {
  Array assumed, stores, accesses, live;
  for (auto item : plan.getItems<AssumeOp>())
    assumed.push_back(toJSON(item.getNumber()));
  for (auto item : plan.getItems<StoredOp>())
    stores.push_back(toJSON(item.getStore()));
  for (auto item : plan.getItems<AccessedOp>())
    accesses.push_back(toJSON(item.getAccesses()));
  for (auto item : plan.getItems<LiveOp>())
    live.push_back(toJSON(item.getContributions()));
  description["assumed"] = std::move(assumed);
  if (!stores.empty())
    description["stores"] = std::move(stores);
  if (!accesses.empty())
    description["accesses"] = std::move(accesses);
  if (!live.empty())
    description["live"] = std::move(live);
  for (auto item : plan.getItems<RearrangedOp>())
    description["launch"] = toJSON(item.getLaunch());
}

llvm::json::Value PlanPrinter::print() {
  SmallVector<triton::FuncOp> kernels;
  for (LaunchOp backward : backwards)
    kernels.push_back(getKernel(backward));
  Array inputs, outputs, buffers, sizes;
  Array arguments = describeArguments();
  for (auto item : plan.getItems<GradientOp>())
    if (item.getGradient().getReturned())
      inputs.push_back(item.getGradient().getArgument());
  for (auto item : plan.getItems<BufferOp>())
    buffers.push_back(toJSON(item.getBuffer()));
  for (auto item : plan.getItems<HostSizeOp>())
    sizes.push_back(toJSON(item.getValue()));
  for (auto [index, isStored] : stored)
    if (isStored)
      outputs.push_back(index);
  auto describeOptional = [&](LaunchOp launch) {
    return launch ? llvm::json::Value(describe(launch)) : nullptr;
  };
  Object description{
      {"version", 5},
      {"kernel", primal.getSymName()},
      {"arguments", std::move(arguments)},
      {"inputs", std::move(inputs)},
      {"outputs", std::move(outputs)},
      {"history", describeHistory()},
      {"snapshots", findSnapshots()},
      {"hazards", describeHazards()},
      {"buffers", std::move(buffers)},
      {"sizes", std::move(sizes)},
      {"gradients", describeGradients()},
      {"checks", describeChecks()},
      {"forward", describeOptional(forward)},
      {"backward", describeBackwards()},
      {"counting", describeOptional(counting)},
      {"steps", describeSteps()},
      {"report",
       explain(primal, forward ? getKernel(forward) : triton::FuncOp(),
               kernels)}};
  describeRearrangement(description);
  Array next;
  for (auto item : plan.getItems<NextOp>())
    next.push_back(toJSON(item.getStep()));
  if (!next.empty())
    description["next"] = std::move(next);
  return description;
}

std::string mlir::autodiff::printPlan(ModuleOp module) {
  return llvm::formatv("{0:2}", PlanPrinter(module).print()).str();
}
