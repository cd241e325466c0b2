//===- Plan.cpp - The derived kernels of a module as a plan ---------------===//
#include "autodiff/Plan/Plan.h"

#include "Explain.h"
#include "PlanJson.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/StoredStates.h"
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

/// The text of `kernel` alone in a module, without attributes of ours.
static std::string printKernel(triton::FuncOp kernel) {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(kernel->getParentOp()->getLoc());
  auto copy = cast<triton::FuncOp>(kernel->clone());
  module->push_back(copy);
  copy->removeAttr(kRoleAttr);
  copy->removeAttr(kOrderedAttr);
  copy->removeAttr(kAccessesAttr);
  copy->removeAttr(kGridAttr);
  copy->removeAttr(kVariantOfAttr);
  copy->removeAttr(kWhenAttr);
  copy->removeAttr(kOptionsAttr);
  for (unsigned index = 0; index < copy.getNumArguments(); ++index) {
    for (llvm::StringRef name : {kOperandAttr, kBufferAttr, kCheckAttr,
                                 kWantedAttr, kHasCotangentAttr})
      copy.removeArgAttr(index, name);
  }
  copy.walk([](Operation *op) {
    op->removeAttr(kSiteAttr);
    op->removeAttr(kStateAttr);
    op->removeAttr(kCounterAttr);
    op->removeAttr(kParallelAttr);
    op->removeAttr(kMiscomputedAttr);
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, getPrintingFlags());
  return text;
}

namespace {
class PlanPrinter {
public:
  PlanPrinter(ModuleOp module)
      : primal(getPrimal(module)), forward(getForward(module)),
        backwards(getBackwards(module)), tallying(getTallying(module)),
        counting(getCounting(module)) {}

  llvm::json::Value print();

private:
  Object describeKernel(triton::FuncOp kernel);
  Array describeArguments();
  SmallVector<triton::FuncOp> getKernels() const;
  void numberBuffers();
  void describeTallying(triton::FuncOp kernel);
  void collect(triton::FuncOp kernel);

  triton::FuncOp primal, forward;
  SmallVector<triton::FuncOp> backwards, tallying;
  triton::FuncOp counting;
  // By number; std::map keeps the plan's order stable.
  std::map<unsigned, llvm::json::Value> buffers, gradients, sizes, checks;
  std::map<unsigned, bool> loaded, stored;
};
} // namespace

Object PlanPrinter::describeKernel(triton::FuncOp kernel) {
  Array operands;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    operands.push_back(Object{{"kind", stringifyOperandKind(operand.getKind())},
                              {"index", operand.getIndex()}});
  }
  Object description{{"name", kernel.getSymName()},
                     {"ttir", printKernel(kernel)},
                     {"grid", "primal"},
                     {"operands", std::move(operands)}};
  if (Attribute grid = kernel->getAttr(kGridAttr))
    description["grid"] = toJSON(grid);
  if (auto options = kernel->getAttrOfType<DictionaryAttr>(kOptionsAttr)) {
    Object list;
    for (NamedAttribute option : options)
      list[option.getName().getValue()] =
          cast<IntegerAttr>(option.getValue()).getInt();
    description["options"] = std::move(list);
  }
  if (Attribute when = kernel->getAttr(kWhenAttr))
    description["when"] = toJSON(when);
  if (auto accesses = kernel->getAttrOfType<ArrayAttr>(kAccessesAttr)) {
    Array list;
    for (auto access : accesses.getAsRange<DictionaryAttr>())
      list.push_back(Object{
          {"argument", access.getAs<IntegerAttr>("argument").getInt()},
          {"op", access.getAs<StringAttr>("op").getValue()},
          {"position", access.getAs<StringAttr>("position").getValue()}});
    description["accesses"] = std::move(list);
  }
  return description;
}

Array PlanPrinter::describeArguments() {
  primal.walk([&](Operation *op) {
    auto note = [&](Value pointer, auto &set) {
      for (BlockArgument base : getBaseArguments(pointer))
        set[base.getArgNumber()] = true;
    };
    if (auto load = dyn_cast<triton::LoadOp>(op))
      note(load.getPtr(), loaded);
    else if (auto store = dyn_cast<triton::StoreOp>(op))
      note(store.getPtr(), stored);
    else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
      note(atomic.getPtr(), stored);
    else if (auto atomic = dyn_cast<triton::AtomicCASOp>(op))
      note(atomic.getPtr(), stored);
  });
  Array arguments;
  for (BlockArgument argument : primal.getArguments()) {
    unsigned index = argument.getArgNumber();
    arguments.push_back(Object{{"type", spellType(argument.getType())},
                               {"loaded", loaded[index]},
                               {"stored", stored[index]}});
  }
  return arguments;
}

/// All kernels but the counting one, which has no buffers.
SmallVector<triton::FuncOp> PlanPrinter::getKernels() const {
  SmallVector<triton::FuncOp> kernels;
  if (forward)
    kernels.push_back(forward);
  for (triton::FuncOp backward : backwards) {
    kernels.push_back(backward);
    llvm::append_range(kernels, getVariants(backward));
  }
  llvm::append_range(kernels, tallying);
  return kernels;
}

