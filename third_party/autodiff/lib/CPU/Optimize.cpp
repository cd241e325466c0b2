//===- Optimize.cpp - LLVM's optimizations of a kernel --------------------===//
//
// A kernel is one function, without profiles, coroutines or calls of its own.
// These are the passes of LLVM's module pipeline that do something for it, in
// the same order. The others would make up a tenth of the library.
//
//===----------------------------------------------------------------------===//

#include "StoreOrder.h"
#include "VectorFunctions.h"
#include "autodiff/CPU/Compile.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/AggressiveInstCombine/AggressiveInstCombine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/ConstantMerge.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/GlobalOpt.h"
#include "llvm/Transforms/IPO/InferFunctionAttrs.h"
#include "llvm/Transforms/IPO/SCCP.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/AlignmentFromAssumptions.h"
#include "llvm/Transforms/Scalar/BDCE.h"
#include "llvm/Transforms/Scalar/ConstraintElimination.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/DeadStoreElimination.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/DropUnnecessaryAssumes.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/Float2Int.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/JumpThreading.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopDistribute.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"
#include "llvm/Transforms/Scalar/LoopInstSimplify.h"
#include "llvm/Transforms/Scalar/LoopLoadElimination.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopSimplifyCFG.h"
#include "llvm/Transforms/Scalar/LoopSink.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/LowerConstantIntrinsics.h"
#include "llvm/Transforms/Scalar/MemCpyOptimizer.h"
#include "llvm/Transforms/Scalar/MergedLoadStoreMotion.h"
#include "llvm/Transforms/Scalar/Reassociate.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Scalar/TailRecursionElimination.h"
#include "llvm/Transforms/Utils/InjectTLIMappings.h"
#include "llvm/Transforms/Utils/LibCallsShrinkWrap.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
#include "llvm/Transforms/Vectorize/VectorCombine.h"

using namespace llvm;
using namespace mlir::autodiff;

/// Passes over all loops, innermost first.
template <typename... Passes>
static void addLoopPasses(FunctionPassManager &functions, bool memorySSA,
                          Passes &&...passes) {
  LoopPassManager loops;
  (loops.addPass(std::forward<Passes>(passes)), ...);
  functions.addPass(
      createFunctionToLoopPassAdaptor(std::move(loops), memorySSA));
}

static SimplifyCFGPass simplifyBranches() {
  return SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true));
}

/// As in LLVM's buildFunctionSimplificationPipeline.
static void addSimplification(FunctionPassManager &passes) {
  auto hoist = [] { return LICMPass(LICMOptions()); };
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(JumpThreadingPass());
  passes.addPass(CorrelatedValuePropagationPass());
  passes.addPass(simplifyBranches());
  passes.addPass(InstCombinePass());
  passes.addPass(AggressiveInstCombinePass());
  passes.addPass(LibCallsShrinkWrapPass());
  passes.addPass(TailCallElimPass());
  passes.addPass(simplifyBranches());
  passes.addPass(ReassociatePass());
  passes.addPass(ConstraintEliminationPass());
  addLoopPasses(passes, /*memorySSA=*/true, LoopInstSimplifyPass(),
                LoopSimplifyCFGPass(),
                LICMPass(/*LicmMssaOptCap=*/100,
                         /*LicmMssaNoAccForPromotionCap=*/250,
                         /*AllowSpeculation=*/false),
                LoopRotatePass(), hoist(), SimpleLoopUnswitchPass());
  passes.addPass(simplifyBranches());
  passes.addPass(InstCombinePass());
  addLoopPasses(passes, /*memorySSA=*/false, LoopIdiomRecognizePass(),
                IndVarSimplifyPass(), LoopDeletionPass(), LoopFullUnrollPass());
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(VectorCombinePass(/*TryEarlyFoldsOnly=*/true));
  passes.addPass(MergedLoadStoreMotionPass());
  passes.addPass(GVNPass());
  passes.addPass(SCCPPass());
  passes.addPass(BDCEPass());
  passes.addPass(InstCombinePass());
  passes.addPass(JumpThreadingPass());
  passes.addPass(CorrelatedValuePropagationPass());
  passes.addPass(ADCEPass());
  passes.addPass(MemCpyOptPass());
  passes.addPass(DSEPass());
  addLoopPasses(passes, /*memorySSA=*/true, hoist());
  passes.addPass(SimplifyCFGPass(SimplifyCFGOptions()
                                     .convertSwitchRangeToICmp(true)
                                     .convertSwitchToArithmetic(true)
                                     .hoistCommonInsts(true)
                                     .sinkCommonInsts(true)));
  passes.addPass(InstCombinePass());
}

