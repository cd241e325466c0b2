//===- Pipeline.cpp - The passes from a kernel to its derived kernels -----===//
//
// The pipeline has three stages. Rearrange: a kernel becomes one that does the
// same in another launch. Derive: it becomes a plan. Lower: the plan becomes
// one that Triton compiles, with fewer atomics and less memory traffic.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Plan/Differentiate.h"

#include "autodiff/Forward/Passes.h"
#include "autodiff/Source/Passes.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Target/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Collects passes up to the last one that was asked for, and the cleanup after
/// it.
class Passes {
public:
  Passes(OpPassManager &pm, llvm::StringRef last) : pm(pm), last(last) {}

  void add(std::unique_ptr<Pass> pass) { add(std::move(pass), false); }
  void addToKernels(std::unique_ptr<Pass> pass) { add(std::move(pass), true); }
  void clean();
  /// Whether the last pass, if one is named, has been added.
  bool isComplete() const { return last.empty(); }

private:
  void add(std::unique_ptr<Pass> pass, bool toKernels);

  OpPassManager &pm;
  llvm::StringRef last;
  bool hasEnded = false;
};

struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<std::string> until{
      *this, "until",
      llvm::cl::desc("The last of the passes; what cleans up follows it.")};
  Option<bool> always{*this, "always",
                      llvm::cl::desc("Use all schedules wherever they apply.")};
  Option<bool> plain{*this, "plain",
                     llvm::cl::desc("Schedule nothing: lower the plan as it "
                                    "is derived.")};
  ListOption<unsigned> atomic{
      *this, "atomic",
      llvm::cl::desc("Arguments whose gradient must be accumulated "
                     "atomically.")};
};
} // namespace

void Passes::add(std::unique_ptr<Pass> pass, bool toKernels) {
  if (hasEnded)
    return;
  bool isLast = pass->getArgument() == last;
  (toKernels ? pm.nest<triton::FuncOp>() : pm).addPass(std::move(pass));
  if (!isLast)
    return;
  last = "";
  clean();
  hasEnded = true;
}

void Passes::clean() {
  if (!hasEnded)
    pm.addPass(createCleanup());
}

//===----------------------------------------------------------------------===//
// What passes are told
//===----------------------------------------------------------------------===//

template <typename Options>
static Options withWanted(const Request &request, Options options) {
  options.allWanted = !request.wanted;
  if (request.wanted)
    options.wanted.assign(request.wanted->begin(), request.wanted->end());
  return options;
}

template <typename Options>
static Options withCotangents(const Request &request, Options options) {
  options.allCotangents = !request.cotangents;
  if (request.cotangents)
    options.cotangents.assign(request.cotangents->begin(),
                              request.cotangents->end());
  return options;
}

template <typename Options>
static Options withRepeated(const Request &request, Options options) {
  if (!mutation::isMade("plan:arguments of their own"))
    options.repeated.assign(request.repeated.begin(), request.repeated.end());
  return options;
}

template <typename Options>
static Options withLaunch(const Request &request, Options options) {
  options.assume =
      request.assume || mutation::isMade("plan:what is not asked is assumed");
  return withWanted(request,
                    withCotangents(request, withRepeated(request, options)));
}

template <typename Options>
static Options withAtomic(const Request &request, Options options) {
  if (!mutation::isMade("plan:no gradient is shared"))
    options.atomic.assign(request.atomic.begin(), request.atomic.end());
  return options;
}

//===----------------------------------------------------------------------===//
// The parts
//===----------------------------------------------------------------------===//

/// Normalizes the kernel for the other stages, and notes what its stores do.
static void addNormalize(Passes &passes, const Request &request) {
  if (request.allows(Request::Schedule::Interchange))
    passes.addToKernels(createHoldLoops());
  passes.add(createNormalize());
  passes.addToKernels(createMarkMiscomputed());
  LinkRulesOptions link;
  link.again = request.again;
  passes.add(createLinkRules(link));
  passes.add(createMarkHistory());
  passes.add(createSinkStores());
  passes.add(createForwardStores());
  passes.add(createBoundLoops());
  passes.add(createMarkStores());
  passes.add(createMarkAccesses());
}

/// Rearrange: from the kernel to one that does the same in another launch, and
/// has a better backward.
static void addRearrange(Passes &passes, const Request &request) {
  if (!request.assume || !request.scheduled)
    return;
  passes.add(createSpreadLoops());
  passes.add(createUnwrapTiles());
  if (request.allows(Request::Schedule::Batch))
    passes.add(createBatchLoops(
        BatchLoopsOptions{request.axes.size() == 1 ? request.axes[0] : 0,
                          request.schedules.has_value()}));
  if (request.allows(Request::Schedule::Unravel)) {
    UnravelPositionsOptions unravel;
    unravel.lengths.assign(request.axes.begin(), request.axes.end());
    passes.add(createUnravelPositions(withWanted(request, unravel)));
  }
  if (request.allows(Request::Schedule::Interchange))
    passes.add(createFlattenReturns());
}

