//===- Memory.cpp - Loads, stores and atomics -----------------------------===//
//
// Masked lanes do not access memory: the access is inside a branch, which
// LLVM's vectorizer turns into a masked access.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Numerics.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

static bool isBlockPointer(Value ptr) {
  auto type = dyn_cast<tt::PointerType>(ptr.getType());
  return type && isa<RankedTensorType>(type.getPointeeType());
}

/// Reads a value of TTIR type `type`; i1 takes a byte.
static Value loadValue(OpBuilder &b, Location loc, Type type, Value address,
                       bool isVolatile = false) {
  if (isa<tt::PointerType>(type))
    return LLVM::LoadOp::create(b, loc, getScalarType(type), address, 8,
                                isVolatile);
  Type storage = getStorageType(type);
  Value value =
      LLVM::LoadOp::create(b, loc, storage, address,
                           storage.getIntOrFloatBitWidth() / 8, isVolatile);
  if (!type.isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(storage));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
}

static void storeValue(OpBuilder &b, Location loc, Value value, Value address) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  unsigned size = isa<LLVM::LLVMPointerType>(value.getType())
                      ? 8
                      : value.getType().getIntOrFloatBitWidth() / 8;
  LLVM::StoreOp::create(b, loc, value, address, size);
}

/// The load itself, under its mask. `makeAddress` emits inside the branch.
static Value guardedLoad(OpBuilder &b, Lowering &lowering, tt::LoadOp op,
                         Value mask, Value other,
                         llvm::function_ref<Value(OpBuilder &)> makeAddress) {
  Location loc = op.getLoc();
  Type type = getElementTypeOrSelf(op.getResult().getType());
  if (!mask ||
      autodiff::mutation::isMade("cpu-load:lanes that a mask leaves out"))
    return loadValue(b, loc, type, makeAddress(b), op.getIsVolatile());
  if (!other || autodiff::mutation::isMade("cpu-load:nothing in their place"))
    other = lowering.getPoison(b, loc, getScalarType(type));
  auto branch = scf::IfOp::create(
      b, loc, mask,
      [&](OpBuilder &b, Location loc) {
        Value value =
            loadValue(b, loc, type, makeAddress(b), op.getIsVolatile());
        scf::YieldOp::create(b, loc, value);
      },
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, other); });
  return branch.getResult(0);
}

Value Lowering::lowerDeferredLoad(OpBuilder &b, tt::LoadOp op, Element &element,
                                  ArrayRef<Value> indices) {
  // Values that other elements share are evaluated outside the branch.
  Value mask = op.getMask() ? element.get(op.getMask(), indices) : Value();
  Value other = op.getOther() ? element.get(op.getOther(), indices) : Value();
  Value address = element.getAddress(op.getPtr(), indices);
  return guardedLoad(b, *this, op, mask, other,
                     [&](OpBuilder &) { return address; });
}

void Lowering::lowerLoad(tt::LoadOp op) {
  if (isBlockPointer(op.getPtr()))
    return fail(op, "through a block pointer");
  Value result = op.getResult();
  if (!asTile(result.getType())) {
    Value mask = op.getMask() ? getScalar(op.getMask()) : Value();
    Value other = op.getOther() ? getScalar(op.getOther()) : Value();
    Value address = getScalar(op.getPtr());
    setScalar(result, guardedLoad(builder, *this, op, mask, other,
                                  [&](OpBuilder &) { return address; }));
    return;
  }
  if (isPointerTile(result.getType()))
    return fail(op, "of pointers");
  if (placement.isStored(result))
    setTensor(result, getTensor(result));
}

