/*===- Unused.c - Parts of LLVM that nothing here calls -----------------------===
 *
 * LLVM refers to far more than runs: other systems' object files, a second code
 * generator, bitcode. The archives' object files with these functions are not
 * linked where these come first: a tenth of the library.
 *
 * UNUSED: a call is an error that names the function (Exceptions.cpp).
 * ABSENT: a call does nothing, and gives null or false.
 *
 *===----------------------------------------------------------------------===*/

#define DEFINE(name, ...)                                                      \
  __asm__(".section .text." name ",\"ax\",@progbits\n"                          \
          ".globl " name "\n.hidden " name "\n.type " name ",@function\n" name  \
          ":\n" __VA_ARGS__ ".text\n")
#define UNUSED(name)                                                           \
  DEFINE(name, "lea 1f(%rip), %rdi\n"                                          \
               "jmp tadUnused\n"                                               \
               "1: .asciz \"" name "\"\n")
#define ABSENT(name) DEFINE(name, "xor %eax, %eax\nret\n")

/* clang-format off */

/* Code generation by the new pass manager; addPassesToEmitFile is the old one. */
UNUSED("_ZN4llvm16X86TargetMachine20buildCodeGenPipelineERNS_11PassManagerINS_6ModuleENS_15AnalysisManagerIS2_JEEEJEEERNS_17raw_pwrite_streamEPS7_NS_15CodeGenFileTypeERKNS_19CGPassBuilderOptionEPNS_28PassInstrumentationCallbacksE");
UNUSED("_ZN4llvm16X86TargetMachine28registerPassBuilderCallbacksERNS_11PassBuilderE");

/* Debug information and exceptions of other systems; kernels have neither. */
UNUSED("_ZN4llvm10DwarfDebugC1EPNS_10AsmPrinterE");
UNUSED("_ZN4llvm13CodeViewDebugC1EPNS_10AsmPrinterE");
UNUSED("_ZN4llvm12AIXExceptionC1EPNS_10AsmPrinterE");
UNUSED("_ZN4llvm12ARMExceptionC1EPNS_10AsmPrinterE");
UNUSED("_ZN4llvm12WinExceptionC1EPNS_10AsmPrinterE");
UNUSED("_ZN4llvm10WinCFGuardC1EPNS_10AsmPrinterE");

/* Object files of other systems: written, read, linked. */
UNUSED("_ZN4llvm18createGOFFStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EE");
UNUSED("_ZN4llvm18createWasmStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EE");
UNUSED("_ZN4llvm19createMachOStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EEbb");
UNUSED("_ZN4llvm19createSPIRVStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EE");
UNUSED("_ZN4llvm24createX86WinCOFFStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EE");
UNUSED("_ZN4llvm25createDXContainerStreamerERNS_9MCContextEOSt10unique_ptrINS_12MCAsmBackendESt14default_deleteIS3_EEOS2_INS_14MCObjectWriterES4_IS8_EEOS2_INS_13MCCodeEmitterES4_ISC_EE");
UNUSED("_ZN4llvm22createGOFFObjectWriterESt10unique_ptrINS_24MCGOFFObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamE");
UNUSED("_ZN4llvm22createWasmObjectWriterESt10unique_ptrINS_24MCWasmObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamE");
UNUSED("_ZN4llvm23createSPIRVObjectWriterESt10unique_ptrINS_25MCSPIRVObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamE");
UNUSED("_ZN4llvm23createXCOFFObjectWriterESt10unique_ptrINS_25MCXCOFFObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamE");
UNUSED("_ZN4llvm25createWasmDwoObjectWriterESt10unique_ptrINS_24MCWasmObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamES6_");
UNUSED("_ZN4llvm25createWinCOFFObjectWriterESt10unique_ptrINS_27MCWinCOFFObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamE");
UNUSED("_ZN4llvm25createX86MachObjectWriterEbjj");
UNUSED("_ZN4llvm28createWinCOFFDwoObjectWriterESt10unique_ptrINS_27MCWinCOFFObjectTargetWriterESt14default_deleteIS1_EERNS_17raw_pwrite_streamES6_");
UNUSED("_ZN4llvm28createX86WinCOFFObjectWriterEb");
UNUSED("_ZN4llvm6object10ObjectFile20createCOFFObjectFileENS_15MemoryBufferRefE");
UNUSED("_ZN4llvm6object10ObjectFile27createDXContainerObjectFileENS_15MemoryBufferRefE");
UNUSED("_ZN4llvm6object10ObjectFile20createGOFFObjectFileENS_15MemoryBufferRefE");
UNUSED("_ZN4llvm6object10ObjectFile21createMachOObjectFileENS_15MemoryBufferRefEjjm");
UNUSED("_ZN4llvm6object10ObjectFile20createWasmObjectFileENS_15MemoryBufferRefE");
UNUSED("_ZN4llvm6object10ObjectFile21createXCOFFObjectFileENS_15MemoryBufferRefEj");
UNUSED("_ZN4llvm7jitlink30createLinkGraphFromMachOObjectENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink29createLinkGraphFromCOFFObjectENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink30createLinkGraphFromXCOFFObjectENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink36createLinkGraphFromELFObject_aarch32ENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink36createLinkGraphFromELFObject_aarch64ENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink38createLinkGraphFromELFObject_loongarchENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink34createLinkGraphFromELFObject_ppc64ENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink36createLinkGraphFromELFObject_ppc64leENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink34createLinkGraphFromELFObject_riscvENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink36createLinkGraphFromELFObject_systemzENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink32createLinkGraphFromELFObject_x86ENS_15MemoryBufferRefESt10shared_ptrINS_3orc16SymbolStringPoolEE");
UNUSED("_ZN4llvm7jitlink10link_MachOESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink9link_COFFESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink10link_XCOFFESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink16link_ELF_aarch32ESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink16link_ELF_aarch64ESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink18link_ELF_loongarchESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink14link_ELF_ppc64ESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink16link_ELF_ppc64leESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink14link_ELF_riscvESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink16link_ELF_systemzESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");
UNUSED("_ZN4llvm7jitlink12link_ELF_x86ESt10unique_ptrINS0_9LinkGraphESt14default_deleteIS2_EES1_INS0_14JITLinkContextES3_IS6_EE");

