//===- Codegen.cpp - From the LLVM dialect to an object -------------------===//

#include "Runtime.h"
#include "autodiff/CPU/Compile.h"
#include "autodiff/Support/Dump.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/PassRecord.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

void cpu::initializeHost() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine>
cpu::createHostTarget(const CompileOptions &options, std::string &error) {
  initializeHost();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::string features;
  for (auto &feature : llvm::sys::getHostCPUFeatures())
    features +=
        (features.empty() ? "" : ",") +
        (std::string(feature.second ? "+" : "-") + feature.first().str());
  llvm::TargetOptions targetOptions;
  // Every operation is rounded by itself: fusing products into sums would
  // differ from kernel to kernel.
  targetOptions.AllowFPOpFusion =
      mutation::isMade("cpu-code:products fused into sums")
          ? llvm::FPOpFusion::Fast
          : llvm::FPOpFusion::Standard;
  // Level 0 is the fast instruction selection.
  auto level = options.optLevel ? llvm::CodeGenOptLevel::Default
                                : llvm::CodeGenOptLevel::None;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, llvm::sys::getHostCPUName(), features, targetOptions,
      llvm::Reloc::PIC_, std::nullopt, level, /*JIT=*/true));
}

std::pair<unsigned, unsigned> cpu::getVectorRegisters() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return {512, 32};
  if (features.lookup("avx2"))
    return {256, 16};
  llvm::Triple triple(llvm::sys::getProcessTriple());
  return {128, triple.isAArch64() ? 32 : 16};
}

//===----------------------------------------------------------------------===//
// Options and metadata
//===----------------------------------------------------------------------===//

FailureOr<cpu::CompileOptions> cpu::parseCompileOptions(Location loc,
                                                        StringRef json) {
  CompileOptions options;
  if (json.empty())
    return options;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return emitError(loc) << "options: " << llvm::toString(value.takeError());
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return emitError(loc) << "options: not an object";
  if (auto level = object->getInteger("opt_level"))
    options.optLevel = *level;
  return options;
}

/// The kernel's argument types, in TTIR's spelling.
static FailureOr<std::string> describeSignature(triton::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Type type : kernel.getArgumentTypes()) {
    if (!text.empty())
      os << ",";
    if (isa<triton::PointerType>(type))
      os << "ptr";
    else if (type.isIntOrFloat())
      os << type;
    else
      return kernel.emitError(
                 "the CPU backend cannot pass an argument of type ")
             << type;
  }
  return text;
}

static FailureOr<triton::FuncOp> findKernel(ModuleOp module) {
  triton::FuncOp kernel;
  for (auto function : module.getOps<triton::FuncOp>()) {
    if (!function.isPublic())
      continue;
    if (kernel)
      return function.emitError("a second kernel in one module");
    kernel = function;
  }
  if (!kernel)
    return module.emitError("no kernel in the module");
  return kernel;
}

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral programSuffix = ".program";

/// A constant that the loader finds by name.
static void addConstant(llvm::Module &module, const llvm::Twine &name,
                        llvm::Constant *value) {
  new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, value, name);
}

/// Bytes of stack that the function's variables take.
static uint64_t getStackSize(llvm::Function &function) {
  const llvm::DataLayout &layout = function.getParent()->getDataLayout();
  uint64_t size = 0;
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block)
      if (auto *slot = dyn_cast<llvm::AllocaInst>(&instruction))
        if (auto bytes = slot->getAllocationSize(layout))
          size += mutation::isMade("cpu-code:no stack")
                      ? 0
                      : llvm::alignTo(bytes->getFixedValue(), 64);
  return size;
}

