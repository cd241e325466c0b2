//===- Pipeline.cpp - From TTIR to the LLVM dialect -----------------------===//

#include "autodiff/CPU/Compile.h"
#include "autodiff/CPU/Passes.h"
#include "autodiff/Conversion/TritonToLinalg/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

void cpu::registerDialects(DialectRegistry &registry) {
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  func::registerInlinerExtension(registry);
  LLVM::registerInlinerInterface(registry);

  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);

  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void cpu::registerPasses() {
  registerTritonToLinalgPasses();
  registerAutodiffCPUPasses();
  bufferization::registerOneShotBufferizePassPass();
  registerConvertLinalgToLoopsPassPass();
  PassPipelineRegistration<>("triton-to-llvm",
                             "The CPU backend's passes, for this machine",
                             [](OpPassManager &pm) {
                               auto [bits, count] = getVectorRegisters();
                               buildPipeline(pm, {bits, count});
                             });
}

void cpu::buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  TritonToLinalgOptions lowering;
  lowering.vectorBits = options.vectorBits;
  lowering.vectorRegisters = options.vectorRegisters;
  lowering.copyCarried = options.copyCarried;
  pm.addPass(createTritonToLinalg(lowering));

  // Bufferization and the stack layout need one structured function without
  // calls and branches.
  pm.addPass(createLiftControlFlowToSCFPass());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  // Before CSE, which would compare each tile's code with that of all others.
  pm.addNestedPass<func::FuncOp>(createSeparateTiles());
  pm.addPass(createCSEPass());

  bufferization::OneShotBufferizePassOptions bufferize;
  // For results of branches: vector accesses need contiguous rows.
  bufferize.unknownTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createConvertLinalgToLoopsPass());
  // Loops that update tiles in place then carry no buffers.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createHoistAllocations());
  pm.addPass(createCSEPass());
  pm.addPass(createSplitKernels());

  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createIntegerBFloats());
}
