//===- ProgramBuffers.cpp - Memory that belongs to one program ------------===//
#include "autodiff/Builders/ProgramBuffers.h"

#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Regrid.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/Statement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

Type mlir::autodiff::getStoredElement(Type value) {
  Type element = getElementTypeOrSelf(value);
  return element.isInteger(1) ? IntegerType::get(value.getContext(), 8)
                              : element;
}

/// The row-major index of every element of a tile, as i32.
static Value linearIndices(OpBuilder &b, Location loc, RankedTensorType type) {
  Type i32 = b.getI32Type();
  Value flat = triton::MakeRangeOp::create(
      b, loc, RankedTensorType::get({type.getNumElements()}, i32), 0,
      type.getNumElements());
  if (type.getRank() == 1)
    return flat;
  // Axis by axis: reshaping a range would cost a layout conversion.
  Value sum;
  int64_t stride = type.getNumElements();
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    stride /= size;
    Value index = triton::MakeRangeOp::create(
        b, loc, RankedTensorType::get({size}, i32), 0, size);
    for (int64_t other = 0; other < type.getRank(); ++other)
      if (other != static_cast<int64_t>(axis))
        index = triton::ExpandDimsOp::create(b, loc, index, other);
    auto small = cast<RankedTensorType>(index.getType());
    if (stride != 1) {
      Value factor = arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(small, b.getI32IntegerAttr(stride)));
      index = arith::MulIOp::create(b, loc, index, factor);
    }
    auto full = RankedTensorType::get(type.getShape(), i32);
    if (small != full)
      index = triton::BroadcastOp::create(b, loc, full, index);
    sum = sum ? Value(arith::AddIOp::create(b, loc, sum, index)) : index;
  }
  return sum;
}

static Value wide(OpBuilder &b, Location loc, Value value) {
  return castInteger(b, loc, value, b.getI64Type());
}

/// The number of this program in the whole grid, and the number of programs.
static std::pair<Value, Value> linearProgramId(OpBuilder &b, Location loc) {
  if (!findVariable(loc).empty())
    loc = withVariable(loc, "program");
  Value id, count;
  for (int axis : {2, 1, 0}) {
    Value size = wide(b, loc, triton::GetNumProgramsOp::create(b, loc, axis));
    Value index = wide(b, loc, triton::GetProgramIdOp::create(b, loc, axis));
    if (!id) {
      id = index;
      count = size;
      continue;
    }
    id = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, id, size),
                               index);
    count = arith::MulIOp::create(b, loc, count, size);
  }
  return {id, count};
}

Value mlir::autodiff::slotOfProgram(OpBuilder &b, Location loc, Value entry) {
  auto [slot, programs] = linearProgramId(b, loc);
  if (!entry)
    return slot;
  return arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, wide(b, loc, entry), programs),
      slot);
}

Value mlir::autodiff::slotOfDigits(OpBuilder &b, Location loc,
                                   triton::FuncOp kernel,
                                   ArrayRef<ScalarExpr> digits) {
  Value slot = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
  for (const ScalarExpr &digit : llvm::reverse(digits)) {
    Value extent = wide(b, loc, createSize(b, loc, extentOf(digit)));
    Value number = digit.emit(b, loc, kernel.getArguments());
    slot = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, slot, extent), number);
  }
  return slot;
}

Value mlir::autodiff::pointersFrom(OpBuilder &b, Location loc, Value base,
                                   Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return base;
  auto pointers = tensor.clone(base.getType());
  Value tile = triton::SplatOp::create(b, loc, pointers, base);
  return triton::AddPtrOp::create(b, loc, pointers, tile,
                                  linearIndices(b, loc, tensor));
}

static Value slotPointers(OpBuilder &b, Location loc, Value buffer, Value slot,
                          Type type) {
  Value size =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(elementsOf(type)));
  Value offset = arith::MulIOp::create(b, loc, slot, size);
  Value base =
      triton::AddPtrOp::create(b, loc, buffer.getType(), buffer, offset);
  return pointersFrom(b, loc, base, type);
}

void mlir::autodiff::storeTo(OpBuilder &b, Location loc, Value pointers,
                             Value value) {
  if (getElementTypeOrSelf(value.getType()).isInteger(1))
    value = arith::ExtUIOp::create(
        b, loc, withElementType(value.getType(), b.getI8Type()), value);
  triton::StoreOp::create(b, loc, pointers, value, Value());
}

