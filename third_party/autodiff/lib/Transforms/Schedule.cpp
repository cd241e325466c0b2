//===- Schedule.cpp - Decide how contributions to a gradient meet ---------===//
#include "ShadowPointers.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Plan/Plan.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace mlir::autodiff {
#define GEN_PASS_DEF_SCHEDULE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Object;

namespace {
/// What the backward does with the memory of one primal argument.
struct ArgumentUse {
  SmallVector<UpstreamOp> upstreams;
  SmallVector<AccumulateOp> accumulates;
};

struct Schedule : autodiff::impl::ScheduleBase<Schedule> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override;
};

/// The primal's loads and stores by site.
using Accesses = llvm::DenseMap<unsigned, Operation *>;

/// Lowers the uses of one argument.
class ArgumentSchedule {
public:
  ArgumentSchedule(triton::FuncOp backward, unsigned argument, ArgumentUse &use)
      : backward(backward), argument(argument), use(use),
        primal(backward.getArgument(argument)),
        given(backward.getArgAttr(argument, kHasCotangentAttr) != nullptr),
        pointee(cast<triton::PointerType>(primal.getType()).getPointeeType()) {}

  LogicalResult run(const Accesses &primalAccesses, bool forceAtomic,
                    bool forceExchange);

private:
  /// The cotangent can be read where it is: nothing is cleared or added.
  LogicalResult readCotangent(std::optional<Object> check);
  /// Contributions meet in atomics, with the cotangent if the argument has one.
  LogicalResult accumulateAtomically();
  /// One program owns each address.
  LogicalResult store(Object check);

  BlockArgument append(OperandKind kind, Type element, Attribute description);
  Attribute toAttribute(Object object);
  Attribute describe(llvm::StringRef dtype, llvm::StringRef init,
                     llvm::StringRef accumulate, llvm::json::Array checks);
  LogicalResult exchange(UpstreamOp op, ShadowPointers &shadow);
  LogicalResult addAtomically(AccumulateOp op, ShadowPointers &shadow);

  triton::FuncOp backward;
  unsigned argument;
  ArgumentUse &use;
  BlockArgument primal;
  bool given; // a cotangent
  Type pointee;
};
} // namespace

/// The all-true mask of a pointer or tile of pointers.
static Value allTrue(OpBuilder &b, Location loc, Type pointer) {
  Type i1 = b.getI1Type();
  TypedAttr value = b.getBoolAttr(true);
  if (auto tensor = dyn_cast<RankedTensorType>(pointer))
    value = DenseElementsAttr::get(tensor.clone(i1), true);
  return arith::ConstantOp::create(b, loc, value);
}

static Value atomic(OpBuilder &b, Location loc, triton::RMWOp kind,
                    Value pointer, Value value, Value mask) {
  if (!mask)
    mask = allTrue(b, loc, pointer.getType());
  return triton::AtomicRMWOp::create(b, loc, value.getType(), kind, pointer,
                                     value, mask, triton::MemSemantic::RELAXED,
                                     triton::MemSyncScope::GPU);
}

static Value zeros(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc,
                                   cast<TypedAttr>(b.getZeroAttr(type)));
}

/// An argument for a shadow of the primal one, aligned as that is.
BlockArgument ArgumentSchedule::append(OperandKind kind, Type element,
                                       Attribute description) {
  auto primalType = cast<triton::PointerType>(primal.getType());
  BlockArgument added = appendOperand(
      backward, triton::PointerType::get(element, primalType.getAddressSpace()),
      OperandAttr::get(backward.getContext(), kind, argument), description);
  if (Attribute divisibility = backward.getArgAttr(argument, "tt.divisibility"))
    backward.setArgAttr(added.getArgNumber(), "tt.divisibility", divisibility);
  return added;
}

Attribute ArgumentSchedule::toAttribute(Object object) {
  return StringAttr::get(
      backward.getContext(),
      llvm::formatv("{0}", llvm::json::Value(std::move(object))).str());
}

Attribute ArgumentSchedule::describe(llvm::StringRef dtype,
                                     llvm::StringRef init,
                                     llvm::StringRef accumulate,
                                     llvm::json::Array checks) {
  return toAttribute(Object{
      {"argument", argument},
      {"dtype", dtype},
      {"init", init},
      {"accumulate", accumulate},
      {"returned", backward.getArgAttr(argument, kWantedAttr) != nullptr},
      {"checks", std::move(checks)}});
}

LogicalResult ArgumentSchedule::readCotangent(std::optional<Object> check) {
  BlockArgument cotangent = append(OperandKind::Cotangent, pointee, {});
  if (check && !mutation::isMade("schedule:no check of the outputs"))
    backward.setArgAttr(cotangent.getArgNumber(), kCheckAttr,
                        toAttribute(std::move(*check)));
  ShadowPointers shadow(primal, cotangent);
  for (UpstreamOp op : use.upstreams) {
    if (Value result = op.getResult()) {
      Value pointer = shadow.get(op.getPtr());
      if (!pointer)
        return failure();
      OpBuilder b(op);
      Type stored = withElementType(result.getType(), pointee);
      Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
      Value other = mask ? zeros(b, op.getLoc(), stored) : Value();
      Value value =
          triton::LoadOp::create(b, op.getLoc(), pointer, mask, other);
      result.replaceAllUsesWith(castFloat(
          b, op.getLoc(), value, getElementTypeOrSelf(result.getType())));
    }
    op.erase();
  }
  return success();
}

