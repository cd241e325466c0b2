//===- MapOps.cpp - elementwise operations --------------------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::triton;

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// The value that `src`, given by a `Inverse`, was made from, if it has `type`.
template <typename Inverse> static Value undo(Value src, Type type) {
  auto inverse = src.getDefiningOp<Inverse>();
  return inverse && inverse.getSrc().getType() == type ? inverse.getSrc()
                                                       : Value();
}

OpFoldResult IntToPtrOp::fold(FoldAdaptor) {
  return undo<PtrToIntOp>(getSrc(), getType());
}

OpFoldResult PtrToIntOp::fold(FoldAdaptor) {
  return undo<IntToPtrOp>(getSrc(), getType());
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  return undo<BitcastOp>(getSrc(), getType());
}

LogicalResult BitcastOp::verify() {
  Type from = getSrc().getType(), to = getType();
  bool fromPointer = isa<PointerType>(getElementTypeOrSelf(from));
  bool toPointer = isa<PointerType>(getElementTypeOrSelf(to));
  if (fromPointer && toPointer)
    return success();
  if (fromPointer || toPointer)
    return emitOpError("cannot cast between a pointer and a non-pointer: ")
           << from << " to " << to;
  if (getElementBitWidth(from) != getElementBitWidth(to))
    return emitOpError("cannot cast between types of different widths: ")
           << from << " to " << to;
  return success();
}

OpFoldResult FpToFpOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  auto to = cast<FloatType>(getElementTypeOrSelf(getType()));
  auto mode = getRounding() == RoundingMode::RTZ ? APFloat::rmTowardZero
                                                 : APFloat::rmNearestTiesToEven;
  auto convert = [&](APFloat value) {
    bool losesInfo;
    value.convert(to.getFloatSemantics(), mode, &losesInfo);
    return value;
  };
  if (auto scalar = dyn_cast_or_null<FloatAttr>(adaptor.getSrc()))
    return FloatAttr::get(to, convert(scalar.getValue()));
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSrc()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()),
                                  convert(splat.getSplatValue<APFloat>()));
  return {};
}

LogicalResult FpToFpOp::verify() {
  unsigned from = getElementBitWidth(getSrc().getType());
  unsigned to = getElementBitWidth(getType());
  if (from > to && !getRounding())
    return emitOpError("a narrowing conversion needs a rounding mode");
  if (from <= to && from != to && getRounding())
    return emitOpError("a widening conversion takes no rounding mode");
  return success();
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

OpFoldResult MulhiUIOp::fold(FoldAdaptor adaptor) {
  APInt x, y;
  if (!matchPattern(adaptor.getY(), m_ConstantInt(&y)))
    return {};
  if (y.isZero())
    return adaptor.getY();
  if (!matchPattern(adaptor.getX(), m_ConstantInt(&x)))
    return {};
  unsigned width = x.getBitWidth();
  APInt upper =
      (x.zext(2 * width) * y.zext(2 * width)).extractBits(width, width);
  if (auto shaped = dyn_cast<ShapedType>(getType()))
    return DenseElementsAttr::get(shaped, upper);
  return IntegerAttr::get(getType(), upper);
}

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getOffset(), m_Zero()))
    return getPtr();
  return {};
}

//===----------------------------------------------------------------------===//
// Functions that are given by name, by assembly, or by a region
//===----------------------------------------------------------------------===//

/// What may touch memory counts as reading and writing all of it.
static void
anyEffect(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
              &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void ExternElementwiseOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getPure())
    anyEffect(effects);
}

Speculation::Speculatability ExternElementwiseOp::getSpeculatability() {
  return getPure() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

void ElementwiseInlineAsmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getPure())
    anyEffect(effects);
}

Speculation::Speculatability ElementwiseInlineAsmOp::getSpeculatability() {
  return getPure() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

LogicalResult ElementwiseInlineAsmOp::verify() {
  int64_t packed = getPackedElementAttr().getInt();
  if (packed < 1)
    return emitOpError("packed_element must be positive, got ") << packed;
  for (Type type : getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (tensor.getNumElements() % packed)
        return emitOpError("number of elements of ")
               << type << " is not a multiple of packed_element (" << packed
               << ")";
  return success();
}

LogicalResult MapElementwiseOp::verify() {
  if (getSrcs().empty())
    return emitOpError("needs at least one source");
  int64_t pack = getPackAttr().getInt();
  if (pack < 1)
    return emitOpError("pack must be positive, got ") << pack;
  return success();
}

LogicalResult MapElementwiseOp::verifyRegions() {
  Region &region = getScalarOp();
  if (region.empty())
    return emitOpError("needs a region");
  SmallVector<Type> arguments, results;
  // A region has not that many arguments: the number may be anything.
  unsigned pack = std::min(getPack(), region.getNumArguments() + 1);
  for (unsigned i = 0; i < pack; ++i) {
    for (Type type : getSrcs().getTypes())
      arguments.push_back(getElementTypeOrSelf(type));
    for (Type type : getResultTypes())
      results.push_back(getElementTypeOrSelf(type));
  }
  // Packed values come source by source, not element by element.
  auto sameTypes = [&](TypeRange got, SmallVectorImpl<Type> &want) {
    return pack == 1
               ? llvm::equal(got, want)
               : got.size() == want.size() &&
                     std::is_permutation(got.begin(), got.end(), want.begin());
  };
  if (!sameTypes(region.getArgumentTypes(), arguments))
    return emitOpError("the region must take ")
           << getPack() << " element(s) of each source";
  for (Block &block : region)
    if (auto end = dyn_cast<MapElementwiseReturnOp>(block.back()))
      if (!sameTypes(end.getOperandTypes(), results))
        return end.emitOpError("must return ")
               << getPack() << " element(s) of each result";
  return success();
}
