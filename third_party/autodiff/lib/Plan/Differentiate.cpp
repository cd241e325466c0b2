//===- Differentiate.cpp - From a kernel to a plan ------------------------===//
#include "autodiff/Plan/Differentiate.h"

#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Support/Dump.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

static void addCleanup(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<triton::FuncOp>();
  kernels.addPass(createSimplify());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

void mlir::autodiff::buildDifferentiatePipeline(OpPassManager &pm,
                                                const Request &request) {
  pm.addPass(createNormalize());
  pm.addPass(createLinkRules());
  pm.addPass(createCountTrips());
  pm.nest<triton::FuncOp>().addPass(createMarkResiduals());
  pm.nest<triton::FuncOp>().addPass(createRecordMemory());
  pm.addPass(createRescaleAccumulators());
  pm.addPass(createDropMaxima());
  pm.addPass(createFoldNormalizers());
  addCleanup(pm);
  ReverseOptions reverse;
  reverse.allWanted = !request.wanted;
  reverse.allCotangents = !request.cotangents;
  if (request.wanted)
    reverse.wanted.assign(request.wanted->begin(), request.wanted->end());
  if (request.cotangents)
    reverse.cotangents.assign(request.cotangents->begin(),
                              request.cotangents->end());
  pm.addPass(createReverse(reverse));
  addCleanup(pm);
  pm.nest<triton::FuncOp>().addPass(createTape());
  addCleanup(pm);
  pm.addPass(createResiduals(ResidualsOptions{request.save, request.reload}));
  addCleanup(pm);
  pm.addPass(createSaveRecords(SaveRecordsOptions{request.save}));
  addCleanup(pm);
  ReadCotangentsOptions readCotangents;
  readCotangents.exchange.assign(request.exchange.begin(),
                                 request.exchange.end());
  pm.addPass(createReadCotangents(readCotangents));
  addCleanup(pm);
  // What loops need from outside is then seen to be there.
  pm.nest<triton::FuncOp>().addPass(createLoopInvariantCodeMotionPass());
  pm.nest<triton::FuncOp>().addPass(createOrderLoops());
  addCleanup(pm);
  pm.addPass(createMergeContributions());
  addCleanup(pm);
  // What it leaves over meets in atomics.
  if (request.allows(Request::Schedule::Merge) && !request.deterministic) {
    MergeGatheredOptions gathered;
    gathered.atomic.assign(request.atomic.begin(), request.atomic.end());
    pm.addPass(createMergeGathered(gathered));
    addCleanup(pm);
  }
  if (request.allows(Request::Schedule::Exchange)) {
    ExchangeOptions exchange;
    exchange.atomic.assign(request.atomic.begin(), request.atomic.end());
    pm.addPass(createExchange(exchange));
    addCleanup(pm);
  }
  pm.nest<triton::FuncOp>().addPass(createOrientDots());
  addCleanup(pm);
  if (request.allows(Request::Schedule::Persist)) {
    PersistOptions persist;
    persist.atomic.assign(request.atomic.begin(), request.atomic.end());
    persist.always = request.deterministic || request.schedules;
    pm.addPass(createPersist(persist));
    addCleanup(pm);
  }
  ScheduleOptions schedule;
  schedule.atomic.assign(request.atomic.begin(), request.atomic.end());
  schedule.deterministic = request.deterministic;
  pm.addPass(createSchedule(schedule));
  pm.addPass(createClearTouched());
  pm.addPass(createChooseTiles(ChooseTilesOptions{request.widen}));
  addCleanup(pm);
  pm.addPass(createDivideTiles());
  pm.nest<triton::FuncOp>().addPass(createLaunchOptions());
  pm.nest<triton::FuncOp>().addPass(createPipelineLoads());
  pm.nest<triton::FuncOp>().addPass(createLowerPrograms());
  pm.addPass(createSizes());
  pm.nest<triton::FuncOp>().addPass(createLowerSwaps());
  addCleanup(pm);
  pm.nest<triton::FuncOp>().addPass(createLoopInvariantCodeMotionPass());
  if (request.check)
    pm.nest<triton::FuncOp>().addPass(createCheckBounds());
}

FailureOr<std::string>
mlir::autodiff::differentiate(ModuleOp module, llvm::StringRef requestJson) {
  FailureOr<Request> request = Request::parse(requestJson, module.getLoc());
  if (failed(request))
    return failure();
  for (const UserRule &rule : request->rules)
    if (failed(importRule(rule, module)))
      return failure();
  PassManager pm(module.getContext());
  triton::FuncOp primal = getPrimal(module);
  enableDump(pm, primal ? primal.getSymName() : "");
  buildDifferentiatePipeline(pm, *request);
  if (request->checkpoint)
    module->setAttr(kCheckpointAttr, UnitAttr::get(module.getContext()));
  if (failed(pm.run(module)))
    return failure();
  return printPlan(module);
}