/// Derive: from the kernel to a plan without schedules: an augmented forward,
/// if one is needed, and one backward on the forward's grid, in which
/// contributions to gradients are still `autodiff.accumulate`.
static void addDerive(Passes &passes, const Request &request) {
  passes.add(createCountTrips());
  passes.addToKernels(createMarkResiduals());
  passes.addToKernels(createRecordMemory());
  passes.add(
      createIgnoreOutputs(withCotangents(request, IgnoreOutputsOptions())));
  passes.add(createLiftAssembly(
      withWanted(request, withCotangents(request, LiftAssemblyOptions()))));
  passes.add(createRescaleAccumulators());
  passes.add(createCarrySums());
  passes.add(createDropReferences());
  passes.add(createDropMaxima());
  passes.add(createFoldNormalizers());
  passes.clean();
  passes.add(createPickMaxima());
  if (request.reload)
    passes.add(createMarkStates(withWanted(
        request,
        withCotangents(request, withRepeated(request, MarkStatesOptions())))));
  passes.add(createMaskLoads(withLaunch(request, MaskLoadsOptions())));
  passes.add(createRoundLate());
  ReverseOptions reverse;
  reverse.again = request.again;
  passes.add(createReverse(withLaunch(request, reverse)));
  if (request.again) {
    passes.addToKernels(createNarrowZeros());
    passes.add(createWriteMarkers());
  }
  passes.clean();
  passes.add(createMarkLive());
  passes.add(createPlaceTapes());
  passes.clean();
  // For debugging, the forward notes which program stores to an element.
  ChooseResidualsOptions residuals;
  residuals.save = request.saves();
  residuals.reload = request.reload;
  residuals.derive = request.check;
  passes.add(createChooseResiduals(withRepeated(request, residuals)));
  passes.clean();
  passes.add(createSaveRecords(SaveRecordsOptions{request.saves()}));
  passes.clean();
  passes.add(
      createReadCotangents(withRepeated(request, ReadCotangentsOptions())));
  passes.clean();
  passes.add(createListLaunches());
}

/// Merges contributions, so that fewer are added and memory is read less often.
static void addGather(Passes &passes, const Request &request) {
  // Loop-invariant values are then seen to be available.
  passes.addToKernels(createLoopInvariantCodeMotionPass());
  passes.addToKernels(createOrderLoops());
  passes.clean();
  passes.add(createCountUp());
  passes.clean();
  passes.add(createMergeContributions());
  passes.add(createMergeNests(withAtomic(request, MergeNestsOptions())));
  passes.clean();
  if (request.allows(Request::Schedule::Merge)) {
    GatherWindowsOptions windows;
    windows.always = request.deterministic || request.schedules;
    passes.add(createGatherWindows(withAtomic(request, windows)));
    passes.clean();
  }
  // Contributions that it does not merge are added atomically.
  if (request.allows(Request::Schedule::Merge)) {
    MergeGatheredOptions gathered;
    gathered.deterministic = request.deterministic;
    passes.add(createMergeGathered(withAtomic(request, gathered)));
    passes.clean();
  }
}

/// Lets backward kernels run on other grids.
static void addRegrid(Passes &passes, const Request &request) {
  if (request.allows(Request::Schedule::Interchange)) {
    SkewLoopsOptions skewed;
    skewed.always = request.deterministic || request.schedules;
    if (request.allows(Request::Schedule::Merge))
      passes.add(createSkewLoops(withAtomic(request, skewed)));
    passes.clean();
    passes.add(createInterchange(withAtomic(request, InterchangeOptions())));
    passes.addToKernels(createReleaseLoops());
    passes.clean();
  }
  passes.addToKernels(createFactorProducts());
  passes.clean();
  passes.addToKernels(createOrientDots());
  passes.clean();
  if (request.allows(Request::Schedule::Persist)) {
    PersistOptions persist;
    persist.always = request.deterministic || request.schedules;
    passes.add(createPersist(withAtomic(request, persist)));
    passes.clean();
  }
}