/// Takes the cotangent out of the shared buffer in one step, so that programs
/// that store to the same address do not count it twice.
LogicalResult ArgumentSchedule::exchange(UpstreamOp op,
                                         ShadowPointers &shadow) {
  Value pointer = shadow.get(op.getPtr());
  if (!pointer)
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type =
      withElementType(op.getPtr().getType(), getPointee(pointer.getType()));
  // What other threads of the program have added must be there.
  if (!use.accumulates.empty())
    gpu::BarrierOp::create(b, loc);
  Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
  Value value;
  if (op.getKeep() ||
      mutation::isMade("schedule:cotangent left where it was taken")) {
    Value other = mask ? zeros(b, loc, type) : Value();
    value = triton::LoadOp::create(b, loc, pointer, mask, other);
  } else {
    value =
        atomic(b, loc, triton::RMWOp::XCHG, pointer, zeros(b, loc, type), mask);
    // What an atomic returns for masked lanes is not defined.
    if (mask && !mutation::isMade("schedule:masked lanes as they are"))
      value = arith::SelectOp::create(b, loc, mask, value, zeros(b, loc, type));
  }
  if (!op.getKeep() || !use.accumulates.empty())
    gpu::BarrierOp::create(b, loc);
  if (op.getResult())
    op.getResult().replaceAllUsesWith(value);
  op.erase();
  return success();
}

LogicalResult ArgumentSchedule::addAtomically(AccumulateOp op,
                                              ShadowPointers &shadow) {
  Value pointer = shadow.get(op.getPtr());
  if (!pointer)
    return failure();
  OpBuilder b(op);
  Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
  if (mutation::isMade("schedule:plain store for an atomic add"))
    triton::StoreOp::create(b, op.getLoc(), pointer, op.getValue(), mask);
  else
    atomic(b, op.getLoc(), triton::RMWOp::FADD, pointer, op.getValue(), mask);
  op.erase();
  return success();
}

LogicalResult ArgumentSchedule::accumulateAtomically() {
  Type element =
      pointee.isF64() ? pointee : Float32Type::get(backward.getContext());
  BlockArgument buffer =
      append(OperandKind::Gradient, element,
             describe(spellType(element),
                      given && !mutation::isMade("schedule:shared from zero")
                          ? "cotangent"
                          : "zero",
                      "atomic", {}));
  ShadowPointers shadow(primal, buffer);
  for (UpstreamOp op : use.upstreams)
    if (failed(exchange(op, shadow)))
      return failure();
  for (AccumulateOp op : use.accumulates)
    if (failed(addAtomically(op, shadow)))
      return failure();
  return success();
}

LogicalResult ArgumentSchedule::store(Object check) {
  llvm::json::Array checks;
  if (!mutation::isMade("schedule:no check of the addresses"))
    checks.push_back(std::move(check));
  BlockArgument buffer =
      append(OperandKind::Gradient, pointee,
             describe(spellType(pointee), "none", "store", std::move(checks)));
  ShadowPointers shadow(primal, buffer);
  for (AccumulateOp op : use.accumulates) {
    Value pointer = shadow.get(op.getPtr());
    if (!pointer)
      return failure();
    OpBuilder b(op);
    triton::StoreOp::create(b, op.getLoc(), pointer,
                            castFloat(b, op.getLoc(), op.getValue(), pointee),
                            op.getMask());
    op.erase();
  }
  return success();
}

LogicalResult ArgumentSchedule::run(const Accesses &primalAccesses,
                                    bool forceAtomic, bool forceExchange) {
  bool wanted = backward.getArgAttr(argument, kWantedAttr) != nullptr;
  SmallVector<UpstreamOp> hiding = llvm::filter_to_vector(
      use.upstreams, [](UpstreamOp op) { return !op.getKeep(); });

  if (use.upstreams.empty()) {
    if (use.accumulates.size() == 1 && !forceAtomic) {
      Operation *load = primalAccesses.lookup(use.accumulates[0].getSite());
      std::optional<AccessSpace> space = AccessSpace::of(load);
      if (space && space->isExact())
        return store(space->toCheck("bijective", argument));
    }
    return accumulateAtomically();
  }
  if (use.accumulates.empty() && !wanted && given) {
    if (hiding.empty())
      return readCotangent(std::nullopt);
    Operation *primalStore = primalAccesses.lookup(hiding[0].getSite());
    if (use.upstreams.size() == 1 && isa<triton::StoreOp>(primalStore) &&
        !forceExchange) {
      if (std::optional<AccessSpace> space = AccessSpace::of(primalStore))
        return readCotangent(space->toCheck("distinct", argument));
    }
  }
  return accumulateAtomically();
}

void Schedule::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  triton::FuncOp backward = getBackward(getOperation());
  if (!primal || !backward) {
    getOperation().emitError("no backward to schedule; run autodiff-reverse");
    return signalPassFailure();
  }
  Accesses accesses;
  primal.walk([&](Operation *op) {
    if (auto site = op->getAttrOfType<IntegerAttr>(kSiteAttr))
      accesses[site.getInt()] = op;
  });
  std::map<unsigned, ArgumentUse> uses;
  backward.walk([&](Operation *op) {
    if (auto upstream = dyn_cast<UpstreamOp>(op))
      uses[upstream.getArgument()].upstreams.push_back(upstream);
    else if (auto accumulate = dyn_cast<AccumulateOp>(op))
      uses[accumulate.getArgument()].accumulates.push_back(accumulate);
  });
  for (auto &[argument, use] : uses)
    if (failed(ArgumentSchedule(backward, argument, use)
                   .run(accesses, llvm::is_contained(atomic, argument),
                        llvm::is_contained(exchange, argument))))
      return signalPassFailure();
}
