//===- Expression.cpp - Operations as expressions of Python ---------------===//
#include "Expression.h"

#include "Types.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::source;
namespace tt = mlir::triton;

namespace {
/// Writes one operation.
class Writer {
public:
  Writer(Operation *op, Operand operand) : op(op), operand(operand) {}

  std::optional<Text> write();

private:
  using Result = std::optional<Text>;

  std::string text(Value value, Use use = Use::Alone,
                   Binding outer = Binding::Compare) {
    return operand(value, use).within(outer);
  }
  Result infix(llvm::StringRef sign, Binding binding, bool isUnsigned = false);
  Result call(llvm::StringRef function, Use use = Use::Alone,
              bool isUnsigned = false, llvm::StringRef rest = "");
  /// `x.to(type)`.
  Result convert(const llvm::Twine &type);
  Result method(Text object, const llvm::Twine &rest) {
    return Text{object.within(Binding::Atom) + rest.str()};
  }
  /// An operand as an unsigned integer.
  Text asUnsigned(Value value, Use use);
  Result signedAgain(Result result);

  Result writeCompare(arith::CmpIOp compare);
  Result writeCompare(arith::CmpFOp compare);
  Result writeArithmetic();
  Result writeConversion();
  Result writeMath();
  /// The accumulator of a product; empty for zero.
  std::string startOf(Value sum);
  Result writeScaledDot(tt::DotScaledOp dot);
  Result writeTile();
  Result writeDebugging();

  Operation *op;
  Operand operand;
};
} // namespace

static Type elementOf(Type type) { return getElementTypeOrSelf(type); }
static bool isBool(Type type) { return elementOf(type).isInteger(1); }

Text Writer::asUnsigned(Value value, Use use) {
  bool isLiteral =
      use == Use::Joined ||
      (use == Use::Passed && elementOf(value.getType()).isInteger(32));
  if (std::optional<Attribute> number = elementOf(value); number && isLiteral)
    return {literalText(*number, /*isUnsigned=*/true)};
  return *method(operand(value, elementOf(value) ? Use::Object : use),
                 ".to(" + typeText(elementOf(value.getType()), true) + ")");
}

std::optional<Text> Writer::signedAgain(Result result) {
  return method(*result,
                ".to(" + typeText(elementOf(op->getResult(0).getType())) + ")");
}

std::optional<Text> Writer::infix(llvm::StringRef sign, Binding binding,
                                  bool isUnsigned) {
  Use use = binding == Binding::Compare ? Use::Passed : Use::Joined;
  auto get = [&](Value value) {
    return isUnsigned ? asUnsigned(value, use) : operand(value, use);
  };
  Text lhs = get(op->getOperand(0)), rhs = get(op->getOperand(1));
  // Operators are left-associative; comparisons cannot be chained.
  Binding after = static_cast<Binding>(static_cast<int>(binding) + 1);
  if (autodiff::mutation::isMade("source:no brackets on the right"))
    after = binding;
  Binding before = binding == Binding::Compare ? after : binding;
  return Text{lhs.within(before) + " " + sign.str() + " " + rhs.within(after),
              binding};
}

std::optional<Text> Writer::call(llvm::StringRef function, Use use,
                                 bool isUnsigned, llvm::StringRef rest) {
  SmallVector<std::string> arguments;
  for (Value value : op->getOperands())
    arguments.push_back(
        (isUnsigned ? asUnsigned(value, use) : operand(value, use)).text);
  return Text{"tl." + function.str() + "(" + llvm::join(arguments, ", ") +
              rest.str() + ")"};
}

