//===- Names.cpp - What values are called in Python -----------------------===//
#include "Names.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/RuleLocation.h"
#include "autodiff/Support/Statement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::source;

/// Names that Python, Triton or the printed module use.
static constexpr llvm::StringLiteral kReserved[] = {
    "and",    "as",        "assert",       "async",  "await",    "break",
    "class",  "continue",  "def",          "del",    "elif",     "else",
    "except", "finally",   "for",          "from",   "global",   "if",
    "import", "in",        "is",           "lambda", "nonlocal", "not",
    "or",     "pass",      "raise",        "return", "try",      "while",
    "with",   "yield",     "None",         "True",   "False",    "tl",
    "triton", "libdevice", "range",        "float",  "int",      "bool",
    "min",    "max",       "sum",          "abs",    "print",    "len",
    "self",   "once",      "stop_gradient"};

Names::Names() {
  for (llvm::StringLiteral name : kReserved)
    taken.insert(name);
}

std::string Names::unique(StringRef wish) {
  std::string name = wish.str();
  for (unsigned number = 1; !taken.insert(name).second; ++number)
    name = (wish + "_" + llvm::Twine(number)).str();
  return name;
}

/// Whether a name belongs to a line, or is derived from its name.
static bool isOfLine(StringRef name, StringRef own) {
  return name == own || (name.consume_front(kAdjointPrefix) && name == own);
}

/// Whether a value is an intermediate result of the user's line that loads,
/// stores or computes an address, and has the name of the variable it assigns.
static bool isInAddress(Value value, StringRef own, unsigned depth = 8) {
  if (isa<BlockArgument>(value) || isa<FloatType>(getElementTypeOrSelf(value)))
    return false;
  return depth > 0 && llvm::any_of(value.getUsers(), [&](Operation *user) {
           if (!isOfLine(findVariable(user->getLoc()), own))
             return false;
           if (isa<triton::AddPtrOp>(user) || getAccessedPointer(user))
             return true;
           return user->getNumResults() == 1 && user->getNumRegions() == 0 &&
                  isInAddress(user->getResult(0), own, depth - 1);
         });
}

/// Whether a value is added to a pointer, alone or together with other unnamed
/// ones.
static bool isOfOffset(Value value, unsigned depth = 8) {
  return depth > 0 && llvm::any_of(value.getUsers(), [&](Operation *user) {
           if (isa<triton::AddPtrOp>(user))
             return true;
           if (!isa<CastOpInterface, arith::AddIOp, arith::MulIOp,
                    triton::BroadcastOp, triton::ExpandDimsOp, triton::SplatOp>(
                   user))
             return false;
           Value result = user->getResult(0);
           StringRef name = findVariable(result.getLoc());
           return (name.empty() || isInAddress(result, name)) &&
                  isOfOffset(result, depth - 1);
         });
}

/// The value that this one is a reshaped or converted form of.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<CastOpInterface>(op) && !triton::AxisMap::ofMove(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The adjoint that an unnamed value is computed from; empty if there is none.
static StringRef adjointOf(Value value, unsigned depth = 8) {
  StringRef name = findVariableOf(value);
  if (!name.empty())
    return name.starts_with(kAdjointPrefix) ? name : "";
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !op->hasTrait<OpTrait::Elementwise>())
    return "";
  for (Value operand : op->getOperands())
    if (StringRef adjoint = adjointOf(operand, depth - 1); !adjoint.empty())
      return adjoint;
  return "";
}

/// Whether a value is a program id, or a digit of one.
static bool isOfProgram(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() &&
           isOfProgram(loop.getLowerBound());
  }
  Operation *op = value.getDefiningOp();
  if (isa<CastOpInterface, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    return isOfProgram(op->getOperand(0));
  return isa<triton::GetProgramIdOp>(op);
}

/// The name for an unnamed value that is converted to a named one; empty if
/// that has no name.
static StringRef nameOfConverted(Value value) {
  for (Operation *user : value.getUsers())
    if (isa<CastOpInterface>(user))
      if (StringRef name = findVariable(user->getLoc());
          !name.starts_with(kAdjointPrefix) && !name.empty())
        return name;
  return "";
}

/// The name for an integer that is the bound of a loop; empty if it is none.
static StringRef nameOfBound(Value value) {
  for (Operation *user : value.getUsers()) {
    auto loop = dyn_cast<scf::ForOp>(user);
    if (loop && loop.getLowerBound() == value)
      return "start";
    if (loop && loop.getUpperBound() == value)
      return matchPattern(loop.getLowerBound(), m_Zero()) ? "n_iterations"
                                                          : "stop";
  }
  return "";
}

/// Whether a value is an intermediate result of a rule.
static bool isOnTheWay(Value value, StringRef own) {
  return !own.starts_with(kAdjointPrefix) && !findRule(value.getLoc()).empty();
}

static std::string termOf(StringRef own) {
  return (kAdjointPrefix + own + (own.empty() ? "term" : "_term")).str();
}

