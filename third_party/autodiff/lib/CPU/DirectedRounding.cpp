//===- DirectedRounding.cpp - Arithmetic that rounds in a direction -------===//

#include "Runtime.h"

#include "autodiff/Support/Mutation.h"
#include <cfenv>
#include <cmath>
#include <vector>

using namespace mlir::autodiff::cpu;
namespace mutation = mlir::autodiff::mutation;

namespace {
/// Sets the rounding mode during its lifetime.
class Direction {
public:
  explicit Direction(int mode) : before(std::fegetround()) {
    if (!mutation::isMade("cpu-rounding:to nearest"))
      std::fesetround(mode);
  }
  ~Direction() {
    if (!mutation::isMade("cpu-rounding:for what follows, too"))
      std::fesetround(before);
  }

private:
  int before;
};
} // namespace

/// Calls `function` in a rounding mode. The compiler does not know about modes,
/// so neither operands nor result may be constants for it.
template <int mode, typename T, typename... Args>
static T rounded(T (*volatile function)(Args...), Args... args) {
  Direction direction(mode);
  volatile T result = function(args...);
  return result;
}

template <typename T> static T add(T x, T y) { return x + y; }
template <typename T> static T subtract(T x, T y) { return x - y; }
template <typename T> static T multiply(T x, T y) { return x * y; }
template <typename T> static T divide(T x, T y) { return x / y; }
template <typename T> static T invert(T x) { return 1 / x; }
template <typename T> static T root(T x) { return std::sqrt(x); }
template <typename T> static T multiplyAdd(T x, T y, T z) {
  return std::fma(x, y, z);
}

namespace {
class Table {
public:
  Table() {
    addMode<FE_TOWARDZERO>("_rz");
    addMode<FE_DOWNWARD>("_rd");
    addMode<FE_UPWARD>("_ru");
  }

  std::vector<RuntimeFunction> functions;

private:
  template <int mode> void addMode(const std::string &ending) {
    addType<mode, double>(ending);
    addType<mode, float>(ending + "f");
  }

  template <int mode, typename T> void addType(const std::string &ending) {
    auto insert = [&](const char *name, auto function) {
      functions.push_back({name + ending, reinterpret_cast<void *>(function)});
    };
    insert("tad_add", +[](T x, T y) { return rounded<mode>(add<T>, x, y); });
    insert(
        "tad_sub", +[](T x, T y) { return rounded<mode>(subtract<T>, x, y); });
    insert(
        "tad_mul", +[](T x, T y) { return rounded<mode>(multiply<T>, x, y); });
    insert("tad_div", +[](T x, T y) { return rounded<mode>(divide<T>, x, y); });
    insert("tad_rcp", +[](T x) { return rounded<mode>(invert<T>, x); });
    insert("tad_sqrt", +[](T x) { return rounded<mode>(root<T>, x); });
    insert(
        "tad_fma",
        +[](T x, T y, T z) { return rounded<mode>(multiplyAdd<T>, x, y, z); });
  }
};
} // namespace

llvm::ArrayRef<RuntimeFunction> mlir::autodiff::cpu::getRoundedFunctions() {
  static const Table table;
  return table.functions;
}
