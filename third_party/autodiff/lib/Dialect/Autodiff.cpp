//===- Autodiff.cpp - The autodiff dialect --------------------------------===//
#include "autodiff/Dialect/Autodiff.h"

#include "ExprText.h"
#include "autodiff/Support/Elements.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "autodiff/Dialect/AutodiffDialect.cpp.inc"
#include "autodiff/Dialect/AutodiffEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "autodiff/Dialect/AutodiffAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "autodiff/Dialect/AutodiffOps.cpp.inc"

using namespace mlir;

static LogicalResult verifyFloats(autodiff::CustomVjpOp op, TypeRange types,
                                  TypeRange likes, llvm::StringRef what,
                                  llvm::StringRef derivative) {
  if (types.size() != likes.size())
    return op.emitOpError() << "has " << likes.size() << " " << what << "s but "
                            << types.size() << " " << derivative << "s";
  for (auto [type, like] : llvm::zip_equal(types, likes)) {
    auto tile = dyn_cast<RankedTensorType>(type);
    auto likeTile = dyn_cast<RankedTensorType>(like);
    bool sameShape = tile && likeTile ? tile.getShape() == likeTile.getShape()
                                      : !tile && !likeTile;
    if (!sameShape || !autodiff::isFloat(type))
      return op.emitOpError() << "has a " << derivative << " of type " << type
                              << " for " << what << " of type " << like;
  }
  return success();
}

triton::AxisMap autodiff::SwapOp::getAxisMap(unsigned operand) {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  triton::AxisMap map(rank, rank);
  for (unsigned axis : llvm::seq<unsigned>(0, rank))
    if (axis != getAxis())
      map.keep(axis, axis);
  return map;
}
bool autodiff::SwapOp::takesElements(unsigned operand) { return true; }

LogicalResult autodiff::CustomVjpOp::verify() {
  if (getValues().getTypes() != getResultTypes())
    return emitOpError("results should have the types of the values");
  TypeRange inputs = getInputs().getTypes(), results = getResultTypes();
  auto verifyMap = [&](Region &region, TypeRange from, llvm::StringRef source,
                       TypeRange to, llvm::StringRef target,
                       llvm::StringRef derivative) -> LogicalResult {
    Block &block = region.front();
    auto yield = dyn_cast<YieldOp>(block.getTerminator());
    if (!yield)
      return emitOpError("should end with autodiff.yield");
    TypeRange arguments = block.getArgumentTypes();
    bool takesValues = arguments.size() == from.size() + results.size() &&
                       arguments.take_back(results.size()) == results;
    if (takesValues)
      arguments = arguments.drop_back(results.size());
    if (failed(verifyFloats(*this, arguments, from, source, derivative)))
      return failure();
    return verifyFloats(*this, yield.getYielded().getTypes(), to, target,
                        derivative);
  };
  if (failed(verifyMap(getPullback(), results, "result", inputs, "input",
                       "cotangent")))
    return failure();
  if (getPushforward().empty())
    return success();
  return verifyMap(getPushforward(), inputs, "input", results, "result",
                   "tangent");
}

/// Sizes are the same for all programs of a launch.
static LogicalResult verifySize(Operation *op, autodiff::ExprAttr size) {
  using Kind = autodiff::ExprKind;
  bool varies = size.hasSubexpression([](autodiff::ExprAttr part) {
    return llvm::is_contained(
        {Kind::ProgramId, Kind::InEachProgram, Kind::OfPrograms},
        part.getKind());
  });
  return varies ? op->emitOpError("is of a number that programs differ in")
                : success();
}

LogicalResult autodiff::SizeOp::verify() {
  return verifySize(*this, getExpression());
}

LogicalResult autodiff::ProgramsOp::verify() {
  if (getExtents().size() != getNumResults())
    return emitOpError("needs an extent for each number");
  for (auto extent : getExtents().getAsRange<ExprAttr>())
    if (failed(verifySize(*this, extent)))
      return failure();
  return success();
}

LogicalResult autodiff::SwapOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (static_cast<int64_t>(getAxis()) >= type.getRank() ||
      type.getDimSize(getAxis()) != 2)
    return emitOpError("needs an axis of size 2");
  return success();
}

void mlir::autodiff::ResidualOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (getPinned())
    effects.emplace_back(MemoryEffects::Write::get());
}

void mlir::autodiff::AutodiffDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autodiff/Dialect/AutodiffAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autodiff/Dialect/AutodiffOps.cpp.inc"
      >();
}