/// The argument that a value is loaded from, maybe converted or masked.
static StringRef loadedArgument(Value value) {
  for (value = sourceOf(value);; value = sourceOf(value)) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select || !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
      break;
    value = select.getTrueValue();
  }
  auto load = value.getDefiningOp<triton::LoadOp>();
  BlockArgument base = load ? getBaseArgument(load.getPtr()) : BlockArgument();
  StringRef argument = base ? findVariable(base.getLoc()) : "";
  argument.consume_back("_ptr");
  return argument;
}

static constexpr llvm::StringLiteral kRange = "arange";

/// Whether a value is a range that no variable is: one range often stands for
/// several axes, and part of which statement it is says nothing.
static bool isPlainRange(Value value) {
  return value.getDefiningOp<triton::MakeRangeOp>() &&
         (findVariable(value.getLoc()).empty() || isPartOfStatement(value));
}

/// What is called so that has no name in the user's source, or is a part of
/// what has this one.
static std::string nameByUse(Value value, StringRef whole) {
  Type element = getElementTypeOrSelf(value.getType());
  if (Value source = sourceOf(value); source != value) {
    if (isPlainRange(source))
      return kRange.str();
    if (StringRef name = findVariableOf(source);
        !name.empty() && name != whole) {
      if (!isOnTheWay(source, name))
        return nameInStatement(source, name);
      if (isa<FloatType>(element))
        return termOf(name);
    }
  }
  if (element.isInteger(1))
    return isa<RankedTensorType>(value.getType()) ? "mask" : "condition";
  if (Operation *op = sourceOf(value).getDefiningOp()) {
    if (isa<triton::GetProgramIdOp>(op))
      return "program";
    if (isa<triton::GetNumProgramsOp>(op))
      return "n_programs";
  }
  auto load = value.getDefiningOp<triton::LoadOp>();
  Value pointer = load ? load.getPtr() : value;
  bool isAddress = isa<triton::PointerType>(getElementTypeOrSelf(pointer));
  BlockArgument base = isAddress ? getBaseArgument(pointer) : BlockArgument();
  StringRef argument = base ? findVariable(base.getLoc()) : "";
  if (load && argument.consume_back("_ptr"))
    return argument.str();
  if (isa<triton::PointerType>(element))
    return argument.empty() ? "pointers" : (argument + "s").str();
  if (!whole.empty() && !isInAddress(value, whole))
    return nameInStatement(value, whole);
  if (isa<FloatType>(element)) {
    StringRef adjoint = adjointOf(value);
    return adjoint.empty() ? "x" : adjoint.str();
  }
  if (isOfProgram(value)) {
    StringRef name = nameOfConverted(value);
    return name.empty() ? "program" : name.str();
  }
  if (StringRef bound = nameOfBound(value); !bound.empty())
    return bound.str();
  return isOfOffset(value) ? "offset" : "n";
}

/// Whether a value is a condition in the line that its name is from.
static bool isConditionOf(Value value, StringRef own) {
  return getElementTypeOrSelf(value.getType()).isInteger(1) &&
         llvm::any_of(value.getUsers(), [&](Operation *user) {
           if (triton::isRepetition(user))
             return isConditionOf(user->getResult(0), own);
           return user->getNumResults() == 1 &&
                  findVariable(user->getLoc()) == own &&
                  !getElementTypeOrSelf(user->getResult(0)).isInteger(1);
         });
}

/// Whether a value is a reshaped or converted argument of the kernel.
static bool isOfArgument(Value value) {
  Value source = sourceOf(value);
  return source != value && isa<BlockArgument>(source) &&
         isa<triton::FuncOp>(source.getParentBlock()->getParentOp());
}

static std::string nameOf(Value value, StringRef otherwise) {
  StringRef own = findVariable(value.getLoc());
  if (own.empty())
    own = otherwise;
  if (isPlainRange(value))
    return kRange.str();
  StringRef argument = loadedArgument(value);
  if (argument.starts_with(kAdjointPrefix))
    return argument.str();
  if (isOnTheWay(value, own)) {
    if (!isa<FloatType>(getElementTypeOrSelf(value)))
      return nameByUse(value, "");
    return argument.empty() ? termOf(own) : argument.str();
  }
  bool isAdjoint = own.starts_with(kAdjointPrefix);
  bool isNamed = !own.empty() && !isInAddress(value, own) &&
                 !isConditionOf(value, own) && !isOfArgument(value) &&
                 (isAdjoint || !isPartOfStatement(value));
  return isNamed ? own.str() : nameByUse(value, own);
}

std::string Names::give(Value value, StringRef otherwise) {
  return unique(nameOf(value, otherwise));
}

SmallVector<std::string> Names::giveSorted(ValueRange values,
                                           ArrayRef<StringRef> otherwise) {
  SmallVector<std::string> names;
  for (auto [value, wish] : llvm::zip_equal(values, otherwise))
    names.push_back(give(value, wish));
  if (llvm::is_sorted(names))
    return names;
  for (auto [number, value] : llvm::enumerate(values)) {
    taken.erase(names[number]);
    // Letters as a prefix, as many as needed: a_, b_, …, za_.
    std::string letters(number / 25, 'z');
    letters += static_cast<char>('a' + number % 25);
    names[number] = letters + "_" + nameOf(value, otherwise[number]);
  }
  for (std::string &name : names)
    name = unique(name);
  return names;
}