/// Lower: from a plan to one whose kernels Triton can compile. If the
/// request says so, only what is necessary is done.
static void addLower(Passes &passes, const Request &request) {
  if (request.scheduled) {
    addGather(passes, request);
    addRegrid(passes, request);
  } else {
    passes.addToKernels(createReleaseLoops());
    passes.clean();
  }
  LowerAccumulatesOptions accumulates;
  accumulates.confine.assign(request.confine.begin(), request.confine.end());
  accumulates.deterministic = request.deterministic;
  passes.add(createLowerAccumulates(withAtomic(request, accumulates)));
  if (request.scheduled) {
    passes.add(createChooseTiles(ChooseTilesOptions{request.widen}));
    passes.clean();
    passes.add(createDivideTiles());
  }
  // Bounds checks mask each access themselves.
  passes.add(createConfineGradients(ConfineGradientsOptions{!request.check}));
  if (request.scheduled)
    passes.add(createTallySums());
  passes.add(createSymbolDCEPass());
  passes.clean();
  if (request.scheduled) {
    passes.addToKernels(createSumRuns());
    passes.addToKernels(createDeferReductions());
    passes.clean();
  }
  passes.addToKernels(createUsePowersOfTwo());
  if (request.scheduled) {
    passes.addToKernels(createLoadEarly());
    passes.addToKernels(createOrderProducts());
  }
  passes.add(createChooseOptions());
  if (request.scheduled) {
    passes.addToKernels(createPipelineLoads());
    passes.addToKernels(createSplitMasks());
    passes.addToKernels(createRenewSums());
  }
  passes.addToKernels(createPlaceMaxima());
  passes.addToKernels(createUnifyCopies());
  passes.addToKernels(createFitProducts());
  passes.addToKernels(createLowerPrograms());
  passes.add(createPassSizes());
  passes.addToKernels(createLowerSwaps());
  passes.addToKernels(createLegalizeSource());
  passes.clean();
  passes.addToKernels(createLoopInvariantCodeMotionPass());
  passes.addToKernels(createHideNarrowLoads());
  passes.addToKernels(createKeepOrder());
  passes.add(createLowerBarriers(LowerBarriersOptions{request.ownBarriers}));
  if (request.check)
    passes.add(createCheckBounds());
  passes.add(createVerifyTarget());
  passes.add(createListLaunches());
  passes.add(createTrimOperands());
  passes.add(createListSteps());
  passes.add(createVerifyWrites());
  AskNextOptions next;
  next.assume = request.assume;
  next.reload = request.reload;
  next.checkpoint = request.checkpoint;
  next.deterministic = request.deterministic;
  next.adds = !request.atomic.empty() || !request.repeated.empty();
  next.hasAxes = !request.axes.empty();
  next.takesAxes = request.axes.empty() && !request.declinesAxes;
  passes.add(createAskNext(next));
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult mlir::autodiff::buildDifferentiatePipeline(OpPassManager &pm,
                                                         const Request &request,
                                                         llvm::StringRef last) {
  Passes passes(pm, last);
  addNormalize(passes, request);
  addRearrange(passes, request);
  addDerive(passes, request);
  addLower(passes, request);
  return success(passes.isComplete());
}

using BuildStage = void (*)(Passes &passes, const Request &request);

/// Registers a sequence of stages as a named pipeline.
static void registerStages(llvm::StringRef name, llvm::StringRef description,
                           std::vector<BuildStage> stages) {
  registerPassPipeline(
      name, description,
      [stages](OpPassManager &pm, llvm::StringRef text,
               llvm::function_ref<LogicalResult(const Twine &)> fail) {
        PipelineOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        Request request;
        request.scheduled = !options.plain;
        request.atomic.assign(options.atomic.begin(), options.atomic.end());
        using Schedule = Request::Schedule;
        if (options.always)
          request.schedules = {Schedule::Merge, Schedule::Interchange,
                               Schedule::Persist};
        Passes passes(pm, options.until);
        for (BuildStage stage : stages)
          stage(passes, request);
        if (!passes.isComplete())
          return fail("no pass of the pipeline is " + options.until);
        return success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(PipelineOptions());
      });
}

void mlir::autodiff::registerPipelines() {
  registerStages("autodiff-rearrange",
                 "Make a kernel one from which better backwards are derived",
                 {addNormalize, addRearrange});
  registerStages("autodiff-derive", "Derive the plan of a kernel's gradient",
                 {addNormalize, addDerive});
  registerStages("autodiff-lower",
                 "Lower a plan to kernels that Triton compiles", {addLower});
  registerStages("autodiff-differentiate",
                 "Derive the kernels of a kernel's gradient, as the library "
                 "does: all stages, one after the other",
                 {addNormalize, addRearrange, addDerive, addLower});
}