/// Renames the kernel and puts a function in its place that unpacks arguments.
static void addEntryPoint(llvm::Module &module, StringRef name,
                          StringRef signature) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Function *program = module.getFunction(name);
  program->setName(name + programSuffix);
  // The parts of a long kernel stay separate functions, since LLVM would take
  // too long for one.
  for (llvm::Function &part : module)
    if (!part.isDeclaration()) {
      part.setLinkage(llvm::GlobalValue::InternalLinkage);
      part.addFnAttr(&part == program ? llvm::Attribute::AlwaysInline
                                      : llvm::Attribute::NoInline);
    }

  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       name, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", entry));
  SmallVector<llvm::Value *> arguments;
  unsigned count = program->arg_size() - 1;
  for (unsigned i = 0; i < count; ++i) {
    llvm::Value *place = b.CreateLoad(
        pointer, b.CreateConstGEP1_64(pointer, entry->getArg(0), i));
    llvm::Type *argument = program->getArg(i)->getType();
    if (argument->isIntegerTy(1) &&
        !mutation::isMade("cpu-code:booleans as bits"))
      arguments.push_back(
          b.CreateTrunc(b.CreateLoad(b.getInt8Ty(), place), argument));
    else
      arguments.push_back(b.CreateLoad(argument, place));
  }
  arguments.push_back(entry->getArg(1));
  b.CreateCall(program, arguments);
  b.CreateRetVoid();
  entry->setDoesNotThrow();

  addConstant(module, name + ".signature",
              llvm::ConstantDataArray::getString(context, signature));
  addConstant(module, name + ".stack", b.getInt64(getStackSize(*program)));
}

/// The module in the LLVM dialect. If that fails with loops that update tiles
/// in place, it is tried again with copies. Only the errors of the second
/// attempt are reported.
static OwningOpRef<ModuleOp> lower(ModuleOp module) {
  auto [vectorBits, vectorRegisters] = cpu::getVectorRegisters();
  for (bool copyCarried : {false, true}) {
    OwningOpRef<ModuleOp> copy = module.clone();
    PassManager pm(module.getContext());
    pm.enableVerifier(false);
    recordPasses(pm);
    enableDump(pm);
    cpu::buildPipeline(pm, {vectorBits, vectorRegisters, copyCarried});
    std::optional<ScopedDiagnosticHandler> silence;
    if (!copyCarried)
      silence.emplace(module.getContext(),
                      [](Diagnostic &) { return success(); });
    if (succeeded(pm.run(*copy)))
      return copy;
  }
  return nullptr;
}

FailureOr<cpu::CompiledObject> cpu::compile(ModuleOp module,
                                            const CompileOptions &options) {
  PassManager simpler(module.getContext());
  // Descriptors become several arguments.
  simpler.addPass(createLowerDescriptors());
  simpler.nest<triton::FuncOp>().addPass(createDecomposeScaledDots());
  if (failed(simpler.run(module)))
    return failure();
  FailureOr<triton::FuncOp> kernel = findKernel(module);
  if (failed(kernel))
    return failure();
  std::string name = kernel->getName().str();
  FailureOr<std::string> signature = describeSignature(*kernel);
  if (failed(signature))
    return failure();

  OwningOpRef<ModuleOp> lowered = lower(module);
  if (!lowered)
    return failure();

  std::string error;
  std::unique_ptr<llvm::TargetMachine> target =
      createHostTarget(options, error);
  if (!target)
    return module.emitError("no code generator for this machine: ") << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*lowered, context, name);
  if (!code)
    return failure();
  code->setDataLayout(target->createDataLayout());
  code->setTargetTriple(target->getTargetTriple());
  addEntryPoint(*code, name, *signature);
  uint64_t stack = cast<llvm::ConstantInt>(
                       code->getNamedGlobal(name + ".stack")->getInitializer())
                       ->getZExtValue();
  if (failed(optimize(*code, *target, options, error)))
    return module.emitError(error);

  CompiledObject result;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager emission;
  if (target->addPassesToEmitFile(emission, os, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return module.emitError("no object writer for this machine");
  emission.run(*code);
  result.object.assign(bytes.begin(), bytes.end());

  llvm::json::Array types;
  for (StringRef type : llvm::split(*signature, ","))
    if (!type.empty())
      types.push_back(type);
  llvm::json::Object metadata{{"symbol", name},
                              {"arguments", std::move(types)},
                              {"stack", static_cast<int64_t>(stack)}};
  llvm::raw_string_ostream(result.metadata)
      << llvm::json::Value(std::move(metadata));
  return result;
}
