//===- FunctionPrinter.h - The lines of a function --------------*- C++ -*-===//
//
// Triton creates operations in the order in which Python evaluates a line, and
// the printed text has to give the same order. So a value is written inside of
// another one's line only if the values that wait to be written are that line's
// operands, in order. Otherwise all waiting values get lines first. Constants
// have no order.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SOURCE_FUNCTIONPRINTER_H
#define AUTODIFF_SOURCE_FUNCTIONPRINTER_H

#include "Comments.h"
#include "Expression.h"
#include "Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::autodiff::source {

/// In columns.
inline constexpr size_t kLongestLine = 100;

/// Functions of the printed module that kernels call.
class Helpers {
public:
  /// The name of a function that does what `region` does, `base` or similar;
  /// none if it cannot be written.
  std::optional<std::string> nameFor(Region &region, llvm::StringRef base,
                                     Names &names);
  /// The name of a function that calls a library's function.
  std::string nameFor(triton::ExternElementwiseOp op, Names &names);
  /// The name of a function that is not inlined, which is printed before its
  /// callers.
  FailureOr<llvm::StringRef> nameFor(triton::CallOp call, Names &names);
  /// Reserves the name of a function of the module, before variables are named.
  void reserve(triton::FuncOp function, Names &names);
  llvm::StringRef getText() const { return text; }

private:
  struct Function {
    enum class State { Waiting, Begun, Printed };
    std::string name;
    State state = State::Waiting;
  };

  std::string text;
  llvm::StringMap<std::string> known; // by body
  llvm::DenseMap<Operation *, Function> functions;
};

/// Prints a kernel, a function that kernels call, or a scalar function (of a
/// reduction, scan or map).
class FunctionPrinter {
public:
  FunctionPrinter(Helpers &helpers, Names &module, unsigned indent = 1)
      : helpers(helpers), names(module), moduleNames(module), depth(indent) {}

  /// Prints a kernel, or a function that kernels call.
  LogicalResult printKernel(triton::FuncOp kernel, llvm::raw_ostream &os);
  /// Prints a scalar function, with names for its arguments.
  LogicalResult printScalars(Block &block, llvm::StringRef name,
                             std::string &out);
  /// Prints a function that is not inlined.
  LogicalResult printFunction(triton::FuncOp function, llvm::StringRef name,
                              std::string &out);
  static LogicalResult fail(Operation *op, const llvm::Twine &why = "");

private:
  /// A value for which no line has been written.
  struct Waiting {
    Value value;
    Text text;
    /// The comment above the line that it becomes a part of.
    SmallVector<std::string> comment;
  };

  // Lines.
  void line(const llvm::Twine &text);
  void assign(Value value, const Text &text);
  void wait(Value value, Text text);
  void flush();

  // Values.
  Text reference(Value value, Use use);
  Text constantText(Value value, Attribute element, Use use);
  /// The entry of a value that waits for its line; null if it does not wait.
  Waiting *findWaiting(Value value);
  void settle(ArrayRef<Value> needed);
  std::string variable(Value value);
  /// Names values, and returns the name.
  std::string call(ArrayRef<Value> values, std::string name) {
    for (Value value : values)
      variables[value] = name;
    return name;
  }
  unsigned callParameter(triton::FuncOp kernel, unsigned index);
  std::string bound(Value value);

  // Operations.
  LogicalResult printBlock(Block &block);
  LogicalResult print(Operation *op);
  LogicalResult print(scf::ForOp loop);
  LogicalResult print(scf::IfOp branch);
  LogicalResult print(scf::WhileOp loop);
  LogicalResult printCombining(Operation *op, Region &combine);
  LogicalResult print(triton::MapElementwiseOp map);
  LogicalResult print(triton::CallOp call);
  LogicalResult print(triton::ExternElementwiseOp call);
  LogicalResult print(triton::ElementwiseInlineAsmOp assembly);
  /// Writes the line of an operation with several results, or keeps a single
  /// result as part of one.
  LogicalResult finish(Operation *op, std::string text);
  std::string arguments(Operation *op, Use use = Use::Alone);
  LogicalResult printChoice(arith::SelectOp select);
  LogicalResult printPlain(Operation *op);
  LogicalResult printReturns(triton::FuncOp kernel);
  void printReturn(triton::ReturnOp end, bool isEarly);
  std::string beginning(Value start, llvm::StringSet<> &begun);
  void printYield(ArrayRef<std::string> targets, ValueRange values);

  Helpers &helpers;
  Names names;
  Names &moduleNames;
  unsigned depth;
  std::string lines;
  Comments comments;
  // Comments above the next line.
  SmallVector<std::string> announced;
  SmallVector<Waiting> waiting;
  llvm::DenseMap<Value, std::string> variables;
  // Scalars and smaller tiles that are written in place of their broadcasts.
  llvm::DenseMap<Value, Value> implicit;
};

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_FUNCTIONPRINTER_H