/// Numbers buffers by their places in the plan: passes drop some on the way.
void PlanPrinter::numberBuffers() {
  std::map<unsigned, unsigned> places;
  auto forEach = [&](auto body) {
    for (triton::FuncOp kernel : getKernels())
      for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
        auto operand =
            kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
        if (operand.getKind() == OperandKind::Buffer)
          body(kernel, index, operand.getIndex());
      }
  };
  forEach(
      [&](triton::FuncOp, unsigned, unsigned number) { places[number] = 0; });
  for (auto [place, entry] : llvm::enumerate(places))
    entry.second = place;
  forEach([&](triton::FuncOp kernel, unsigned index, unsigned number) {
    kernel.setArgAttr(index, kOperandAttr,
                      OperandAttr::get(kernel.getContext(), OperandKind::Buffer,
                                       places[number]));
  });
}

void PlanPrinter::collect(triton::FuncOp kernel) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    if (Attribute check = kernel.getArgAttr(index, kCheckAttr))
      checks.try_emplace(operand.getIndex(), toJSON(check));
    Attribute description = kernel.getArgAttr(index, kBufferAttr);
    if (!description)
      continue;
    auto &target = operand.getKind() == OperandKind::Buffer ? buffers
                   : operand.getKind() == OperandKind::Size ? sizes
                                                            : gradients;
    target.emplace(operand.getIndex(), toJSON(description));
  }
}

/// Adds a kernel that counts for a gradient, or clears or rounds parts of it,
/// to that.
void PlanPrinter::describeTallying(triton::FuncOp kernel) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    if (operand.getKind() != OperandKind::Gradient)
      continue;
    Object &gradient = *gradients.at(operand.getIndex()).getAsObject();
    llvm::json::Value &tallied =
        gradient.try_emplace("tallied", Object()).first->second;
    (*tallied.getAsObject())[getRole(kernel)] = describeKernel(kernel);
  }
}

llvm::json::Value PlanPrinter::print() {
  for (triton::FuncOp kernel : getKernels())
    dropUnusedArguments(kernel);
  numberBuffers();
  Object report = explain(primal, forward, backwards);
  Array arguments = describeArguments();
  for (triton::FuncOp kernel : getKernels())
    collect(kernel);
  for (triton::FuncOp kernel : tallying)
    describeTallying(kernel);

  // The backward reads these as they were before the forward.
  Array snapshots, inputs, outputs;
  std::set<unsigned> overwritten;
  SmallVector<triton::FuncOp> readers = backwards;
  if (counting)
    readers.push_back(counting);
  for (triton::FuncOp kernel : readers)
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
      auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
      if (operand.getKind() == OperandKind::Argument &&
          stored[operand.getIndex()] && loaded[operand.getIndex()])
        overwritten.insert(operand.getIndex());
    }
  for (unsigned index : overwritten)
    snapshots.push_back(index);
  Array gradientList, bufferList, sizeList, checkList;
  for (auto &[index, gradient] : gradients) {
    if (*gradient.getAsObject()->getBoolean("returned"))
      inputs.push_back(index);
    gradientList.push_back(std::move(gradient));
  }
  for (auto &[index, buffer] : buffers)
    bufferList.push_back(std::move(buffer));
  for (auto &[index, size] : sizes)
    sizeList.push_back(std::move(size));
  for (auto &[index, check] : checks)
    checkList.push_back(std::move(check));
  for (auto [index, isStored] : stored)
    if (isStored)
      outputs.push_back(index);
  Array hazards;
  MLIRContext *context = primal.getContext();
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

  Array backwardList;
  for (triton::FuncOp backward : backwards) {
    Object description = describeKernel(backward);
    Array variants;
    for (triton::FuncOp variant : getVariants(backward))
      variants.push_back(describeKernel(variant));
    if (!variants.empty())
      description["variants"] = std::move(variants);
    backwardList.push_back(std::move(description));
  }
  llvm::json::Value assumed = Array();
  Operation *module = primal->getParentOp();
  if (Attribute numbers = module->getAttr(kAssumedAttr))
    assumed = toJSON(numbers);
  Object plan{{"version", 2},
              {"kernel", primal.getSymName()},
              {"arguments", std::move(arguments)},
              {"inputs", std::move(inputs)},
              {"outputs", std::move(outputs)},
              {"snapshots", std::move(snapshots)},
              {"hazards", std::move(hazards)},
              {"buffers", std::move(bufferList)},
              {"sizes", std::move(sizeList)},
              {"gradients", std::move(gradientList)},
              {"checks", std::move(checkList)},
              {"assumed", std::move(assumed)},
              {"backward", std::move(backwardList)},
              {"report", std::move(report)}};
  std::pair<llvm::StringRef, llvm::StringRef> described[] = {
      {"launch", kLaunchAttr},
      {"next", kNextAttr},
      {"stores", kStoresAttr},
      {"live", kLiveAttr}};
  for (auto [key, name] : described)
    if (Attribute description = module->getAttr(name))
      plan[key] = toJSON(description);
  if (forward)
    plan["forward"] = describeKernel(forward);
  else
    plan["forward"] = nullptr;
  if (counting)
    plan["counting"] = describeKernel(counting);
  else
    plan["counting"] = nullptr;
  return plan;
}

std::string mlir::autodiff::printPlan(ModuleOp module) {
  return llvm::formatv("{0:2}", PlanPrinter(module).print()).str();
}
