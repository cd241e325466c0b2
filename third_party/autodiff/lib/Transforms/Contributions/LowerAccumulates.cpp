//===- LowerAccumulates.cpp - How contributions to a gradient meet --------===//
#include "ShadowPointers.h"
#include "Turns.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOWERACCUMULATES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("plain-stores"), kTurns("turns"),
    kDeterministic("deterministic");

namespace {
struct LowerAccumulates
    : autodiff::impl::LowerAccumulatesBase<LowerAccumulates> {
  using LowerAccumulatesBase::LowerAccumulatesBase;

  void transform() override;
};

/// The addresses of all contributions to the gradient of an argument.
struct GradientReach {
  SmallVector<ReachAttr> spaces;
  bool isKnown = true;       ///< without running the kernel
  bool isConfined = false;   ///< they have to be masked
  bool hasRemainder = false; ///< which a later kernel adds
};

/// Lowers the accumulates and upstreams of one argument.
class ArgumentLowering {
public:
  ArgumentLowering(triton::FuncOp backward, unsigned argument, GradientUse &use,
                   const GradientReach &reach)
      : backward(backward), argument(argument), use(use), reach(reach),
        primal(backward.getArgument(argument)),
        given(backward.getArgAttr(argument, kHasCotangentAttr) != nullptr),
        pointee(cast<triton::PointerType>(primal.getType()).getPointeeType()) {}

  LogicalResult run(Contributions &all, bool forceAtomic, bool deterministic);
  /// Where contributions take `turns`: those of this kernel.
  LogicalResult take(ArrayRef<Turn> turns);
  /// No store has turned out to happen: the gradient is the cotangent.
  void keep() { append(pointee, GradientInit::Cotangent, Accumulate::Store); }
  /// The error that contributions would have to meet in atomics. Remarks say
  /// why.
  LogicalResult refuseAtomics();

private:
  /// Where contributions, or else stores, are.
  Subject getSubject() const;
  Reason findMeeting(const ReasonOr<AccessSpace> &space,
                     bool forceAtomic) const;
  /// Contributions meet in atomics, with the cotangent if the argument has one.
  LogicalResult accumulateAtomically();
  /// Of contributions that meet.
  Type getSumType();
  /// One program owns each address, or each address of its partial sum.
  LogicalResult store(CheckAttr check, GradientInit init = GradientInit::None);
  LogicalResult store(AccumulateOp op, ShadowPointers &shadow, bool adds);
  /// What a kernel before has stored is added to.
  LogicalResult addRemainder();
  /// Nothing contributes, and each address is stored to once: the gradient is
  /// the cotangent, but zero there.
  LogicalResult clear(const AccessSpace &stores);

  BlockArgument append(Type element, GradientInit init, Accumulate accumulate,
                       SmallVector<CheckAttr> checks = {},
                       ExprAttr partials = {});
  Value advanceTo(Value partial, AccumulateOp op, Value pointer);
  LogicalResult exchange(UpstreamOp op, ShadowPointers &shadow);
  LogicalResult addAtomically(AccumulateOp op, ShadowPointers &shadow);

  triton::FuncOp backward;
  unsigned argument;
  GradientUse &use;
  const GradientReach &reach;
  BlockArgument primal;
  bool given; // a cotangent
  Type pointee;
};
} // namespace

static Value atomic(OpBuilder &b, Location loc, triton::RMWOp kind,
                    Value pointer, Value value, Value mask) {
  if (!mask)
    mask =
        integerOf(b, loc, withElementType(pointer.getType(), b.getI1Type()), 1);
  return triton::AtomicRMWOp::create(b, loc, value.getType(), kind, pointer,
                                     value, mask, triton::MemSemantic::RELAXED,
                                     triton::MemSyncScope::GPU);
}