Value mlir::autodiff::loadFrom(OpBuilder &b, Location loc, Value pointers,
                               Value mask, Type type) {
  Value value = triton::LoadOp::create(b, loc, pointers, mask, Value());
  if (!getElementTypeOrSelf(type).isInteger(1))
    return value;
  return arith::TruncIOp::create(b, loc, type, value);
}

void mlir::autodiff::storeToSlot(OpBuilder &b, Location loc, Value buffer,
                                 Value slot, Value value) {
  storeTo(b, loc, slotPointers(b, loc, buffer, slot, value.getType()), value);
}

Value mlir::autodiff::loadFromSlot(OpBuilder &b, Location loc, Value buffer,
                                   Value slot, Type type) {
  return loadFrom(b, loc, slotPointers(b, loc, buffer, slot, type), Value(),
                  type);
}

unsigned mlir::autodiff::countBuffers(triton::FuncOp kernel) {
  unsigned count = 0;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto operand = kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr);
    count += operand && operand.getKind() == OperandKind::Buffer;
  }
  return count;
}

unsigned mlir::autodiff::nextBuffer(ModuleOp module) {
  unsigned next = 0;
  for (auto kernel : module.getOps<triton::FuncOp>())
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
      if (auto operand =
              kernel.getArgAttrOfType<OperandAttr>(index, kOperandAttr))
        if (operand.getKind() == OperandKind::Buffer)
          next = std::max(next, operand.getIndex() + 1);
  return next;
}

BlockArgument mlir::autodiff::appendBuffer(triton::FuncOp kernel,
                                           unsigned index, Type value,
                                           BufferAttr description) {
  MLIRContext *context = kernel.getContext();
  BlockArgument buffer = appendOperand(
      kernel, triton::PointerType::get(getStoredElement(value), 1),
      OperandAttr::get(context, OperandKind::Buffer, index), description);
  kernel.setArgAttr(buffer.getArgNumber(), "tt.divisibility",
                    Builder(context).getI32IntegerAttr(16));
  return buffer;
}

void mlir::autodiff::nameBuffer(BlockArgument buffer, BufferKind kind,
                                Value held) {
  StringRef variable = findVariable(held.getLoc());
  if (!variable.empty())
    buffer.setLoc(withVariable(buffer.getOwner()->getParentOp()->getLoc(),
                               stringifyBufferKind(kind) + "_" +
                                   nameInStatement(held, variable)));
}

BufferAttr mlir::autodiff::describeMemory(BufferKind kind, llvm::StringRef name,
                                          Type value, ExprAttr elements) {
  return BufferAttr::get(value.getContext(), kind, name,
                         getStoredElement(value), elements);
}

BufferAttr mlir::autodiff::describeBuffer(BufferKind kind, llvm::StringRef name,
                                          Type value, ExprOperand entries) {
  MLIRContext *context = value.getContext();
  ExprAttr size = ExprAttr::get(context, elementsOf(value));
  for (int axis : {0, 1, 2})
    size = mulOf(gridOf(context, axis), size);
  return describeMemory(kind, name, value, mulOf(entries, size));
}

Value mlir::autodiff::saveForBackward(OpBuilder &atSave, Value value,
                                      OpBuilder &atLoad, StringRef name) {
  auto kernelOf = [](OpBuilder &b) {
    return cast<triton::FuncOp>(b.getBlock()->getParentOp());
  };
  triton::FuncOp forward = kernelOf(atSave), backward = kernelOf(atLoad);
  Location loc = value.getLoc();
  Type type = value.getType();
  unsigned index = countBuffers(backward);
  BufferAttr description = describeBuffer(BufferKind::Saved, name, type, 1);
  auto append = [&](triton::FuncOp kernel) {
    BlockArgument buffer = appendBuffer(kernel, index, type, description);
    nameBuffer(buffer, BufferKind::Saved, value);
    return buffer;
  };
  storeToSlot(atSave, loc, append(forward), slotOfProgram(atSave, loc), value);
  return loadFromSlot(atLoad, loc, append(backward), slotOfProgram(atLoad, loc),
                      type);
}

void mlir::autodiff::lowerRecord(PushOp push, Value written,
                                 ArrayRef<PopOp> pops, Value read) {
  OpBuilder builder(push);
  storeToSlot(builder, push.getLoc(), written,
              slotOfProgram(builder, push.getLoc(), push.getIteration()),
              push.getValue());
  for (PopOp pop : pops) {
    builder.setInsertionPoint(pop);
    Value slot = slotOfProgram(builder, pop.getLoc(), pop.getIteration());
    pop.replaceAllUsesWith(
        loadFromSlot(builder, pop.getLoc(), read, slot, pop.getType()));
    pop.erase();
  }
  push.erase();
}
