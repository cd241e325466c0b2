//===- Types.cpp - TTIR types to tensors ----------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

RankedTensorType cpu::asTile(Type type) {
  return dyn_cast<RankedTensorType>(type);
}

bool cpu::isPointerTile(Type type) {
  RankedTensorType tile = asTile(type);
  return tile && isa<tt::PointerType>(tile.getElementType());
}

FloatType cpu::getFloat8(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() == 8 ? element : FloatType();
}

Type cpu::getScalarType(Type type) {
  if (isa<tt::PointerType>(type))
    return LLVM::LLVMPointerType::get(type.getContext());
  if (getFloat8(type))
    return IntegerType::get(type.getContext(), 8);
  return type;
}

Type cpu::getStorageType(Type type) {
  if (type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  if (isa<tt::PointerType>(type))
    return IntegerType::get(type.getContext(), 64);
  return getScalarType(type);
}

RankedTensorType cpu::getStorageTensor(RankedTensorType tile) {
  return RankedTensorType::get(tile.getShape(),
                               getStorageType(tile.getElementType()));
}

void cpu::convertType(Type type, SmallVectorImpl<Type> &types) {
  RankedTensorType tile = asTile(type);
  if (!tile)
    return types.push_back(getScalarType(type));
  if (isPointerTile(tile))
    types.push_back(LLVM::LLVMPointerType::get(type.getContext()));
  types.push_back(getStorageTensor(tile));
}

int64_t cpu::getPointeeSize(Type type) {
  auto pointer = cast<tt::PointerType>(getElementTypeOrSelf(type));
  Type pointee = pointer.getPointeeType();
  if (isa<tt::PointerType>(pointee))
    return 8;
  return std::max<int64_t>(1, pointee.getIntOrFloatBitWidth() / 8);
}