void Lowering::lowerStore(tt::StoreOp op) {
  if (isBlockPointer(op.getPtr()))
    return fail(op, "through a block pointer");
  Location loc = op.getLoc();
  RankedTensorType tile = asTile(op.getPtr().getType());
  // A store evaluates everything before it writes: the values it reads are
  // either stored tiles or pure expressions.
  auto body = [&](OpBuilder &b, ArrayRef<Value> indices) {
    Element element(*this, b);
    Value value = element.get(op.getValue(), indices);
    Value address = element.getAddress(op.getPtr(), indices);
    if (!op.getMask() ||
        autodiff::mutation::isMade("cpu-store:lanes that a mask leaves out"))
      return storeValue(b, loc, value, address);
    Value mask = element.get(op.getMask(), indices);
    scf::IfOp::create(b, loc, mask, [&](OpBuilder &b, Location loc) {
      storeValue(b, loc, value, address);
      scf::YieldOp::create(b, loc);
    });
  };
  forEach(loc, tile ? tile.getShape() : ArrayRef<int64_t>(), body);
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static LLVM::AtomicOrdering getOrdering(tt::MemSemantic semantic) {
  switch (semantic) {
  case tt::MemSemantic::RELAXED:
    return LLVM::AtomicOrdering::monotonic;
  case tt::MemSemantic::ACQUIRE:
    return LLVM::AtomicOrdering::acquire;
  case tt::MemSemantic::RELEASE:
    return LLVM::AtomicOrdering::release;
  case tt::MemSemantic::ACQUIRE_RELEASE:
    return LLVM::AtomicOrdering::acq_rel;
  }
  llvm_unreachable("unknown memory semantic");
}

static LLVM::AtomicBinOp getBinOp(tt::RMWOp op) {
  switch (op) {
  case tt::RMWOp::AND:
    return LLVM::AtomicBinOp::_and;
  case tt::RMWOp::OR:
    return LLVM::AtomicBinOp::_or;
  case tt::RMWOp::XOR:
    return LLVM::AtomicBinOp::_xor;
  case tt::RMWOp::ADD:
    return LLVM::AtomicBinOp::add;
  case tt::RMWOp::FADD:
    return LLVM::AtomicBinOp::fadd;
  case tt::RMWOp::MAX:
    return LLVM::AtomicBinOp::max;
  case tt::RMWOp::MIN:
    return LLVM::AtomicBinOp::min;
  case tt::RMWOp::UMAX:
    return autodiff::mutation::isMade("cpu-atomic:a sign that is none")
               ? LLVM::AtomicBinOp::max
               : LLVM::AtomicBinOp::umax;
  case tt::RMWOp::UMIN:
    return LLVM::AtomicBinOp::umin;
  case tt::RMWOp::XCHG:
    return LLVM::AtomicBinOp::xchg;
  }
  llvm_unreachable("unknown atomic operation");
}

/// Runs `body`, which gives the old value, for every lane whose mask is true.
/// Other lanes get zero.
void Lowering::lowerAtomic(
    Operation *op, Value ptr, Value mask,
    llvm::function_ref<Value(OpBuilder &, Value, Element &, ArrayRef<Value>)>
        body) {
  Location loc = op->getLoc();
  Value result = op->getResult(0);
  Type type = getScalarType(getElementTypeOrSelf(result.getType()));
  auto lane = [&](OpBuilder &b, ArrayRef<Value> indices) -> Value {
    Element element(*this, b);
    Value address = element.getAddress(ptr, indices);
    if (!mask ||
        autodiff::mutation::isMade("cpu-atomic:lanes that a mask leaves out"))
      return body(b, address, element, indices);
    Value isOn = element.get(mask, indices);
    Value off = getPoison(b, loc, type);
    // The operands are evaluated inside; nothing after the branch uses them.
    auto branch = scf::IfOp::create(
        b, loc, isOn,
        [&](OpBuilder &b, Location loc) {
          Element inner(*this, b);
          scf::YieldOp::create(b, loc, body(b, address, inner, indices));
        },
        [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, off); });
    return branch.getResult(0);
  };

  RankedTensorType tile = asTile(result.getType());
  if (!tile)
    return setScalar(result, lane(builder, {}));
  if (result.use_empty())
    return forEach(
        loc, tile.getShape(),
        [&](OpBuilder &b, ArrayRef<Value> indices) { lane(b, indices); });
  auto store = [&](OpBuilder &b, ArrayRef<Value> indices, ValueRange) {
    return SmallVector<Value>{lane(b, indices)};
  };
  setTensor(result, generate(loc, getStorageTensor(tile), {}, store).front());
}

/// Whether an atomic operation is for numbers of this type.
static bool isOf(Type type, tt::RMWOp op) {
  if (op == tt::RMWOp::XCHG)
    return true;
  return isa<FloatType>(getElementTypeOrSelf(type)) == (op == tt::RMWOp::FADD);
}

void Lowering::lowerAtomicRMW(tt::AtomicRMWOp op) {
  Location loc = op.getLoc();
  if (!isOf(op.getType(), op.getAtomicRmwOp()))
    return fail(op, "'" + tt::stringifyRMWOp(op.getAtomicRmwOp()) + "' of " +
                        debugString(getElementTypeOrSelf(op.getType())));
  auto body = [&](OpBuilder &b, Value address, Element &element,
                  ArrayRef<Value> indices) -> Value {
    Value value = element.get(op.getVal(), indices);
    Type type = value.getType();
    // The processor has no addition of bf16: see IntegerBFloats.cpp.
    if (type.isBF16() && op.getAtomicRmwOp() == tt::RMWOp::FADD) {
      Type bits = b.getI16Type();
      value = arith::BitcastOp::create(b, loc, bits, value);
      Value old =
          callExternal(b, loc, "tad_cpu_add_bf16", bits, {address, value});
      return arith::BitcastOp::create(b, loc, type, old);
    }
    return LLVM::AtomicRMWOp::create(b, loc, getBinOp(op.getAtomicRmwOp()),
                                     address, value, getOrdering(op.getSem()));
  };
  lowerAtomic(op, op.getPtr(), op.getMask(), body);
}

void Lowering::lowerAtomicCAS(tt::AtomicCASOp op) {
  Location loc = op.getLoc();
  auto body = [&](OpBuilder &b, Value address, Element &element,
                  ArrayRef<Value> indices) -> Value {
    Value expected = element.get(op.getCmp(), indices);
    Value desired = element.get(op.getVal(), indices);
    // Floats are compared as bits, as on GPUs.
    Type type = expected.getType(), bits = type;
    if (isa<FloatType>(type)) {
      bits = b.getIntegerType(type.getIntOrFloatBitWidth());
      expected = arith::BitcastOp::create(b, loc, bits, expected);
      desired = arith::BitcastOp::create(b, loc, bits, desired);
    }
    LLVM::AtomicOrdering success = getOrdering(op.getSem());
    LLVM::AtomicOrdering failure =
        success == LLVM::AtomicOrdering::acq_rel ||
                success == LLVM::AtomicOrdering::acquire
            ? LLVM::AtomicOrdering::acquire
            : LLVM::AtomicOrdering::monotonic;
    Value pair = LLVM::AtomicCmpXchgOp::create(b, loc, address, expected,
                                               desired, success, failure);
    Value old =
        LLVM::ExtractValueOp::create(b, loc, pair, ArrayRef<int64_t>{0});
    return type == bits
               ? old
               : arith::BitcastOp::create(b, loc, type, old).getResult();
  };
  lowerAtomic(op, op.getPtr(), /*mask=*/{}, body);
}
