//===- PythonPrinter.cpp - Kernels as Triton Python -----------------------===//
#include "autodiff/Source/Python.h"

#include "FunctionPrinter.h"
#include "Types.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Descriptors.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

/// The divisibility that an argument must have, in words.
static std::string divisibilityOf(tt::FuncOp kernel, BlockArgument argument) {
  auto by = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                 "tt.divisibility");
  return by ? ", a multiple of " + std::to_string(by.getInt()) : "";
}

static std::string typeOf(BlockArgument argument) {
  Type type = argument.getType();
  if (isa<RankedTensorType>(type))
    return typeText(getElementTypeOrSelf(type)) + shapeText(type);
  return typeText(type);
}

/// A type annotation for a scalar argument, which Triton would otherwise take
/// for a 32-bit number.
static std::string annotationOf(tt::FuncOp kernel, Type type) {
  bool isTold = type.isInteger(1) || type.isInteger(32) || type.isF32();
  if (kernel.getNumResults() > 0 || !type.isIntOrFloat() || isTold)
    return "";
  return ": " + typeText(type);
}

/// Names an argument. A descriptor and its shape and strides are one parameter
/// in Python. Returns how many arguments it stands for.
unsigned FunctionPrinter::callParameter(tt::FuncOp kernel, unsigned index) {
  BlockArgument argument = kernel.getArgument(index);
  std::string name =
      call({argument}, names.give(argument, "arg" + std::to_string(index)));
  auto type = dyn_cast<tt::TensorDescType>(argument.getType());
  if (!type)
    return 1;
  unsigned rank = type.getBlockType().getRank();
  for (unsigned axis = 0; axis < rank; ++axis) {
    std::string element = "[" + std::to_string(axis) + "]";
    call({kernel.getArgument(index + 1 + axis)}, name + ".shape" + element);
    call({kernel.getArgument(index + 1 + rank + axis)},
         name + ".strides" + element);
  }
  return 1 + 2 * rank;
}

LogicalResult FunctionPrinter::printKernel(tt::FuncOp kernel, raw_ostream &os) {
  comments = Comments(kernel);
  SmallVector<std::string> parameters, types;
  for (unsigned index = 0; index < kernel.getNumArguments();) {
    BlockArgument argument = kernel.getArgument(index);
    auto descriptor = dyn_cast<tt::TensorDescType>(argument.getType());
    if (descriptor &&
        !isFollowedByParts(descriptor,
                           kernel.getArgumentTypes().drop_front(index + 1)))
      return fail(kernel,
                  "it takes a descriptor without its shape and strides");
    index += callParameter(kernel, index);
    parameters.push_back(variables[argument] +
                         annotationOf(kernel, argument.getType()));
    types.push_back(typeOf(argument) + divisibilityOf(kernel, argument));
  }
  if (failed(printReturns(kernel)))
    return failure();
  if (lines.empty())
    line("pass");
  std::string begin = ("def " + kernel.getSymName() + "(").str();
  std::string all = llvm::join(parameters, ", ");
  if (begin.size() + all.size() + 2 <= kLongestLine) {
    for (auto [name, type] : llvm::zip_equal(parameters, types))
      os << "# " << StringRef(name).split(':').first << ": " << type << "\n";
    os << "@triton.jit\n" << begin << all << "):\n" << lines;
    return success();
  }
  os << "@triton.jit\n" << begin << "\n";
  for (auto [name, type] : llvm::zip_equal(parameters, types))
    os << "    " << name << ",  # " << type << "\n";
  os << "):\n" << lines;
  return success();
}

LogicalResult FunctionPrinter::printScalars(Block &block, StringRef name,
                                            std::string &out) {
  SmallVector<std::string> parameters;
  for (BlockArgument argument : block.getArguments())
    parameters.push_back(
        call({argument},
             names.unique(std::string(1, 'a' + argument.getArgNumber() % 26))));
  // Constants from outside are written where they are used.
  if (failed(printBlock(block)))
    return failure();
  Operation *end = block.getTerminator();
  settle(SmallVector<Value>(end->getOperands()));
  SmallVector<std::string> results;
  for (Value value : end->getOperands()) {
    if (!elementOf(value) && !findWaiting(value) && !variables.count(value))
      return failure();
    // Triton 3.9 needs variables, not literals.
    results.push_back(reference(value, Use::Object).text);
  }
  flush();
  line("return " + llvm::join(results, ", "));
  out = "@triton.jit\ndef " + name.str() + "(" + llvm::join(parameters, ", ") +
        "):\n" + lines;
  return success();
}

std::optional<std::string> Helpers::nameFor(Region &region, StringRef base,
                                            Names &names) {
  std::string body;
  if (!region.hasOneBlock() ||
      failed(FunctionPrinter(*this, names)
                 .printScalars(region.front(), "<name>", body)) ||
      StringRef(body).contains("<unknown>"))
    return std::nullopt;
  auto [place, isNew] = known.try_emplace(body);
  if (isNew) {
    place->second = names.unique(base.str());
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

template <typename Op> static bool contains(ModuleOp module) {
  return module.walk([](Op) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

LogicalResult mlir::autodiff::printPython(ModuleOp module, raw_ostream &os) {
  Names names;
  Helpers helpers;
  std::string kernels;
  llvm::raw_string_ostream body(kernels);
  for (auto kernel : module.getOps<tt::FuncOp>())
    if (kernel.isPublic())
      names.unique(kernel.getSymName());
  for (auto function : module.getOps<tt::FuncOp>())
    if (function.isPrivate())
      helpers.reserve(function, names);
  for (auto kernel : module.getOps<tt::FuncOp>()) {
    if (!kernel.isPublic())
      continue;
    body << "\n\n";
    if (failed(FunctionPrinter(helpers, names).printKernel(kernel, body)))
      return failure();
  }
  os << "import triton\nimport triton.language as tl\n";
  SmallVector<std::string> marks;
  if (contains<OnceOp>(module))
    marks.push_back("once");
  if (contains<StopGradientOp>(module))
    marks.push_back("stop_gradient");
  if (!marks.empty())
    os << "from triton_autodiff.custom import " << llvm::join(marks, ", ")
       << "\n";
  if (!helpers.getText().empty())
    os << "\n\n" << helpers.getText().rtrim() << "\n";
  os << kernels;
  return success();
}
