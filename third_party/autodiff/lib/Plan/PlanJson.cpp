//===- PlanJson.cpp - Attributes as the JSON of a plan --------------------===//
#include "PlanJson.h"

#include "autodiff/Plan/Plan.h"
#include "autodiff/Support/Mutation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;
using Json = llvm::json::Value;

template <typename AttrT> static Array toList(ArrayRef<AttrT> attributes) {
  Array list;
  for (AttrT attribute : attributes)
    list.push_back(toJSON(attribute));
  return list;
}

static Json write(ArrayAttr list) { return toList(list.getValue()); }
static Json write(StringAttr text) { return text.getValue(); }

static Json write(ExprAttr expr) {
  if (std::optional<int64_t> number = expr.getConstant())
    return *number;
  Array array{stringifyExprKind(expr.getKind())};
  switch (expr.getKind()) {
  case ExprKind::Argument:
  case ExprKind::Grid:
  case ExprKind::ProgramId:
  case ExprKind::Counted:
  case ExprKind::Extent:
  case ExprKind::Lead:
  case ExprKind::Pitch:
  case ExprKind::Span:
  case ExprKind::Element:
    array.push_back(expr.getNumber());
    break;
  default:
    break;
  }
  for (ExprAttr operand : {expr.getLhs(), expr.getRhs()})
    if (operand)
      array.push_back(write(operand));
  return array;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static Json write(DigitAttr digit) {
  Array array{toJSON(digit.getStride()), toJSON(digit.getExtent())};
  switch (digit.getOwner()) {
  case DigitOwner::Any:
    break;
  case DigitOwner::Axis:
    array.push_back(digit.getNumber());
    break;
  case DigitOwner::Loop:
    array.push_back(llvm::formatv("loop {0}", digit.getNumber()).str());
    break;
  case DigitOwner::Program:
    array.push_back("program");
    break;
  }
  return array;
}

static Json write(DimensionAttr dim) {
  Object object{{"stride", toJSON(dim.getStride())},
                {"digits", toList(dim.getDigits())},
                {"bound", toJSON(dim.getBound())}};
  if (dim.getChunkBound())
    object["chunk"] = Array{dim.getChunkDigits(), toJSON(dim.getChunkBound())};
  if (dim.getStart())
    object["start"] = toJSON(dim.getStart());
  return object;
}

static Json write(LimitAttr limit) {
  return Array{toJSON(limit.getNumber()), toJSON(limit.getMost())};
}

static Json write(ConstraintAttr constraint) {
  return Array{toList(constraint.getDigits()), toJSON(constraint.getBound())};
}

static Json write(CheckAttr check) {
  Object object{{"kind", stringifyCheckKind(check.getKind())},
                {"argument", check.getArgument()},
                {"offset", toJSON(check.getOffset())},
                {"dims", toList(check.getDims())}};
  if (!check.getNotNegative().empty() &&
      !mutation::isMade("plan:numbers below zero"))
    object["notNegative"] = toList(check.getNotNegative());
  if (check.getMoves())
    object["moves"] = true;
  if (!check.getPrograms().empty())
    object["programs"] = toList(check.getPrograms());
  if (check.getSummed() && !mutation::isMade("plan:sums that are not checked"))
    object["summed"] = check.getSummed();
  if (check.getWhole() && !mutation::isMade("plan:parts in place of all"))
    object["whole"] = true;
  if (!check.getWithin().empty() &&
      !mutation::isMade("plan:digits beyond their limits"))
    object["within"] = toList(check.getWithin());
  return object;
}

static Json write(ReachAttr reach) {
  Object object{{"offset", toJSON(reach.getOffset())},
                {"dims", toList(reach.getDims())},
                {"exact", reach.getExact()}};
  if (!reach.getNotNegative().empty())
    object["notNegative"] = toList(reach.getNotNegative());
  if (!reach.getGuards().empty() &&
      !mutation::isMade("plan:a reach without its guards"))
    object["guards"] = toList(reach.getGuards());
  return object;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Json write(BufferAttr buffer) {
  return Object{{"name", buffer.getName()},
                {"kind", stringifyBufferKind(buffer.getKind())},
                {"dtype", spellType(buffer.getElementType())},
                {"size", toJSON(buffer.getSize())}};
}

static Json write(GradientAttr gradient) {
  Object object{{"argument", gradient.getArgument()},
                {"dtype", spellType(gradient.getElementType())},
                {"init", stringifyGradientInit(gradient.getInit())},
                {"accumulate", stringifyAccumulate(gradient.getAccumulate())},
                {"returned", gradient.getReturned()},
                {"checks", toList(gradient.getChecks())}};
  if (gradient.getOverwritten() &&
      !mutation::isMade("plan:gradients that are left"))
    object["overwritten"] = true;
  if (gradient.getPartials())
    object["partials"] = toJSON(gradient.getPartials());
  if (gradient.getRemainder() && !mutation::isMade("plan:no remainder"))
    object["remainder"] = true;
  if (!gradient.getReach().empty())
    object["reach"] = toList(gradient.getReach());
  if (gradient.getConfined() != Confined::Nothing) {
    object["confined"] = stringifyConfined(gradient.getConfined());
    object["margin"] = gradient.getMargin();
  }
  return object;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static Json write(LaunchAttr launch) {
  Object object{{"grid", toList(launch.getGrid())},
                {"assumed", toList(launch.getAssumed())},
                {"checks", toList(launch.getChecks())}};
  if (launch.getPosition())
    object["position"] = toJSON(launch.getPosition());
  if (launch.getBatched())
    object["batch"] = Object{{"length", launch.getLength()},
                             {"positions", toJSON(launch.getBatched())}};
  if (launch.getUnraveled())
    object["unraveled"] = Object{{"lengths", Array(launch.getLengths())},
                                 {"position", toJSON(launch.getUnraveled())}};
  return object;
}

/// The value for a key of a request.
static Json writeValue(NextAttr next) {
  switch (next.getKey()) {
  case RequestKey::Assume:
  case RequestKey::Reload:
  case RequestKey::Checkpoint:
  case RequestKey::Deterministic:
    return next.getValue().front().isConstant(1);
  case RequestKey::Axes:
    if (next.getValue().empty())
      return nullptr;
    [[fallthrough]];
  default:
    return toList(next.getValue());
  }
}

static Json write(NextAttr next) {
  Object object;
  if (!next.getNotNegative().empty())
    object["notNegative"] = toList(next.getNotNegative());
  if (next.getFailure() != Failure::Nothing)
    object["fails"] = stringifyFailure(next.getFailure());
  if (next.getArgument() >= 0)
    object["argument"] = next.getArgument();
  if (next.getKey() != RequestKey::None) {
    object["ask"] = stringifyRequestKey(next.getKey());
    object["value"] = writeValue(next);
  }
  return object;
}

static Json write(StoredAttr stored) {
  Object object{{"argument", stored.getArgument()},
                {"position", toJSON(stored.getPosition())},
                {"reach", toJSON(stored.getReach())},
                {"deciders", toJSON(stored.getDeciders())}};
  if (stored.getFunction())
    object["function"] = stored.getFunction().getInt();
  if (stored.getExchange())
    object["exchange"] = Array(stored.getExchange().asArrayRef());
  if (stored.getCheck())
    object["check"] = toJSON(stored.getCheck());
  return object;
}

static Json write(AccessedAttr accesses) {
  return Object{{"argument", accesses.getArgument()},
                {"reach", toList(accesses.getReach())}};
}

static Json write(LiveAttr live) {
  return Object{{"argument", live.getArgument()},
                {"reach", toList(live.getReach())}};
}

Json mlir::autodiff::toJSON(Attribute attribute) {
  if (!attribute)
    return nullptr;
  return llvm::TypeSwitch<Attribute, Json>(attribute)
      .Case<ArrayAttr, StringAttr, ExprAttr, DigitAttr, DimensionAttr,
            LimitAttr, ConstraintAttr, CheckAttr, ReachAttr, BufferAttr,
            GradientAttr, LaunchAttr, StoredAttr, AccessedAttr, LiveAttr,
            NextAttr>([](auto known) { return write(known); });
}

Json mlir::autodiff::toJSON(MLIRContext *context, const ScalarExpr &number) {
  return toJSON(number.get(context));
}