/* Bitcode, for modules that the just-in-time linker compiles: it gets objects. */
UNUSED("_ZN4llvm3orc14cloneToContextERKNS0_16ThreadSafeModuleENS0_17ThreadSafeContextESt8functionIFbRKNS_11GlobalValueEEES5_IFvRS6_EE");
UNUSED("_ZN4llvm3orc17cloneToNewContextERKNS0_16ThreadSafeModuleESt8functionIFbRKNS_11GlobalValueEEES4_IFvRS5_EE");

UNUSED("_ZN4llvm3orc24RTDyldObjectLinkingLayerC1ERNS0_16ExecutionSessionENS_15unique_functionIFSt10unique_ptrINS_11RuntimeDyld13MemoryManagerESt14default_deleteIS7_EERKNS_12MemoryBufferEEEE");

/* Machine code that is printed, verified, profiled. */
UNUSED("_ZN4llvm18createPrintMIRPassERNS_11raw_ostreamE");
UNUSED("_ZN4llvm25createMachineVerifierPassERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
UNUSED("_ZNK4llvm15MachineFunction6verifyEPNS_13LiveIntervalsEPNS_11SlotIndexesEPKcPNS_11raw_ostreamEb");
UNUSED("_ZNK4llvm15MachineFunction6verifyEPNS_4PassEPKcPNS_11raw_ostreamEb");
UNUSED("_ZN4llvm26createMIRProfileLoaderPassENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_NS_10sampleprof19FSDiscriminatorPassENS_18IntrusiveRefCntPtrINS_3vfs10FileSystemEEE");
ABSENT("_ZN4llvm34initializeMIRProfileLoaderPassPassERNS_12PassRegistryE");
UNUSED("_ZN4llvm10sampleprof19SampleProfileReader6createENS_9StringRefERNS_11LLVMContextERNS_3vfs10FileSystemENS0_19FSDiscriminatorPassES2_");

/* Patterns in PDL. */
UNUSED("_ZN4mlir31createConvertPDLToPDLInterpPassERN4llvm8DenseMapIPNS_9OperationEPNS_19PDLPatternConfigSetENS0_12DenseMapInfoIS3_vEENS0_6detail12DenseMapPairIS3_S5_EEEE");

/* Compression of sections: whether it can be had is asked first. */
ABSENT("_ZN4llvm11compression4zlib11isAvailableEv");
ABSENT("_ZN4llvm11compression4zstd11isAvailableEv");
UNUSED("_ZN4llvm11compression10decompressENS0_6FormatENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEm");
UNUSED("_ZN4llvm11compression10decompressENS_20DebugCompressionTypeENS_8ArrayRefIhEEPhm");
UNUSED("_ZN4llvm11compression10decompressENS_20DebugCompressionTypeENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEm");
UNUSED("_ZN4llvm11compression22getReasonIfUnsupportedENS0_6FormatE");
UNUSED("_ZN4llvm11compression4zlib10decompressENS_8ArrayRefIhEEPhRm");
UNUSED("_ZN4llvm11compression4zlib10decompressENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEm");
UNUSED("_ZN4llvm11compression4zlib8compressENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEi");
UNUSED("_ZN4llvm11compression4zstd10decompressENS_8ArrayRefIhEEPhRm");
UNUSED("_ZN4llvm11compression4zstd10decompressENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEm");
UNUSED("_ZN4llvm11compression4zstd8compressENS_8ArrayRefIhEERNS_15SmallVectorImplIhEEib");
UNUSED("_ZN4llvm11compression8compressENS0_6ParamsENS_8ArrayRefIhEERNS_15SmallVectorImplIhEE");

/* Assembly as text: kernels become objects at once. The first two are virtual tables. */
UNUSED("_ZTVN4llvm17X86ATTInstPrinterE");
UNUSED("_ZTVN4llvm19X86IntelInstPrinterE");
UNUSED("_ZN4llvm17X86ATTInstPrinter15getRegisterNameENS_10MCRegisterE");

/* Another instruction selection. */
UNUSED("_ZN4llvm12IRTranslatorC1ENS_15CodeGenOptLevelE");
UNUSED("_ZN4llvm12LoadStoreOptC1ESt8functionIFbRKNS_15MachineFunctionEEE");
UNUSED("_ZN4llvm12LoadStoreOptC1Ev");
UNUSED("_ZN4llvm13RegBankSelectC1ENS0_4ModeE");
UNUSED("_ZN4llvm17InstructionSelectC1ENS_15CodeGenOptLevelERc");
UNUSED("_ZN4llvm9LegalizerC1Ev");
UNUSED("_ZN4llvm9LocalizerC1ESt8functionIFbRKNS_15MachineFunctionEEE");
UNUSED("_ZN4llvm9LocalizerC1Ev");
ABSENT("_ZN4llvm20initializeGlobalISelERNS_12PassRegistryE");
ABSENT("_ZN4llvm28createX86InstructionSelectorERKNS_16X86TargetMachineERKNS_12X86SubtargetERKNS_19X86RegisterBankInfoE");

/* Passes that LLVM registers, but that generate no code for x86-64 here. */
ABSENT("_ZN4llvm33initializeHardwareLoopsLegacyPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm36initializeInterleavedLoadCombinePassERNS_12PassRegistryE");
ABSENT("_ZN4llvm29initializeJMCInstrumenterPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm37initializeMachineFunctionSplitterPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm29initializeMachineOutlinerPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm30initializeMachinePipelinerPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm39initializeMachineVerifierLegacyPassPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm32initializeModuloScheduleTestPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm29initializeMIRPrintingPassPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm22initializeMIRNamerPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm30initializeMIRCanonicalizerPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm28initializeSelectOptimizePassERNS_12PassRegistryE");
ABSENT("_ZN4llvm33initializeTypePromotionLegacyPassERNS_12PassRegistryE");
ABSENT("_ZN4llvm27initializeWasmEHPreparePassERNS_12PassRegistryE");
ABSENT("_ZN4llvm26initializeWinEHPreparePassERNS_12PassRegistryE");

/* Names in C++ and other languages; kernels have none. */
ABSENT("_ZN4llvm15itaniumDemangleESt17basic_string_viewIcSt11char_traitsIcEEb");
ABSENT("_ZN4llvm17microsoftDemangleESt17basic_string_viewIcSt11char_traitsIcEEPmPiNS_15MSDemangleFlagsE");
ABSENT("_ZN4llvm12rustDemangleESt17basic_string_viewIcSt11char_traitsIcEE");
ABSENT("_ZN4llvm13dlangDemangleESt17basic_string_viewIcSt11char_traitsIcEE");
