//===- CombinerLaws.cpp - In which orders a function combines -------------===//
//
// Triton combines elements in whatever tree suits its threads. In a reduction
// on a GPU, it also swaps the arguments. So do the rules of reductions and
// scans. If the result depends on such an order, it has no derivative.
//
// Laws are tried on samples, not proved: in double precision, on tuples that
// the kernel may combine. A constant member of the tuple has that value (the
// zero and the one with which a Welford sum starts, the −∞ of a second best).
// Floats that carry a derivative are numbers of moderate size, or in other
// samples zero, one, positive numbers, or equal in several elements: a law that
// only holds for positive numbers is none. Other members are tested less
// strictly: floats are such numbers or counts, and the law has to hold for one
// of the two; integers do not decrease, like positions and the keys of sorted
// segments.
//
// Two results contradict each other if they differ by more than a tiny change
// of the elements makes, and by more than a coarse constant (ln 2 with a few
// digits) or a small number in a divisor explains. Infinities and NaN are no
// evidence: a function may have poles, and overflow in one order only. Equal
// elements are no evidence against a swap of arguments: a selection may prefer
// the first one.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/CombinerLaws.h"

#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Rules/ScalarCode.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::autodiff;

/// The number of samples of each kind, and of elements in each.
constexpr unsigned kSamples = 24, kElements = 4;
/// The size of a tiny change, and of errors by coarse constants; both relative
/// to the result.
constexpr double kTiny = 1e-6, kCoarse = 1e-5;
/// The size of rounding errors, relative to the elements.
constexpr double kRounding = 1e-12;

namespace {
/// The members of a tuple; empty where ∘ is undefined.
using Element = SmallVector<Attribute>;
using Elements = ArrayRef<Element>;

class Trial {
public:
  /// How floats without a derivative are sampled.
  enum class Others { Numbers, Counts };

  Trial(Operation *op, const llvm::BitVector &active, Others others)
      : op(op), active(active), others(others), code(op->getRegion(0)) {}

  CombinerLaws run();

private:
  using Tree = llvm::function_ref<Element(Elements)>;

  double drawNumber() {
    return std::uniform_real_distribution(-2.0, 2.0)(bits);
  }
  int64_t drawBelow(int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(bits);
  }
  Attribute number(double value) {
    return FloatAttr::get(Float64Type::get(op->getContext()), value);
  }
  double drawSpecial(Attribute before);
  Attribute drawMember(unsigned index, Attribute before, bool hasTies);
  void drawCaptures();
  void draw(bool hasTies);

  Element combine(const Element &a, const Element &b);
  bool agree(unsigned count, Tree first, Tree second);
  void note(unsigned count, const Element &first, const Element &second);

  Operation *op;
  const llvm::BitVector &active;
  Others others;
  ScalarCode code;
  // A fixed seed, so that results are the same in every process.
  std::mt19937_64 bits{1};
  SmallVector<Element> elements;
  bool hasEvidence = false;
  /// How the two results of the last disagreement differ.
  std::string difference;
};
} // namespace

static std::optional<double> getFinite(Attribute number) {
  auto value = dyn_cast_or_null<FloatAttr>(number);
  if (!value || !value.getValue().isFinite())
    return std::nullopt;
  return value.getValueAsDouble();
}