/// An argument for the gradient, with its description.
BlockArgument ArgumentLowering::append(Type element, GradientInit init,
                                       Accumulate accumulate,
                                       SmallVector<CheckAttr> checks,
                                       ExprAttr partials) {
  if (mutation::isMade("lower-accumulates:no check of the addresses"))
    checks.clear();
  bool isWanted = backward.getArgAttr(argument, kWantedAttr) != nullptr;
  bool isOverwritten =
      use.contributions.empty() && accumulate == Accumulate::Store;
  // What is stored has a check that says where.
  bool adds = accumulate == Accumulate::Atomic || reach.hasRemainder;
  Confined confined = reach.isConfined         ? Confined::All
                      : adds && !reach.isKnown ? Confined::Sums
                                               : Confined::Nothing;
  return appendShadow(backward, primal, OperandKind::Gradient, element,
                      GradientAttr::get(backward.getContext(), argument,
                                        element, init, accumulate, partials,
                                        isWanted, isOverwritten,
                                        reach.hasRemainder, confined,
                                        /*margin=*/0, checks, reach.spaces));
}

/// Takes the cotangent out of the shared buffer in one step, so that programs
/// that store to the same address do not count it twice.
LogicalResult ArgumentLowering::exchange(UpstreamOp op,
                                         ShadowPointers &shadow) {
  Value pointer = shadow.get(op.getPtr());
  if (!pointer)
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type =
      withElementType(op.getPtr().getType(), getPointee(pointer.getType()));
  // What other threads of the program have added, or left, must be there.
  if (!use.contributions.empty() || use.upstreams.size() > 1)
    gpu::BarrierOp::create(b, loc);
  Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
  Value value;
  if (op.getKeep() ||
      mutation::isMade("lower-accumulates:cotangent left where it was taken")) {
    Value other = mask ? constantOf(b, loc, type, 0.0) : Value();
    value = triton::LoadOp::create(b, loc, pointer, mask, other);
  } else {
    value = atomic(b, loc, triton::RMWOp::XCHG, pointer,
                   constantOf(b, loc, type, 0.0), mask);
    // What an atomic returns for masked lanes is not defined.
    if (mask && !mutation::isMade("lower-accumulates:masked lanes as they are"))
      value = arith::SelectOp::create(b, loc, mask, value,
                                      constantOf(b, loc, type, 0.0));
  }
  if (!op.getKeep() || !use.contributions.empty())
    gpu::BarrierOp::create(b, loc);
  if (op.getResult())
    op.getResult().replaceAllUsesWith(value);
  op.erase();
  return success();
}

LogicalResult ArgumentLowering::addAtomically(AccumulateOp op,
                                              ShadowPointers &shadow) {
  Value pointer = shadow.get(op.getPtr());
  if (!pointer)
    return failure();
  OpBuilder b(op);
  Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
  if (mutation::isMade("lower-accumulates:plain store for an atomic add"))
    triton::StoreOp::create(b, op.getLoc(), pointer, op.getValue(), mask);
  else
    atomic(b, op.getLoc(), triton::RMWOp::FADD, pointer, op.getValue(), mask)
        .getDefiningOp()
        ->setAttr(kSiteAttr, op.getSiteAttr());
  op.erase();
  return success();
}

Type ArgumentLowering::getSumType() {
  return pointee.isF64() ? pointee : Float32Type::get(backward.getContext());
}

LogicalResult ArgumentLowering::accumulateAtomically() {
  Type element = getSumType();
  bool startsFromCotangent =
      given && !mutation::isMade("lower-accumulates:shared from zero");
  BlockArgument buffer =
      append(element,
             startsFromCotangent ? GradientInit::Cotangent : GradientInit::Zero,
             Accumulate::Atomic);
  ShadowPointers shadow(primal, buffer);
  for (UpstreamOp op : use.upstreams)
    if (failed(exchange(op, shadow)))
      return failure();
  for (AccumulateOp op : use.contributions)
    if (failed(addAtomically(op, shadow)))
      return failure();
  return success();
}

