//===- Pipeline.cpp - The passes from a kernel to its derived kernels -----===//
#include "autodiff/Plan/Differentiate.h"

#include "autodiff/Target/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Adds passes as far as one of them, the last, and what cleans up after it.
class Passes {
public:
  Passes(OpPassManager &pm, llvm::StringRef last) : pm(pm), last(last) {}

  void add(std::unique_ptr<Pass> pass) { add(std::move(pass), false); }
  void addToKernels(std::unique_ptr<Pass> pass) { add(std::move(pass), true); }
  void clean();
  /// Whether the last pass, if one is named, has come.
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

LogicalResult mlir::autodiff::buildDifferentiatePipeline(OpPassManager &pm,
                                                         const Request &request,
                                                         llvm::StringRef last) {
  Passes passes(pm, last);
  auto setWanted = [&](auto options) {
    options.allWanted = !request.wanted;
    if (request.wanted)
      options.wanted.assign(request.wanted->begin(), request.wanted->end());
    return options;
  };
  if (request.allows(Request::Schedule::Exchange))
    passes.addToKernels(createHoldLoops());
  passes.add(createNormalize());
  passes.addToKernels(createMarkMiscomputed());
  passes.add(createLinkRules());
  passes.add(createSinkStores());
  passes.add(createForwardStores());
  passes.add(createBoundLoops());
  passes.add(createMarkStores());
  if (request.assume) {
    passes.add(createSpreadLoops());
    passes.add(createUnwrapTiles());
    if (request.allows(Request::Schedule::Batch))
      passes.add(createBatchLoops(
          BatchLoopsOptions{request.axes.size() == 1 ? request.axes[0] : 0,
                            request.schedules.has_value()}));
    if (request.allows(Request::Schedule::Unravel)) {
      UnravelPositionsOptions unravel;
      unravel.lengths.assign(request.axes.begin(), request.axes.end());
      passes.add(createUnravelPositions(setWanted(unravel)));
    }
    if (request.allows(Request::Schedule::Exchange))
      passes.add(createFlattenReturns());
  }
  passes.add(createCountTrips());
  passes.addToKernels(createMarkResiduals());
  passes.addToKernels(createRecordMemory());
  auto setCotangents = [&](auto options) {
    options.allCotangents = !request.cotangents;
    if (request.cotangents)
      options.cotangents.assign(request.cotangents->begin(),
                                request.cotangents->end());
    return options;
  };
  passes.add(createIgnoreOutputs(setCotangents(IgnoreOutputsOptions())));
  passes.add(
      createLiftAssembly(setWanted(setCotangents(LiftAssemblyOptions()))));
  passes.add(createRescaleAccumulators());
  passes.add(createCarrySums());
  passes.add(createDropMaxima());
  passes.add(createFoldNormalizers());
  passes.clean();
  passes.add(createPickMaxima());
  auto setRepeated = [&](auto options) {
    options.exchange.assign(request.exchange.begin(), request.exchange.end());
    return options;
  };
  if (request.reload)
    passes.add(createMarkStates(setRepeated(MarkStatesOptions())));
  auto setLaunch = [&](auto options) {
    options.assume = request.assume;
    return setWanted(setCotangents(setRepeated(options)));
  };
  passes.add(createMaskLoads(setLaunch(MaskLoadsOptions())));
  passes.add(createReverse(setLaunch(ReverseOptions())));
  passes.clean();
  passes.add(createMarkLive());
  passes.addToKernels(createTape());
  passes.clean();
  // Who stores where is noted in the forward.
  passes.add(createResiduals(
      ResidualsOptions{request.saves(), request.reload, request.check}));
  passes.clean();
  passes.add(createSaveRecords(SaveRecordsOptions{request.saves()}));
  passes.clean();
  passes.add(createReadCotangents(setRepeated(ReadCotangentsOptions())));
  passes.clean();
  // What loops need from outside is then seen to be there.
  passes.addToKernels(createLoopInvariantCodeMotionPass());
  passes.addToKernels(createOrderLoops());
  passes.clean();
  passes.add(createCountUp());
  passes.clean();
  passes.add(createMergeContributions());
  MergeNestsOptions nests;
  nests.atomic.assign(request.atomic.begin(), request.atomic.end());
  passes.add(createMergeNests(nests));
  passes.clean();
  if (request.allows(Request::Schedule::Merge)) {
    GatherWindowsOptions windows;
    windows.always = request.deterministic || request.schedules;
    windows.atomic.assign(request.atomic.begin(), request.atomic.end());
    passes.add(createGatherWindows(windows));
    passes.clean();
  }
  // What it leaves over meets in atomics.
  if (request.allows(Request::Schedule::Merge) && !request.deterministic) {
    MergeGatheredOptions gathered;
    gathered.atomic.assign(request.atomic.begin(), request.atomic.end());
    passes.add(createMergeGathered(gathered));
    passes.clean();
  }
  if (request.allows(Request::Schedule::Exchange)) {
    ExchangeOptions exchange;
    exchange.atomic.assign(request.atomic.begin(), request.atomic.end());
    passes.add(createExchange(exchange));
    passes.addToKernels(createReleaseLoops());
    passes.clean();
  }
  passes.addToKernels(createFactorProducts());
  passes.clean();
  passes.addToKernels(createOrientDots());
  passes.clean();
  if (request.allows(Request::Schedule::Persist)) {
    PersistOptions persist;
    persist.atomic.assign(request.atomic.begin(), request.atomic.end());
    persist.always = request.deterministic || request.schedules;
    passes.add(createPersist(persist));
    passes.clean();
  }
  ScheduleOptions schedule;
  schedule.atomic.assign(request.atomic.begin(), request.atomic.end());
  schedule.confine.assign(request.confine.begin(), request.confine.end());
  schedule.deterministic = request.deterministic;
  passes.add(createSchedule(schedule));
  passes.add(createChooseTiles(ChooseTilesOptions{request.widen}));
  passes.clean();
  passes.add(createDivideTiles());
  // Checks look at each access themselves.
  passes.add(createConfineGradients(ConfineGradientsOptions{!request.check}));
  passes.add(createTallySums());
  passes.add(createSymbolDCEPass());
  passes.clean();
  passes.addToKernels(createSumRuns());
  passes.addToKernels(createDeferReductions());
  passes.clean();
  passes.addToKernels(createPowersOfTwo());
  passes.addToKernels(createLoadEarly());
  passes.addToKernels(createLaunchOptions());
  passes.addToKernels(createPipelineLoads());
  passes.addToKernels(createSplitMasks());
  passes.addToKernels(createRenewSums());
  passes.addToKernels(createUnifyCopies());
  passes.addToKernels(createFitProducts());
  passes.addToKernels(createLowerPrograms());
  passes.add(createSizes());
  passes.addToKernels(createLowerSwaps());
  passes.clean();
  passes.addToKernels(createLoopInvariantCodeMotionPass());
  passes.addToKernels(
      createLowerBarriers(LowerBarriersOptions{request.ownBarriers}));
  if (request.check)
    passes.addToKernels(createCheckBounds());
  AskNextOptions next;
  next.assume = request.assume;
  next.reload = request.reload;
  next.checkpoint = request.checkpoint;
  next.deterministic = request.deterministic;
  next.adds = !request.atomic.empty() || !request.exchange.empty();
  next.hasAxes = !request.axes.empty();
  next.takesAxes = request.axes.empty() && !request.declinesAxes;
  passes.add(createAskNext(next));
  passes.add(createVerifyTarget());
  return success(passes.isComplete());
}

void mlir::autodiff::registerDifferentiatePipeline() {
  registerPassPipeline(
      "autodiff-differentiate",
      "Derive the kernels of a kernel's gradient, as the library does",
      [](OpPassManager &pm, llvm::StringRef text,
         llvm::function_ref<LogicalResult(const Twine &)> fail) {
        PipelineOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        Request request;
        using Schedule = Request::Schedule;
        if (options.always)
          request.schedules = {Schedule::Merge, Schedule::Exchange,
                               Schedule::Persist};
        if (failed(buildDifferentiatePipeline(pm, request, options.until)))
          return fail("no pass of the pipeline is " + options.until);
        return success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(PipelineOptions());
      });
}