/// The scalar that a tile repeats, if that is a constant.
static Attribute getRepeated(Value tile) {
  Attribute constant;
  if (matchPattern(tile, m_Constant(&constant))) {
    auto elements = dyn_cast<SplatElementsAttr>(constant);
    return elements ? elements.getSplatValue<Attribute>() : Attribute();
  }
  Operation *source = tile.getDefiningOp();
  if (auto splat = dyn_cast_or_null<triton::SplatOp>(source))
    return matchPattern(splat.getSrc(), m_Constant(&constant)) ? constant
                                                               : Attribute();
  return triton::isMove(source) ? getRepeated(source->getOperand(0))
                                : Attribute();
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Zero, one, the previous element's number, or any positive number.
double Trial::drawSpecial(Attribute before) {
  switch (drawBelow(4)) {
  case 0:
    return 0;
  case 1:
    return 1;
  case 2:
    if (std::optional<double> same = getFinite(before))
      return *same;
    [[fallthrough]];
  default:
    return std::abs(drawNumber());
  }
}

Attribute Trial::drawMember(unsigned index, Attribute before, bool hasTies) {
  if (Attribute constant = getRepeated(op->getOperand(index)))
    return ScalarCode::widen(constant);
  Type type = getElementTypeOrSelf(op->getOperand(index).getType());
  if (type.isInteger(1))
    return IntegerAttr::get(type, drawBelow(2));
  if (type.isInteger()) {
    auto last = dyn_cast_or_null<IntegerAttr>(before);
    int64_t step = drawBelow(3) + !hasTies;
    return IntegerAttr::get(type, last ? last.getValue().getSExtValue() + step
                                       : step);
  }
  if (!isFloat(type))
    return {};
  if (!active[index] && others == Others::Counts)
    return number(drawBelow(4) + !hasTies);
  return number(hasTies ? drawSpecial(before) : drawNumber());
}

void Trial::drawCaptures() {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegion(0), captures);
  for (Value capture : captures) {
    Attribute constant;
    if (matchPattern(capture, m_Constant(&constant)))
      code.set(capture, constant);
    else if (isFloat(capture.getType()))
      code.set(capture, number(drawNumber()));
    else if (isa<IntegerType>(capture.getType()))
      code.set(capture, IntegerAttr::get(capture.getType(), drawBelow(2)));
  }
}

