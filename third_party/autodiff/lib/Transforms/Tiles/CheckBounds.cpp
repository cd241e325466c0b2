//===- CheckBounds.cpp - Keep derived kernels inside of their buffers -----===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Support/UserName.h"
#include "autodiff/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CHECKBOUNDS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

// An entry of the violations buffer: the access's number in the upper bits.
// Below is the distance in bytes from the start of the buffer to the address,
// with an offset that makes it positive. The smallest entry wins.
static constexpr int64_t kDistanceBits = 40;
static constexpr int64_t kDistanceOffset = int64_t(1) << (kDistanceBits - 1);

namespace {
/// A memory access and its mask.
struct Access {
  Value pointer;
  Value mask;
};

struct CheckBounds : autodiff::impl::CheckBoundsBase<CheckBounds> {
  void runOnOperation() override;

private:
  LogicalResult check(triton::FuncOp each);
  LogicalResult check(Operation *op);
  FailureOr<Access> getAccess(Operation *op);
  void confine(Operation *op, Value inside);
  std::pair<Value, Value> getBounds(BlockArgument argument);
  Value isInside(OpBuilder &b, Location loc, Value address, int64_t size,
                 BlockArgument argument);
  Value isInsideAny(OpBuilder &b, Location loc, Value address, int64_t size);
  void record(OpBuilder &b, Operation *op, llvm::StringRef name, Value address,
              Value violation, BlockArgument base);
  bool isOutput(BlockArgument base);
  Value getClaims(BlockArgument base);
  void claim(triton::StoreOp store, Value address, BlockArgument base);
  bool mixesAtomics(BlockArgument base);
  void claim(triton::AtomicRMWOp atomic, Value address, BlockArgument base);
  Value getPlace(OpBuilder &b, Location loc, Value address, BlockArgument base);
  Value isKnown(OpBuilder &b, Location loc, Type type, BlockArgument base);

  triton::FuncOp kernel;
  SmallVector<BlockArgument> pointers;
  llvm::MapVector<BlockArgument, std::pair<Value, Value>> bounds;
  llvm::DenseMap<Value, Value> claims;
  BlockArgument violations;
  SmallVector<Attribute> accesses;
};
} // namespace

std::pair<Value, Value> CheckBounds::getBounds(BlockArgument argument) {
  auto [entry, isNew] = bounds.try_emplace(argument);
  if (isNew) {
    MLIRContext *context = &getContext();
    Type type = IntegerType::get(context, 64);
    unsigned index = argument.getArgNumber();
    auto append = [&](OperandKind kind) {
      return appendOperand(kernel, type,
                           OperandAttr::get(context, kind, index));
    };
    Value begin = append(OperandKind::Begin), end = append(OperandKind::End);
    bounds[argument] = {begin, end};
  }
  return bounds[argument];
}

Value CheckBounds::isInside(OpBuilder &b, Location loc, Value address,
                            int64_t size, BlockArgument argument) {
  auto [begin, end] = getBounds(argument);
  Type type = address.getType();
  Value last =
      arith::AddIOp::create(b, loc, address, integerOf(b, loc, type, size));
  Value after = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                      address, splatTo(b, loc, begin, type));
  Value before = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, last,
                                       splatTo(b, loc, end, type));
  return arith::AndIOp::create(b, loc, after, before);
}

/// A pointer that is chosen among several arguments may point into any of them.
Value CheckBounds::isInsideAny(OpBuilder &b, Location loc, Value address,
                               int64_t size) {
  Value inside;
  for (BlockArgument argument : pointers) {
    Value here = isInside(b, loc, address, size, argument);
    inside = inside ? arith::OrIOp::create(b, loc, inside, here) : here;
  }
  return inside;
}

FailureOr<Access> CheckBounds::getAccess(Operation *op) {
  auto plain = [](auto access) {
    return Access{access.getPtr(), access.getMask()};
  };
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return plain(load);
  if (auto store = dyn_cast<triton::StoreOp>(op))
    return plain(store);
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    return plain(atomic);
  if (auto atomic = dyn_cast<triton::AtomicCASOp>(op))
    return Access{atomic.getPtr(), {}};
  bool addresses = llvm::any_of(op->getOperandTypes(), [](Type type) {
    return isa<triton::TensorDescType>(type) || isPointer(type);
  });
  if (addresses && op->getNumRegions() == 0 && !isMemoryEffectFree(op))
    return op->emitError("the accesses of ")
           << spellForUser(op) << " cannot be checked; unset "
           << "TRITON_AUTODIFF_CHECK";
  return Access();
}