/// `pointer` within the partial sum of this number: each has as many elements
/// as lie between the tensor's first and last one.
Value ArgumentLowering::advanceTo(Value partial, AccumulateOp op,
                                  Value pointer) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value extent = SizeOp::create(
      b, loc, ExprAttr::get(b.getContext(), ExprKind::Extent, argument));
  Value offset = arith::MulIOp::create(
      b, loc, arith::ExtSIOp::create(b, loc, b.getI64Type(), partial), extent);
  if (auto tile = dyn_cast<RankedTensorType>(pointer.getType()))
    offset =
        triton::SplatOp::create(b, loc, tile.clone(b.getI64Type()), offset);
  return triton::AddPtrOp::create(b, loc, pointer.getType(), pointer, offset);
}

LogicalResult ArgumentLowering::store(CheckAttr check, GradientInit init) {
  AccumulateOp op = use.contributions.front();
  Type element =
      op.getPartial() ? getElementTypeOrSelf(op.getValue().getType()) : pointee;
  BlockArgument buffer = append(
      element, init, op.getPartial() ? Accumulate::Partial : Accumulate::Store,
      {check}, op.getPartialsAttr());
  ShadowPointers shadow(primal, buffer);
  for (AccumulateOp each : use.contributions)
    if (failed(store(each, shadow, /*adds=*/false)))
      return failure();
  return success();
}

/// Stores a contribution; or its sum with what is there, rounded once.
LogicalResult ArgumentLowering::store(AccumulateOp op, ShadowPointers &shadow,
                                      bool adds) {
  Value pointer = shadow.get(op.getPtr());
  if (!pointer)
    return failure();
  Type element = getPointee(pointer.getType());
  if (op.getPartial())
    pointer = advanceTo(op.getPartial(), op, pointer);
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value mask = op.getMask(), value = op.getValue();
  if (adds &&
      !mutation::isMade("lower-accumulates:what turns before have left")) {
    Type type = withElementType(pointer.getType(), element);
    Value other = mask ? constantOf(b, loc, type, 0.0) : Value();
    Value before = triton::LoadOp::create(b, loc, pointer, mask, other);
    before = castFloat(b, loc, before, getElementTypeOrSelf(value.getType()));
    value = arith::AddFOp::create(b, loc, before, value);
  }
  triton::StoreOp::create(b, loc, pointer, castFloat(b, loc, value, element),
                          mask);
  op.erase();
  return success();
}

LogicalResult ArgumentLowering::take(ArrayRef<Turn> turns) {
  for (const Turn &turn : turns)
    if (turn.kernel == backward && !turn.isAtomic())
      kTurns.passed(turn.ops.front(),
                    &turn == &turns.front()
                        ? "stored first, and others add to it: each reaches no "
                          "element twice"
                        : "added to what others have stored before, {0}: each "
                          "reaches no element twice",
                    turn.isBehindBarrier ? "behind a barrier"
                                         : "in an earlier kernel");
  bool isPlain =
      llvm::none_of(turns, [](const Turn &turn) { return turn.isAtomic(); });
  Type element = isPlain ? pointee : getSumType();
  BlockArgument buffer;
  if (turns.front().kernel == backward) {
    SmallVector<CheckAttr> checks;
    for (const Turn &turn : turns)
      if (!turn.isAtomic())
        checks.push_back(turn.check);
    bool fills = isPlain && turns.front().isExact;
    buffer = append(element, fills ? GradientInit::None : GradientInit::Zero,
                    isPlain ? Accumulate::Store : Accumulate::Atomic, checks);
  } else {
    buffer = appendShadow(backward, primal, OperandKind::Gradient, element, {});
  }
  ShadowPointers shadow(primal, buffer);
  for (const Turn &turn : turns) {
    if (turn.kernel != backward)
      continue;
    if (turn.isBehindBarrier) {
      OpBuilder b(turn.getOutermost());
      gpu::BarrierOp::create(b, backward.getLoc());
    }
    bool adds = &turn != &turns.front();
    for (AccumulateOp op : turn.ops)
      if (failed(turn.isAtomic() ? addAtomically(op, shadow)
                                 : store(op, shadow, adds)))
        return failure();
  }
  return success();
}

