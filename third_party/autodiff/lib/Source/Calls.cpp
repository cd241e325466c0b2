//===- Calls.cpp - Functions that are not inlined, and calls of them ------===//
#include "FunctionPrinter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

/// The name of a function in the user's source. Triton puts the module in front
/// of it, and the types of its arguments behind it.
static StringRef sourceName(tt::FuncOp function) {
  StringRef name = function.getSymName();
  name = name.rsplit('.').second.empty() ? name : name.rsplit('.').second;
  return name.take_front(name.find("__", name.find_first_not_of('_')));
}

void Helpers::reserve(tt::FuncOp function, Names &names) {
  functions[function] = {names.unique(sourceName(function))};
}

FailureOr<StringRef> Helpers::nameFor(tt::CallOp call, Names &names) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<tt::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || !callee.isPrivate() || callee.isExternal())
    return FunctionPrinter::fail(call, "it calls no function of this module");
  using State = Function::State;
  // The reference stays valid: entries for all functions exist already.
  Function &function = functions.find(callee)->second;
  if (function.state == State::Begun)
    return FunctionPrinter::fail(call, "the function calls itself");
  if (function.state == State::Printed)
    return StringRef(function.name);
  function.state = State::Begun;
  std::string printed;
  if (failed(FunctionPrinter(*this, names)
                 .printFunction(callee, function.name, printed)))
    return failure();
  function.state = State::Printed;
  text += printed + "\n\n";
  return StringRef(function.name);
}

LogicalResult FunctionPrinter::printFunction(tt::FuncOp function,
                                             StringRef name, std::string &out) {
  auto isDescriptor = llvm::IsaPred<tt::TensorDescType>;
  if (llvm::any_of(function.getArgumentTypes(), isDescriptor) ||
      llvm::any_of(function.getResultTypes(), isDescriptor))
    return fail(function, "it is not inlined, and takes or returns a "
                          "descriptor");
  SmallVector<std::string> parameters;
  for (BlockArgument argument : function.getArguments()) {
    std::string other = "arg" + std::to_string(argument.getArgNumber());
    parameters.push_back(call({argument}, names.give(argument, other)));
  }
  if (failed(printReturns(function)))
    return failure();
  if (lines.empty())
    line("pass");
  auto isKept = function->getAttrOfType<BoolAttr>("noinline");
  StringRef decorator = isKept && isKept.getValue()
                            ? "@triton.jit(noinline=True)\n"
                            : "@triton.jit\n";
  out = (decorator + "def " + name + "(" + llvm::join(parameters, ", ") +
         "):\n" + lines)
            .str();
  return success();
}

/// Arguments are variables: literals would become constants of the function.
LogicalResult FunctionPrinter::print(tt::CallOp call) {
  FailureOr<StringRef> function = helpers.nameFor(call, moduleNames);
  if (failed(function))
    return failure();
  return finish(call,
                (*function + "(" + arguments(call, Use::Object) + ")").str());
}

void FunctionPrinter::printReturn(tt::ReturnOp end, bool isEarly) {
  std::string results = arguments(end, Use::Object);
  flush();
  if (!results.empty())
    line("return " + results);
  else if (isEarly)
    line("return");
}