/// Masks the lanes that are not `inside`.
void CheckBounds::confine(Operation *op, Value inside) {
  if (auto load = dyn_cast<triton::LoadOp>(op)) {
    load.getMaskMutable().assign(inside);
    if (!load.getOther()) {
      OpBuilder b(op);
      load.getOtherMutable().assign(zeroOf(b, op->getLoc(), load.getType()));
    }
  } else if (auto store = dyn_cast<triton::StoreOp>(op)) {
    store.getMaskMutable().assign(inside);
  } else if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op)) {
    atomic.getMaskMutable().assign(inside);
  } else {
    // It has no mask, so these lanes access the violations buffer behind its
    // first element, which is not used otherwise.
    auto exchange = cast<triton::AtomicCASOp>(op);
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value one = integerOf(b, loc, b.getI32Type(), 1);
    Value spare =
        triton::AddPtrOp::create(b, loc, violations.getType(), violations, one);
    Type pointer = getElementTypeOrSelf(exchange.getPtr().getType());
    spare = triton::BitcastOp::create(b, loc, pointer, spare);
    spare = splatTo(b, loc, spare, exchange.getPtr().getType());
    exchange.getPtrMutable().assign(
        arith::SelectOp::create(b, loc, inside, exchange.getPtr(), spare));
  }
}

void CheckBounds::record(OpBuilder &b, Operation *op, llvm::StringRef name,
                         Value address, Value violation, BlockArgument base) {
  Location loc = op->getLoc();
  Type type = address.getType();
  int64_t number = accesses.size();
  int64_t argument = base ? int64_t(base.getArgNumber()) : -1;
  accesses.push_back(DictionaryAttr::get(
      &getContext(),
      {b.getNamedAttr("argument", b.getI64IntegerAttr(argument)),
       b.getNamedAttr("op", b.getStringAttr(name)),
       b.getNamedAttr("position", b.getStringAttr(spellPosition(loc)))}));

  auto constant = [&](int64_t value) { return integerOf(b, loc, type, value); };
  Value distance = constant(0);
  if (base)
    distance = arith::SubIOp::create(
        b, loc, address, splatTo(b, loc, getBounds(base).first, type));
  distance = arith::AddIOp::create(b, loc, distance, constant(kDistanceOffset));
  distance = arith::MaxSIOp::create(b, loc, distance, constant(0));
  distance = arith::MinSIOp::create(b, loc, distance,
                                    constant(2 * kDistanceOffset - 1));
  Value key = arith::AddIOp::create(b, loc, distance,
                                    constant(number << kDistanceBits));
  triton::AtomicRMWOp::create(
      b, loc, type, triton::RMWOp::MIN, splatTo(b, loc, violations, type), key,
      violation, triton::MemSemantic::RELAXED, triton::MemSyncScope::GPU);
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

/// The bits of floats of at most 32 bits, as an i64.
static Value bitsOf(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value bits = triton::BitcastOp::create(
      b, loc, withElementType(type, b.getIntegerType(width)), value);
  Type wide = withElementType(type, b.getI64Type());
  if (width < 64)
    return arith::ExtUIOp::create(b, loc, wide, bits);
  Value high =
      arith::ShRUIOp::create(b, loc, bits, integerOf(b, loc, wide, 32));
  Value folded = arith::XOrIOp::create(b, loc, bits, high);
  return arith::AndIOp::create(b, loc, folded,
                               integerOf(b, loc, wide, 0xffffffff));
}

/// A number for each program, from one on.
static Value programNumber(OpBuilder &b, Location loc) {
  Value number = integerOf(b, loc, b.getI64Type(), 0);
  for (int axis : {2, 1, 0}) {
    Value extent = triton::GetNumProgramsOp::create(b, loc, axis);
    Value id = triton::GetProgramIdOp::create(b, loc, axis);
    number = arith::MulIOp::create(b, loc, number,
                                   castInteger(b, loc, extent, b.getI64Type()));
    number = arith::AddIOp::create(b, loc, number,
                                   castInteger(b, loc, id, b.getI64Type()));
  }
  return arith::AddIOp::create(b, loc, number,
                               integerOf(b, loc, b.getI64Type(), 1));
}

/// Whether it is a tensor of floats that the user's kernel stores to.
bool CheckBounds::isOutput(BlockArgument base) {
  if (!base || getRole(kernel) != "forward" ||
      !isFloat(getPointee(base.getType())))
    return false;
  auto operand =
      kernel.getArgAttrOfType<OperandAttr>(base.getArgNumber(), kOperandAttr);
  return operand.getKind() == OperandKind::Argument;
}

/// The memory that notes which program stores to each element of an output.
Value CheckBounds::getClaims(BlockArgument base) {
  Value &memory = claims[base];
  if (!memory) {
    MLIRContext *context = &getContext();
    auto type = triton::PointerType::get(IntegerType::get(context, 64), 1);
    memory = appendOperand(
        kernel, type,
        OperandAttr::get(context, OperandKind::Claims, base.getArgNumber()));
  }
  return memory;
}

/// Where memory notes what happens to the element at `address`.
Value CheckBounds::getPlace(OpBuilder &b, Location loc, Value address,
                            BlockArgument base) {
  Type type = address.getType();
  Value memory = getClaims(base);
  Value begin = splatTo(b, loc, getBounds(base).first, type);
  unsigned width = getPointee(base.getType()).getIntOrFloatBitWidth();
  Value place = arith::ShRUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, address, begin),
      integerOf(b, loc, type, llvm::Log2_32(width / 8)));
  Type pointers = withElementType(type, memory.getType());
  return triton::AddPtrOp::create(b, loc, pointers,
                                  splatTo(b, loc, memory, pointers), place);
}

