//===- Types.cpp - the types of the tt dialect ----------------------------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "triton/Dialect/Triton/IR/Types.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectImplementation.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::triton;

#define GET_TYPEDEF_CLASSES
#include "triton/Dialect/Triton/IR/Types.cpp.inc"

void TritonDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "triton/Dialect/Triton/IR/Types.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// PointerType
//===----------------------------------------------------------------------===//

/// Up to Triton 3.8 a number; from 3.9 on "global" or "constant".
static ParseResult parseAddressSpace(AsmParser &parser, int &addressSpace) {
  std::string name;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalString(&name)))
    return parser.parseInteger(addressSpace);
  if (name == "global")
    addressSpace = PointerType::globalAddressSpace;
  else if (name == "constant")
    addressSpace = PointerType::constantAddressSpace;
  else
    return parser.emitError(loc) << "unknown address space \"" << name << '"';
  return success();
}

Type PointerType::parse(AsmParser &parser) {
  Type pointee;
  int addressSpace = PointerType::globalAddressSpace;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(pointee))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      failed(parseAddressSpace(parser, addressSpace)))
    return {};
  if (parser.parseGreater())
    return {};
  return PointerType::getChecked([&] { return parser.emitError(loc); },
                                 parser.getContext(), pointee, addressSpace);
}

void PointerType::print(AsmPrinter &printer) const {
  printer << '<' << getPointeeType();
  if (getAddressSpace() == constantAddressSpace)
    printer << ", \"constant\"";
  else if (getAddressSpace() != globalAddressSpace)
    printer << ", " << getAddressSpace();
  printer << '>';
}

LogicalResult
PointerType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    Type pointee, int addressSpace) {
  if (!pointee)
    return emitError() << "a pointer needs the type that it points to";
  if (addressSpace < 0)
    return emitError() << "negative address space " << addressSpace;
  if (pointee.isIntOrFloat() || isa<PointerType>(pointee))
    return success();
  // Raw pointers to anything the host hands over are opaque bytes here.
  if (auto tensor = dyn_cast<RankedTensorType>(pointee)) {
    if (tensor.hasStaticShape())
      return success();
    return emitError() << "a block pointer needs a static shape, got "
                       << pointee;
  }
  return emitError() << "a pointer to " << pointee << " is not supported";
}

//===----------------------------------------------------------------------===//
// TensorDescType
//===----------------------------------------------------------------------===//

Type TensorDescType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  Type full;
  OptionalParseResult isType = parser.parseOptionalType(full);
  if (isType.has_value()) {
    if (failed(*isType) || parser.parseGreater())
      return {};
    auto block = dyn_cast<RankedTensorType>(full);
    if (!block || !block.hasStaticShape()) {
      parser.emitError(loc, "expected a ranked tensor type of static shape");
      return {};
    }
    return get(block, /*brief=*/false);
  }
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  if (!TensorType::isValidElementType(element)) {
    parser.emitError(loc, "invalid element type ") << element;
    return {};
  }
  return get(RankedTensorType::get(shape, element), /*brief=*/true);
}

void TensorDescType::print(AsmPrinter &printer) const {
  printer << '<';
  if (getBrief()) {
    printer.printDimensionList(getBlockType().getShape());
    if (getBlockType().getRank())
      printer << 'x';
    printer << getBlockType().getElementType();
  } else {
    printer << getBlockType();
  }
  printer << '>';
}

RankedTensorType TensorDescType::getSignlessBlockType() const {
  RankedTensorType block = getBlockType();
  if (auto integer = dyn_cast<IntegerType>(block.getElementType()))
    return block.clone(IntegerType::get(getContext(), integer.getWidth()));
  return block;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Type mlir::triton::replaceElementType(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

Type mlir::triton::getPointeeType(Type type) {
  if (auto pointer = dyn_cast<PointerType>(getElementTypeOrSelf(type)))
    return replaceElementType(type, pointer.getPointeeType());
  return NoneType::get(type.getContext());
}

PointerType mlir::triton::getPointerType(Type type, int addressSpace) {
  return PointerType::get(type, addressSpace);
}

Type mlir::triton::getPointerTypeSameShape(Type type, int addressSpace) {
  return replaceElementType(
      type, getPointerType(getElementTypeOrSelf(type), addressSpace));
}

bool mlir::triton::isTensorPointerType(Type type) {
  auto pointer = dyn_cast<PointerType>(type);
  return pointer && isa<RankedTensorType>(pointer.getPointeeType());
}

Type mlir::triton::getMaskType(Type type) {
  if (isTensorPointerType(type))
    type = cast<PointerType>(type).getPointeeType();
  return replaceElementType(type, IntegerType::get(type.getContext(), 1));
}

Type mlir::triton::getBasePointerType(Type blockPointer) {
  if (!isTensorPointerType(blockPointer))
    return NoneType::get(blockPointer.getContext());
  auto pointer = cast<PointerType>(blockPointer);
  return getPointerType(getElementTypeOrSelf(pointer.getPointeeType()),
                        pointer.getAddressSpace());
}

void mlir::triton::makePointersGlobal(Operation *root) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](PointerType type) -> std::optional<Type> {
    if (type.getAddressSpace() != PointerType::constantAddressSpace)
      return std::nullopt;
    return PointerType::get(type.getPointeeType(),
                            PointerType::globalAddressSpace);
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

unsigned mlir::triton::getElementBitWidth(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<PointerType>(element) ? 64 : element.getIntOrFloatBitWidth();
}