/// As in LLVM's buildModuleOptimizationPipeline.
static void addVectorization(FunctionPassManager &passes, bool vectorize) {
  passes.addPass(DropUnnecessaryAssumesPass());
  passes.addPass(Float2IntPass());
  passes.addPass(LowerConstantIntrinsicsPass());
  addLoopPasses(passes, /*memorySSA=*/false, LoopRotatePass(),
                LoopDeletionPass());
  passes.addPass(LoopDistributePass());
  passes.addPass(InjectTLIMappings());
  passes.addPass(LoopVectorizePass(
      LoopVectorizeOptions(/*InterleaveOnlyWhenForced=*/!vectorize,
                           /*VectorizeOnlyWhenForced=*/!vectorize)));
  passes.addPass(DropUnnecessaryAssumesPass());
  passes.addPass(InferAlignmentPass());
  passes.addPass(LoopLoadEliminationPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass(SimplifyCFGOptions()
                                     .forwardSwitchCondToPhi(true)
                                     .convertSwitchRangeToICmp(true)
                                     .convertSwitchToArithmetic(true)
                                     .convertSwitchToLookupTable(true)
                                     .needCanonicalLoops(false)
                                     .hoistCommonInsts(true)
                                     .sinkCommonInsts(true)));
  passes.addPass(VectorCombinePass());
  passes.addPass(InstCombinePass());
  passes.addPass(LoopUnrollPass());
  passes.addPass(SROAPass(SROAOptions::PreserveCFG));
  passes.addPass(InferAlignmentPass());
  passes.addPass(InstCombinePass());
  addLoopPasses(passes, /*memorySSA=*/true, LICMPass(LICMOptions()));
  passes.addPass(AlignmentFromAssumptionsPass());
  passes.addPass(LoopSinkPass());
  passes.addPass(InstSimplifyPass());
  passes.addPass(DivRemPairsPass());
  passes.addPass(TailCallElimPass());
  passes.addPass(SimplifyCFGPass(SimplifyCFGOptions()
                                     .convertSwitchRangeToICmp(true)
                                     .convertSwitchToArithmetic(true)
                                     .speculateUnpredictables(true)
                                     .hoistLoadsStoresWithCondFaulting(true)));
}

static void addPasses(ModulePassManager &modules, bool vectorize) {
  modules.addPass(InferFunctionAttrsPass());
  FunctionPassManager early;
  early.addPass(SimplifyCFGPass());
  early.addPass(SROAPass(SROAOptions::ModifyCFG));
  early.addPass(EarlyCSEPass());
  modules.addPass(
      createModuleToFunctionPassAdaptor(std::move(early), /*Eager=*/true));
  modules.addPass(IPSCCPPass());
  modules.addPass(GlobalOptPass());
  FunctionPassManager promote;
  promote.addPass(PromotePass());
  promote.addPass(InstCombinePass());
  promote.addPass(simplifyBranches());
  modules.addPass(
      createModuleToFunctionPassAdaptor(std::move(promote), /*Eager=*/true));
  modules.addPass(AlwaysInlinerPass());
  FunctionPassManager functions;
  addSimplification(functions);
  modules.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
  modules.addPass(GlobalOptPass());
  modules.addPass(GlobalDCEPass());
  FunctionPassManager late;
  addVectorization(late, vectorize);
  modules.addPass(createModuleToFunctionPassAdaptor(std::move(late)));
  modules.addPass(GlobalDCEPass());
  modules.addPass(ConstantMergePass());
}

LogicalResult cpu::optimize(llvm::Module &module, llvm::TargetMachine &target,
                            const CompileOptions &options, std::string &error) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  PassInstrumentationCallbacks callbacks;
  cpu::skipUnsoundSROA(callbacks);
  // Without the target, which would add passes for other languages.
  PassBuilder builder(nullptr, {}, std::nullopt, &callbacks);
  functions.registerPass([&] { return target.getTargetIRAnalysis(); });
  TargetLibraryInfoImpl library(target.getTargetTriple());
  cpu::addVectorFunctions(library, target);
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  // The analyses that passes over functions and loops may ask for.
  modules.registerPass([] { return ProfileSummaryAnalysis(); });
  modules.registerPass([&] { return PassInstrumentationAnalysis(&callbacks); });
  modules.registerPass(
      [&] { return FunctionAnalysisManagerModuleProxy(functions); });
  builder.registerFunctionAnalyses(functions);
  functions.registerPass(
      [&] { return ModuleAnalysisManagerFunctionProxy(modules); });
  functions.registerPass(
      [&] { return LoopAnalysisManagerFunctionProxy(loops); });
  builder.registerLoopAnalyses(loops);
  loops.registerPass(
      [&] { return FunctionAnalysisManagerLoopProxy(functions); });

  if (options.optLevel > 0) {
    ModulePassManager passes;
    addPasses(passes, options.vectorize && options.optLevel > 1);
    passes.run(module, modules);
  }
  cpu::useVectorFunctions(module, target);
  if (const char *path = std::getenv("TRITON_AUTODIFF_DUMP_LLVM")) {
    std::error_code errorCode;
    raw_fd_ostream os(path, errorCode);
    module.print(os, nullptr);
  }
  raw_string_ostream os(error);
  if (!verifyModule(module, &os))
    return mlir::success();
  error.insert(0, "LLVM made invalid code of this kernel: ");
  return mlir::failure();
}