/// Memory without a known base is not checked.
Value CheckBounds::isKnown(OpBuilder &b, Location loc, Type type,
                           BlockArgument base) {
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ne,
      splatTo(b, loc, getBounds(base).first, type),
      integerOf(b, loc, type, std::numeric_limits<int64_t>::min()));
}

/// Notes the program that stores to each element, and the bits, and whether
/// another program, or another lane, has stored other bits there. (A program
/// may overwrite what it has stored.)
void CheckBounds::claim(triton::StoreOp store, Value address,
                        BlockArgument base) {
  OpBuilder b(store);
  Location loc = store.getLoc();
  Type type = address.getType();
  auto constant = [&](int64_t number) {
    return integerOf(b, loc, type, number);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value x,
                     Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, loc, x, y);
  };
  auto ownerOf = [&](Value claim) -> Value {
    return arith::ShRUIOp::create(b, loc, claim, constant(32));
  };
  using arith::CmpIPredicate;
  Value value = bitsOf(b, loc, store.getValue());
  Value program = splatTo(b, loc, programNumber(b, loc), type);
  Value mine = arith::OrIOp::create(
      b, loc, arith::ShLIOp::create(b, loc, program, constant(32)), value);
  Value pointer = getPlace(b, loc, address, base);
  Value on = both(store.getMask(), isKnown(b, loc, type, base));
  auto atomic = [&](triton::RMWOp kind, Value operand) -> Value {
    return triton::AtomicRMWOp::create(b, loc, type, kind, pointer, operand, on,
                                       triton::MemSemantic::RELAXED,
                                       triton::MemSyncScope::GPU);
  };
  auto differs = [&](Value claim) -> Value {
    return compare(CmpIPredicate::ne, both(claim, constant(0xffffffff)), value);
  };
  Value before = atomic(triton::RMWOp::XCHG, mine);
  gpu::BarrierOp::create(b, loc);
  Value after = atomic(triton::RMWOp::ADD, constant(0));
  Value isOthers = both(compare(CmpIPredicate::ne, before, constant(0)),
                        compare(CmpIPredicate::ne, ownerOf(before), program));
  Value isOwn = compare(CmpIPredicate::eq, ownerOf(after), program);
  Value races = arith::OrIOp::create(b, loc, both(isOthers, differs(before)),
                                     both(isOwn, differs(after)));
  record(b, store, "race", address, both(on, races), base);
}