LogicalResult ArgumentLowering::clear(const AccessSpace &stores) {
  bool isExact = stores.isExact();
  CheckAttr check = stores.toCheck(
      isExact ? CheckKind::Bijective : CheckKind::Distinct, argument);
  ShadowPointers shadow(
      primal,
      append(pointee, isExact ? GradientInit::None : GradientInit::Cotangent,
             Accumulate::Store, {check}));
  for (UpstreamOp op : use.upstreams) {
    Value pointer = shadow.get(op.getPtr());
    if (!pointer)
      return failure();
    OpBuilder b(op);
    Location loc = op.getLoc();
    Type type = withElementType(pointer.getType(), pointee);
    if (!mutation::isMade(
            "lower-accumulates:what was overwritten keeps its cotangent"))
      triton::StoreOp::create(b, loc, pointer, constantOf(b, loc, type, 0.0),
                              shadow.mask(op.getPtr(), op.getMask(), b));
    op.erase();
  }
  return success();
}

LogicalResult ArgumentLowering::addRemainder() {
  ShadowPointers shadow(
      primal,
      appendShadow(backward, primal, OperandKind::Gradient, pointee, {}));
  for (AccumulateOp op : use.contributions) {
    OpBuilder b(op);
    op.getValueMutable().assign(
        castFloat(b, op.getLoc(), op.getValue(), pointee));
    if (failed(addAtomically(op, shadow)))
      return failure();
  }
  return success();
}

/// The user's name of an argument.
static std::string nameOf(BlockArgument argument) {
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    return ("'" + name.getName().getValue() + "'").str();
  return llvm::formatv("{0}", argument.getArgNumber());
}

LogicalResult ArgumentLowering::refuseAtomics() {
  kDeterministic.missed(getSubject(),
                        "contributions meet in atomic operations");
  return emitError(getSubject().op->getLoc(), "the gradient of argument ")
         << nameOf(primal)
         << " would meet in atomic operations here, whose order differs from "
            "run to run, and a deterministic backward was asked for: remove "
            "what stands in the way of its other schedules, or allow atomics "
            "(deterministic=False)";
}

Subject ArgumentLowering::getSubject() const {
  if (!use.contributions.empty())
    return AccumulateOp(use.contributions.front());
  return UpstreamOp(use.upstreams.front());
}

/// Why contributions, of which this is the space, may meet.
Reason ArgumentLowering::findMeeting(const ReasonOr<AccessSpace> &space,
                                     bool forceAtomic) const {
  if (!use.upstreams.empty())
    return because(
        backward,
        "the kernel stores to the argument at {0}, at addresses that "
        "are not known to be distinct, or that it also reads",
        UpstreamOp(use.upstreams.front()));
  if (forceAtomic)
    return because(backward, "a check of the addresses failed at a launch");
  return space.why();
}

LogicalResult ArgumentLowering::run(Contributions &all, bool forceAtomic,
                                    bool deterministic) {
  bool isRead =
      llvm::any_of(use.upstreams, [](UpstreamOp op) { return op.getRead(); });
  if (isRead && !forceAtomic) {
    kRemarks.passed(getSubject(), "it is the upstream gradient, and zero where "
                                  "the kernel stores");
    return clear(*all.findFor(use.upstreams));
  }
  if (llvm::any_of(use.contributions,
                   [](AccumulateOp op) { return op.getRemainder(); }))
    return addRemainder();
  ReasonOr<AccessSpace> space = std::nullopt;
  if (use.upstreams.empty()) {
    if (CheckAttr check = use.contributions[0].getWholeAttr()) {
      kRemarks.passed(getSubject(), "each element is stored once");
      return store(check);
    }
    space = all.findFor(use.contributions);
    if (!forceAtomic && space) {
      bool isExact = space->isExact();
      kRemarks.passed(getSubject(),
                      isExact
                          ? "each element is loaded once, as a launch checks"
                          : "no element is loaded twice, as a "
                            "launch checks");
      return isExact ? store(space->toCheck(CheckKind::Bijective, argument))
                     : store(space->toCheck(CheckKind::Distinct, argument),
                             GradientInit::Zero);
    }
  }
  kRemarks.missed(getSubject(), findMeeting(space, forceAtomic));
  return deterministic ? refuseAtomics() : accumulateAtomically();
}