std::optional<Text> Writer::convert(const llvm::Twine &type) {
  return method(operand(op->getOperand(0), Use::Object), ".to(" + type + ")");
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

std::optional<Text> Writer::writeCompare(arith::CmpIOp compare) {
  using P = arith::CmpIPredicate;
  switch (compare.getPredicate()) {
  case P::eq:
    return infix("==", Binding::Compare);
  case P::ne:
    return infix("!=", Binding::Compare);
  case P::slt:
    return infix("<", Binding::Compare);
  case P::sle:
    return infix("<=", Binding::Compare);
  case P::sgt:
    return infix(">", Binding::Compare);
  case P::sge:
    return infix(">=", Binding::Compare);
  case P::ult:
    return infix("<", Binding::Compare,
                 !autodiff::mutation::isMade("source:numbers with a sign"));
  case P::ule:
    return infix("<=", Binding::Compare, true);
  case P::ugt:
    return infix(">", Binding::Compare, true);
  case P::uge:
    return infix(">=", Binding::Compare, true);
  }
  return std::nullopt;
}

std::optional<Text> Writer::writeCompare(arith::CmpFOp compare) {
  using P = arith::CmpFPredicate;
  auto inverted = [&](llvm::StringRef sign) -> Result {
    return Text{"(" + infix(sign, Binding::Compare)->text + ") ^ True",
                Binding::Xor};
  };
  switch (compare.getPredicate()) {
  case P::OEQ:
    return infix("==", Binding::Compare);
  case P::UNE:
    return infix("!=", Binding::Compare);
  case P::OLT:
    return infix("<", Binding::Compare);
  case P::OLE:
    return infix("<=", Binding::Compare);
  case P::OGT:
    return infix(">", Binding::Compare);
  case P::OGE:
    return infix(">=", Binding::Compare);
  case P::ULT:
    return autodiff::mutation::isMade("source:NaN is not less")
               ? infix("<", Binding::Compare)
               : inverted(">=");
  case P::ULE:
    return inverted(">");
  case P::UGT:
    return inverted("<=");
  case P::UGE:
    return inverted("<");
  case P::UNO: {
    std::string x = text(compare.getLhs(), Use::Repeated);
    if (compare.getLhs() == compare.getRhs())
      return Text{x + " != " + x, Binding::Compare};
    std::string y = text(compare.getRhs(), Use::Repeated);
    return Text{"(" + x + " != " + x + ") | (" + y + " != " + y + ")",
                Binding::Or};
  }
  case P::ORD: {
    std::string x = text(compare.getLhs(), Use::Repeated);
    if (compare.getLhs() == compare.getRhs())
      return Text{x + " == " + x, Binding::Compare};
    std::string y = text(compare.getRhs(), Use::Repeated);
    return Text{"(" + x + " == " + x + ") & (" + y + " == " + y + ")",
                Binding::And};
  }
  case P::ONE:
  case P::UEQ: {
    std::string x = text(compare.getLhs(), Use::Repeated);
    std::string y = text(compare.getRhs(), Use::Repeated);
    std::string differs = "(" + x + " < " + y + ") | (" + x + " > " + y + ")";
    if (compare.getPredicate() == P::ONE)
      return Text{differs, Binding::Or};
    return Text{"(" + differs + ") ^ True", Binding::Xor};
  }
  default:
    return std::nullopt;
  }
}

std::optional<Text> Writer::writeArithmetic() {
  using B = Binding;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::CmpIOp, arith::CmpFOp>(
          [&](auto compare) { return writeCompare(compare); })
      .Case<arith::AddIOp, arith::AddFOp, tt::AddPtrOp>(
          [&](auto) { return infix("+", B::Sum); })
      .Case<arith::SubIOp, arith::SubFOp>(
          [&](auto) { return infix("-", B::Sum); })
      .Case<arith::MulIOp, arith::MulFOp>(
          [&](auto) { return infix("*", B::Product); })
      .Case([&](arith::DivFOp divide) -> Result {
        if (elementOf(divide.getType()).getIntOrFloatBitWidth() < 32)
          return std::nullopt;
        return infix("/", B::Product);
      })
      .Case<arith::DivSIOp>([&](auto) { return infix("//", B::Product); })
      .Case<arith::RemSIOp, arith::RemFOp>(
          [&](auto) { return infix("%", B::Product); })
      .Case<arith::DivUIOp>(
          [&](auto) { return signedAgain(infix("//", B::Product, true)); })
      .Case<arith::RemUIOp>(
          [&](auto) { return signedAgain(infix("%", B::Product, true)); })
      .Case<arith::AndIOp>([&](auto) { return infix("&", B::And); })
      .Case<arith::OrIOp>([&](auto) { return infix("|", B::Or); })
      .Case<arith::XOrIOp>([&](auto) { return infix("^", B::Xor); })
      .Case<arith::ShLIOp>([&](auto) { return infix("<<", B::Shift); })
      .Case<arith::ShRSIOp>([&](auto) { return infix(">>", B::Shift); })
      .Case<arith::ShRUIOp>(
          [&](auto) { return signedAgain(infix(">>", B::Shift, true)); })
      .Case<arith::MaxSIOp, arith::MaxNumFOp>(
          [&](auto) { return call("maximum", Use::Passed); })
      .Case<arith::MinSIOp, arith::MinNumFOp>(
          [&](auto) { return call("minimum", Use::Passed); })
      .Case<arith::MaxUIOp>(
          [&](auto) { return signedAgain(call("maximum", Use::Passed, true)); })
      .Case<arith::MinUIOp>(
          [&](auto) { return signedAgain(call("minimum", Use::Passed, true)); })
      .Case<arith::MaximumFOp>([&](auto) {
        return call("maximum", Use::Passed, false,
                    ", propagate_nan=tl.PropagateNan.ALL");
      })
      .Case<arith::MinimumFOp>([&](auto) {
        return call("minimum", Use::Passed, false,
                    ", propagate_nan=tl.PropagateNan.ALL");
      })
      .Case([&](arith::NegFOp negate) -> Result {
        return Text{"-" + text(negate.getOperand(), Use::Alone, B::Sign),
                    B::Sign};
      })
      .Case([&](arith::SelectOp select) -> Result {
        // `tl.where` would broadcast a scalar condition.
        bool isOfTiles = isa<RankedTensorType>(select.getType());
        if (isOfTiles &&
            !isa<RankedTensorType>(select.getCondition().getType()))
          return std::nullopt;
        // Triton would make 32-bit numbers of two literals.
        bool areLiterals = elementOf(select.getTrueValue()) &&
                           elementOf(select.getFalseValue());
        std::string condition = text(select.getCondition(), Use::Joined);
        std::string chosen = text(select.getTrueValue(),
                                  areLiterals ? Use::Passed : Use::Joined);
        std::string other = text(select.getFalseValue(), Use::Joined);
        return Text{"tl.where(" + condition + ", " + chosen + ", " + other +
                    ")"};
      })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Conversions and functions
//===----------------------------------------------------------------------===//

std::optional<Text> Writer::writeConversion() {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  Type from = elementOf(op->getOperand(0).getType());
  Type to = elementOf(op->getResult(0).getType());
  auto ofSignBit = [&]() {
    return Text{"0 - " + convert("tl.int32")->text, Binding::Sum};
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::ExtSIOp>([&](auto) -> Result {
        if (!isBool(from))
          return convert(typeText(to));
        Text all = ofSignBit();
        return to.isInteger(32) ? all
                                : method(all, ".to(" + typeText(to) + ")");
      })
      .Case<arith::ExtUIOp>([&](auto) -> Result {
        if (isBool(from))
          return convert(typeText(to));
        return method(*convert(typeText(from, true)),
                      ".to(" + typeText(to) + ")");
      })
      .Case<arith::TruncIOp>([&](auto) -> Result {
        if (isBool(to))
          return std::nullopt;
        return convert(typeText(to));
      })
      .Case<arith::SIToFPOp>([&](auto) -> Result {
        return isBool(from) ? method(ofSignBit(), ".to(" + typeText(to) + ")")
                            : convert(typeText(to));
      })
      .Case<arith::UIToFPOp>([&](auto) -> Result {
        if (isBool(from))
          return convert(typeText(to));
        return method(*convert(typeText(from, true)),
                      ".to(" + typeText(to) + ")");
      })
      .Case<arith::FPToSIOp>([&](auto) -> Result {
        return isBool(to) ? Result() : convert(typeText(to));
      })
      .Case<arith::FPToUIOp>([&](auto) -> Result {
        if (isBool(to))
          return std::nullopt;
        return method(*convert(typeText(to, true)),
                      ".to(" + typeText(to) + ")");
      })
      .Case<arith::ExtFOp, arith::TruncFOp, tt::IntToPtrOp, tt::PtrToIntOp>(
          [&](auto) { return convert(typeText(to)); })
      .Case<autodiff::StopGradientOp, autodiff::OnceOp>([&](Operation *mark) {
        bool isStop = isa<autodiff::StopGradientOp>(mark);
        return Text{(isStop ? "stop_gradient(" : "once(") +
                    text(mark->getOperand(0)) + ")"};
      })
      .Case([&](tt::FpToFpOp convertFloat) -> Result {
        std::optional<tt::RoundingMode> mode = convertFloat.getRounding();
        bool isUsual = !mode || *mode == tt::RoundingMode::RTNE ||
                       autodiff::mutation::isMade("source:rounds to nearest");
        return convert(typeText(to) +
                       (isUsual ? "" : ", fp_downcast_rounding=\"rtz\""));
      })
      .Case<tt::BitcastOp>([&](auto) -> Result {
        bool isOfPointers = isa<tt::PointerType>(from);
        return convert(typeText(to) + (isOfPointers ? "" : ", bitcast=True"));
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Text> Writer::writeMath() {
  bool isWide =
      op->getNumResults() == 1 &&
      isa<Float32Type, Float64Type>(elementOf(op->getResult(0).getType()));
  llvm::StringRef name =
      llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
          .Case<math::ExpOp>([](auto) { return "exp"; })
          .Case<math::Exp2Op>([](auto) { return "exp2"; })
          .Case<math::LogOp>([](auto) { return "log"; })
          .Case<math::Log2Op>([](auto) { return "log2"; })
          .Case<math::SinOp>([](auto) { return "sin"; })
          .Case<math::CosOp>([](auto) { return "cos"; })
          .Case<math::SqrtOp>([](auto) { return "sqrt"; })
          .Case<math::RsqrtOp>([](auto) { return "rsqrt"; })
          .Case<math::ErfOp>([](auto) { return "erf"; })
          .Case<math::FloorOp>([](auto) { return "floor"; })
          .Case<math::CeilOp>([](auto) { return "ceil"; })
          .Case<tt::PreciseSqrtOp>([](auto) { return "sqrt_rn"; })
          .Default([](Operation *) { return ""; });
  if (!name.empty())
    return isWide ? call(name) : Result();
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<math::AbsFOp, math::AbsIOp>([&](auto) { return call("abs"); })
      .Case<math::FmaOp>([&](auto) { return call("fma"); })
      .Case<tt::PreciseDivFOp>([&](auto) { return call("div_rn"); })
      .Case<tt::MulhiUIOp>(
          [&](auto) { return signedAgain(call("umulhi", Use::Alone, true)); })
      .Case([&](tt::ClampFOp clamp) -> Result {
        bool passesNan = clamp.getPropagateNan() == tt::PropagateNan::ALL;
        return call("clamp", Use::Passed, false,
                    passesNan ? ", propagate_nan=tl.PropagateNan.ALL" : "");
      })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static std::string precisionOf(tt::DotOp dot) {
  if (!elementOf(dot.getA().getType()).isF32() ||
      dot.getInputPrecision() == tt::InputPrecision::TF32)
    return "";
  return ", input_precision=\"" +
         tt::stringifyInputPrecision(dot.getInputPrecision()).lower() + "\"";
}

std::string Writer::startOf(Value sum) {
  std::optional<Attribute> start = elementOf(sum);
  auto zero = start ? dyn_cast<FloatAttr>(*start) : FloatAttr();
  return zero && (zero.getValue().isPosZero() ||
                  autodiff::mutation::isMade("source:sums from any zero"))
             ? ""
             : ", " + text(sum);
}

std::optional<Text> Writer::writeScaledDot(tt::DotScaledOp dot) {
  std::string written = "tl.dot_scaled(";
  auto add = [&](Value tile, Value scale, tt::ScaleDotElemType format) {
    // Triton expects packed 4-bit numbers, and scales, as unsigned bytes.
    bool isPacked = format == tt::ScaleDotElemType::E2M1;
    written +=
        isPacked ? asUnsigned(tile, Use::Alone).text : text(tile, Use::Alone);
    written += ", " + (scale ? asUnsigned(scale, Use::Alone).text : "None");
    written += ", \"" + tt::stringifyScaleDotElemType(format).str() + "\"";
  };
  add(dot.getA(), dot.getAScale(), dot.getAElemType());
  written += ", ";
  add(dot.getB(), dot.getBScale(), dot.getBElemType());
  written += startOf(dot.getC());
  if (dot.getFastMath())
    written += ", fast_math=True";
  if (!dot.getLhsKPack())
    written += ", lhs_k_pack=False";
  if (!dot.getRhsKPack())
    written += ", rhs_k_pack=False";
  return Text{written + ")"};
}

std::optional<Text> Writer::writeTile() {
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](tt::GetProgramIdOp id) {
        return Text{"tl.program_id(" + std::to_string(id.getAxisAsInt()) + ")"};
      })
      .Case([&](tt::GetNumProgramsOp count) {
        return Text{"tl.num_programs(" + std::to_string(count.getAxisAsInt()) +
                    ")"};
      })
      .Case([&](tt::MakeRangeOp range) {
        return Text{"tl.arange(" + std::to_string(range.getStart()) + ", " +
                    std::to_string(range.getEnd()) + ")"};
      })
      .Case<tt::SplatOp, tt::BroadcastOp>([&](auto tile) -> Result {
        return Text{"tl.broadcast_to(" + text(op->getOperand(0)) + ", " +
                    shapeText(tile.getType()) + ")"};
      })
      .Case([&](tt::UnsplatOp single) {
        return method(operand(single.getSrc(), Use::Alone), ".item()");
      })
      .Case([&](tt::ExpandDimsOp expand) -> Result {
        SmallVector<std::string> axes(
            cast<RankedTensorType>(expand.getType()).getRank(), ":");
        axes[expand.getAxis()] = "None";
        return method(operand(expand.getSrc(), Use::Alone),
                      "[" + llvm::join(axes, ", ") + "]");
      })
      .Case([&](tt::ReshapeOp reshape) -> Result {
        return Text{"tl.reshape(" + text(reshape.getSrc()) + ", " +
                    shapeText(reshape.getType()) +
                    (reshape.getAllowReorder() ? ", can_reorder=True)" : ")")};
      })
      .Case([&](tt::TransOp transpose) -> Result {
        if (transpose.getOrder() == ArrayRef<int32_t>({1, 0}))
          return call("trans");
        return Text{"tl.permute(" + text(transpose.getSrc()) + ", (" +
                    llvm::join(llvm::map_range(transpose.getOrder(),
                                               [](int32_t axis) {
                                                 return std::to_string(axis);
                                               }),
                               ", ") +
                    "))"};
      })
      .Case<tt::JoinOp>([&](auto) { return call("join"); })
      .Case<tt::CatOp>([&](auto) {
        return call("cat", Use::Alone, false, ", can_reorder=True");
      })
      .Case([&](tt::HistogramOp histogram) -> Result {
        int64_t bins = histogram.getType().getNumElements();
        std::string written = "tl.histogram(" + text(histogram.getSrc()) +
                              ", " + std::to_string(bins);
        if (histogram.getMask())
          written += ", " + text(histogram.getMask());
        return Text{written + ")"};
      })
      .Case([&](tt::GatherOp gather) -> Result {
        return call("gather", Use::Alone, false,
                    ", " + std::to_string(gather.getAxis()));
      })
      .Case([&](tt::DotOp dot) -> Result {
        std::string product = "tl.dot(" + text(dot.getA());
        product += ", " + text(dot.getB());
        product += startOf(dot.getC());
        product += precisionOf(dot);
        // Triton's default for inexact sums is larger than any length.
        unsigned inexact = dot.getMaxNumImpreciseAcc();
        if (elementOf(dot.getA().getType()).getIntOrFloatBitWidth() == 8 &&
            isa<FloatType>(elementOf(dot.getA().getType())) &&
            inexact != 1u << 30)
          product += ", max_num_imprecise_acc=" + std::to_string(inexact);
        if (Type type = elementOf(dot.getType()); !type.isF32())
          product += ", out_dtype=" + typeText(type);
        return Text{product + ")"};
      })
      .Case([&](tt::DotScaledOp dot) { return writeScaledDot(dot); })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Debugging
//===----------------------------------------------------------------------===//

std::optional<Text> Writer::writeDebugging() {
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](tt::PrintOp print) -> Result {
        std::string written = "tl.device_print(" + quoted(print.getPrefix());
        for (auto [value, isSigned] :
             llvm::zip_equal(print.getArgs(), print.getIsSigned())) {
          bool isUnsigned = !isSigned && elementOf(value.getType()).isInteger();
          written += ", " + (isUnsigned ? asUnsigned(value, Use::Alone)
                                        : operand(value, Use::Alone))
                                .text;
        }
        return Text{written + (print.getHex() ? ", hex=True)" : ")")};
      })
      .Case([&](tt::AssertOp assertion) -> Result {
        return Text{"tl.device_assert(" + text(assertion.getCondition()) +
                    ", " + quoted(assertion.getMessage()) + ")"};
      })
      .Case([&](LLVM::AssumeOp assumption) -> Result {
        return Text{"tl.assume(" + text(assumption.getCond()) + ")"};
      })
      .Case<gpu::BarrierOp, tt::gpu::BarrierOp>(
          [&](auto) { return Text{"tl.debug_barrier()"}; })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Text> Writer::write() {
  for (auto part :
       {&Writer::writeArithmetic, &Writer::writeConversion, &Writer::writeMath,
        &Writer::writeTile, &Writer::writeDebugging})
    if (Result result = (this->*part)())
      return result;
  if (Result result = memoryText(op, operand))
    return result;
  return descriptorText(op, operand);
}

std::optional<Text> mlir::autodiff::source::expressionOf(Operation *op,
                                                         Operand operand) {
  return Writer(op, operand).write();
}

std::optional<SmallVector<std::pair<Value, Use>>>
mlir::autodiff::source::usesOf(Operation *op) {
  SmallVector<std::pair<Value, Use>> uses;
  auto note = [&](Value value, Use use) {
    uses.emplace_back(value, use);
    return Text{"x"};
  };
  if (!expressionOf(op, note))
    return std::nullopt;
  return uses;
}

bool mlir::autodiff::source::joins(Operation *op) {
  std::optional<SmallVector<std::pair<Value, Use>>> uses = usesOf(op);
  return uses && llvm::any_of(*uses, [](const std::pair<Value, Use> &use) {
           return use.second == Use::Joined || use.second == Use::Passed;
         });
}