void Trial::draw(bool hasTies) {
  drawCaptures();
  elements.clear();
  for (unsigned count = 0; count < kElements; ++count) {
    Element element;
    for (unsigned index = 0; index < op->getNumOperands(); ++index)
      element.push_back(drawMember(
          index, count ? elements.back()[index] : Attribute(), hasTies));
    elements.push_back(std::move(element));
  }
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

Element Trial::combine(const Element &a, const Element &b) {
  if (a.empty() || b.empty())
    return {};
  Element arguments = a;
  arguments.append(b);
  FailureOr<SmallVector<Attribute>> results = code.run(arguments);
  return succeeded(results) ? *results : Element();
}

/// Notes how two results of the first elements differ.
void Trial::note(unsigned count, const Element &first, const Element &second) {
  difference.clear();
  llvm::raw_string_ostream os(difference);
  auto print = [&](const Element &element) {
    llvm::interleave(
        element, os,
        [&](Attribute member) {
          if (auto value = dyn_cast<FloatAttr>(member))
            os << llvm::format("%.3g", value.getValueAsDouble());
          else
            os << cast<IntegerAttr>(member).getValue().getSExtValue();
        },
        ", ");
  };
  auto printTuple = [&](const Element &element) {
    os << (element.size() > 1 ? "(" : "");
    print(element);
    os << (element.size() > 1 ? ")" : "");
  };
  llvm::interleave(Elements(elements).take_front(count), os, printTuple, ", ");
  os << " are combined to ";
  printTuple(first);
  os << " or ";
  printTuple(second);
}

/// Whether two trees give the same for the first `count` elements.
bool Trial::agree(unsigned count, Tree first, Tree second) {
  // Numbers that are equal stay equal.
  double scale = 0;
  SmallVector<Element> changed(Elements(elements).take_front(count));
  for (Element &element : changed)
    for (Attribute &member : element)
      if (std::optional<double> value = getFinite(member)) {
        scale = std::max(scale, std::abs(*value));
        member = number(*value * (1 + kTiny * std::cos(1000 * *value)));
      }
  Element a = first(elements), b = second(elements);
  Element nearA = first(changed), nearB = second(changed);
  if (a.empty() || b.empty() || nearA.empty() || nearB.empty())
    return true;
  bool isSame = true;
  for (unsigned index = 0; index < a.size(); ++index) {
    if (isa<IntegerAttr>(a[index])) {
      isSame &= a[index] == b[index];
      continue;
    }
    auto x = getFinite(a[index]), y = getFinite(b[index]);
    auto nearX = getFinite(nearA[index]), nearY = getFinite(nearB[index]);
    if (!x || !y || !nearX || !nearY)
      continue;
    hasEvidence = true;
    double slack = kCoarse * std::max(std::abs(*x), std::abs(*y)) +
                   kRounding * scale + std::abs(*x - *nearX) +
                   std::abs(*y - *nearY);
    isSame &= std::abs(*x - *y) <= slack;
  }
  if (!isSame)
    note(count, a, b);
  return isSame;
}

CombinerLaws Trial::run() {
  CombinerLaws laws;
  auto both = [&](const Element &a, const Element &b) { return combine(a, b); };
  auto fromLeft = [&](Elements x) { return both(both(x[0], x[1]), x[2]); };
  auto fromRight = [&](Elements x) { return both(x[0], both(x[1], x[2])); };
  auto inLine = [&](Elements x) { return both(fromLeft(x), x[3]); };
  auto inPairs = [&](Elements x) {
    return both(both(x[0], x[1]), both(x[2], x[3]));
  };
  auto swapped = [&](Elements x) {
    return both(both(x[2], x[3]), both(x[0], x[1]));
  };
  for (unsigned sample = 0; sample < 2 * kSamples; ++sample) {
    bool hasTies = sample >= kSamples;
    draw(hasTies);
    if (laws.associative &&
        !(agree(3, fromLeft, fromRight) && agree(4, inLine, inPairs))) {
      laws.associative = false;
      laws.counterexample = difference;
    }
    if (!hasTies)
      laws.commutative &= agree(4, inPairs, swapped);
    laws.idempotent &= agree(
        1, [](Elements x) { return x[0]; },
        [&](Elements x) { return both(x[0], x[0]); });
  }
  if (!hasEvidence)
    laws.unknown = code.getFailed() ? code.getFailed() : op;
  return laws;
}

CombinerLaws mlir::autodiff::tryCombiner(Operation *op,
                                         const llvm::BitVector &active) {
  CombinerLaws laws = Trial(op, active, Trial::Others::Numbers).run();
  if (laws.associative || laws.unknown)
    return laws;
  CombinerLaws ofCounts = Trial(op, active, Trial::Others::Counts).run();
  return ofCounts.associative ? ofCounts : laws;
}

//===----------------------------------------------------------------------===//
// What derivatives need
//===----------------------------------------------------------------------===//

FailureOr<Combination>
mlir::autodiff::requireOrder(Operation *op, unsigned axis,
                             const llvm::BitVector &active) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  bool isReduction = isa<triton::ReduceOp>(op);
  bool inTree = type.getDimSize(axis) > 2;
  bool inAnyOrder = type.getDimSize(axis) > 1 && isReduction &&
                    op->getParentOfType<ModuleOp>()->hasAttr(kAnyOrderAttr);
  if ((!inTree && !inAnyOrder) || mutation::isMade("combiner:of any kind"))
    return Combination::Associative;
  CombinerLaws laws = tryCombiner(op, active);
  bool isTree = laws.associative || !inTree;
  if (!laws.unknown && isTree && (laws.commutative || !inAnyOrder))
    return Combination::Associative;
  if (!laws.unknown && laws.idempotent &&
      llvm::all_of(op->getOperands(),
                   [&](Value source) { return isUniformAlong(source, axis); }))
    return Combination::Idempotent;

  InFlightDiagnostic error = op->emitError("no derivative rule for a ")
                             << (isReduction ? "reduction" : "scan")
                             << " whose combine function";
  std::string at = spellPosition(op->getRegion(0).front().front().getLoc());
  if (!at.empty())
    error << " (" << at << ")";
  if (laws.unknown)
    error << " cannot be tried on numbers, because of '"
          << laws.unknown->getName()
          << "': whether it is associative is not known; write it with "
             "arithmetic and functions of triton.language";
  else if (!isTree)
    error << " is not associative: " << laws.counterexample
          << ", depending on the order, and Triton keeps none; for a mean, "
             "divide tl.sum by the number of elements; of equal elements, take "
             "one, with tl.max";
  else
    error << " is not commutative: on GPUs, Triton's reductions swap sides; "
             "tl.associative_scan keeps the order, and its last element is the "
             "result";
  return failure();
}