/// Where the contributions of all `kernels` to a gradient are.
static GradientReach findReach(unsigned argument,
                               ArrayRef<triton::FuncOp> kernels,
                               Contributions &all) {
  GradientReach reach{};
  SmallVector<Contribution> unchecked;
  for (triton::FuncOp kernel : kernels) {
    GradientUses uses = all.in(kernel);
    for (Contribution op : uses[argument].contributions) {
      reach.hasRemainder |= op.getRemainder();
      // Others are checked to be the tensor's own elements.
      if (!op.getWhole() && !op.getPartial())
        unchecked.push_back(op);
    }
  }
  reach.spaces = all.findReaches(unchecked);
  reach.isKnown = !llvm::is_contained(reach.spaces, ReachAttr());
  llvm::erase(reach.spaces, ReachAttr());
  return reach;
}

/// The arguments that the differentiated kernel stored to, and whose gradient
/// is wanted, but that no kernel has anything to do with.
static SmallVector<unsigned> findUntouched(ArrayRef<triton::FuncOp> kernels,
                                           Contributions &all) {
  triton::FuncOp first = kernels.front();
  std::set<unsigned> touched;
  for (triton::FuncOp kernel : kernels)
    for (auto &[argument, use] : all.in(kernel))
      touched.insert(argument);
  return llvm::to_vector(llvm::make_filter_range(
      llvm::seq(first.getNumArguments()), [&](unsigned argument) {
        return !touched.count(argument) &&
               first.getArgAttr(argument, kHasCotangentAttr) &&
               first.getArgAttr(argument, kWantedAttr);
      }));
}

void LowerAccumulates::transform() {
  SmallVector<triton::FuncOp> kernels = getBackwards(getOperation());
  auto &all = getAnalysis<Contributions>();
  std::map<unsigned, SmallVector<Turn, 0>> turns;
  std::map<unsigned, GradientReach> reaches;
  SmallVector<unsigned> untouched = findUntouched(kernels, all);
  for (triton::FuncOp backward : kernels)
    for (auto &[argument, use] : all.in(backward)) {
      if (!turns.count(argument) && !llvm::is_contained(atomic, argument))
        turns[argument] = findTurns(kernels, argument, all);
      auto [reach, isNew] = reaches.try_emplace(argument);
      if (isNew) {
        reach->second = findReach(argument, kernels, all);
        reach->second.isConfined = llvm::is_contained(confine, argument);
      }
    }
  for (triton::FuncOp backward : kernels)
    for (auto &[argument, use] : all.in(backward)) {
      ArgumentLowering lowering(backward, argument, use, reaches[argument]);
      ArrayRef<Turn> taken = turns[argument];
      bool meet = llvm::any_of(taken, [kernel = backward](const Turn &turn) {
        return turn.kernel == kernel && turn.isAtomic();
      });
      LogicalResult done =
          taken.empty()
              ? lowering.run(all, llvm::is_contained(atomic, argument),
                             deterministic)
          : meet && deterministic ? lowering.refuseAtomics()
                                  : lowering.take(taken);
      if (failed(done))
        return signalPassFailure();
    }
  for (unsigned argument : untouched) {
    GradientUse none;
    ArgumentLowering(kernels.front(), argument, none, GradientReach{}).keep();
  }
}