/// Whether atomic sums and others (max, min, exchange) go to a tensor that
/// nothing is stored to. Then no element may get both (Analysis/Apart.h).
bool CheckBounds::mixesAtomics(BlockArgument base) {
  bool sums = false, selects = false, stores = false;
  kernel.walk([&](Operation *op) {
    if (isa<triton::StoreOp, triton::AtomicRMWOp>(op) &&
        getBaseArgument(op->getOperand(0)) == base) {
      auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
      stores |= !atomic;
      sums |= atomic && isBlindSum(atomic);
      selects |= atomic && selectsContent(atomic);
    }
  });
  return sums && selects && !stores;
}

/// Notes which kind of atomic operations an element has got, and whether
/// another kind came before.
void CheckBounds::claim(triton::AtomicRMWOp atomic, Value address,
                        BlockArgument base) {
  OpBuilder b(atomic);
  Location loc = atomic.getLoc();
  Type type = address.getType();
  int64_t mine = isBlindSum(atomic) ? 1 : 2;
  Value on = arith::AndIOp::create(b, loc, atomic.getMask(),
                                   isKnown(b, loc, type, base));
  Value before = triton::AtomicRMWOp::create(
      b, loc, type, triton::RMWOp::OR, getPlace(b, loc, address, base),
      integerOf(b, loc, type, mine), on, triton::MemSemantic::RELAXED,
      triton::MemSyncScope::GPU);
  Value others =
      arith::AndIOp::create(b, loc, before, integerOf(b, loc, type, 3 - mine));
  Value mixed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, others,
                                      integerOf(b, loc, type, 0));
  record(b, atomic, "mixed", address, arith::AndIOp::create(b, loc, on, mixed),
         base);
}

LogicalResult CheckBounds::check(Operation *op) {
  FailureOr<Access> access = getAccess(op);
  if (failed(access) || !access->pointer)
    return failure(failed(access));
  Value pointer = access->pointer;
  Type pointee = getPointee(pointer.getType());
  if (!pointee.isIntOrFloat())
    return op->emitError("accesses through block pointers cannot be checked; "
                         "unset TRITON_AUTODIFF_CHECK");
  int64_t size = llvm::divideCeil(pointee.getIntOrFloatBitWidth(), 8);

  OpBuilder b(op);
  Location loc = op->getLoc();
  Value address = triton::PtrToIntOp::create(
      b, loc, withElementType(pointer.getType(), b.getI64Type()), pointer);
  BlockArgument base = getBaseArgument(pointer);
  Value inside = base ? isInside(b, loc, address, size, base)
                      : isInsideAny(b, loc, address, size);
  Value always = integerOf(b, loc, inside.getType(), 1);
  Value violation = arith::XOrIOp::create(b, loc, inside, always);
  if (access->mask) {
    violation = arith::AndIOp::create(b, loc, violation, access->mask);
    inside = arith::AndIOp::create(b, loc, inside, access->mask);
  }
  record(b, op, op->getName().stripDialect(), address, violation, base);
  confine(op, inside);
  if (auto store = dyn_cast<triton::StoreOp>(op);
      store && isOutput(base) && !mutation::isMade("bounds:nothing is claimed"))
    claim(store, address, base);
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
      atomic && isOutput(base) && mixesAtomics(base) &&
      !mutation::isMade("bounds:sums of what is selected"))
    claim(atomic, address, base);
  return success();
}

LogicalResult CheckBounds::check(triton::FuncOp each) {
  // What follows belongs to another kernel.
  kernel = each;
  pointers.clear();
  bounds.clear();
  claims.clear();
  accesses.clear();
  dropUnusedArguments(kernel);
  for (BlockArgument argument : kernel.getArguments())
    if (isa<triton::PointerType>(argument.getType()))
      pointers.push_back(argument);
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  MLIRContext *context = &getContext();
  violations = appendOperand(
      kernel, triton::PointerType::get(IntegerType::get(context, 64), 1),
      OperandAttr::get(context, OperandKind::Violations, 0));
  for (Operation *op : ops)
    if (failed(check(op)))
      return failure();
  launchOf(kernel).setAccessesAttr(ArrayAttr::get(context, accesses));
  return success();
}

void CheckBounds::runOnOperation() {
  for (auto each : getOperation().getOps<triton::FuncOp>())
    if (each->hasAttr(kRoleAttr) && !each.isExternal() && failed(check(each)))
      return signalPassFailure();
}
