# MLIR and LLVM as static archives, named one by one.
#
# The CMake packages of Debian's MLIR pull libMLIR.so and libLLVM.so into every
# link; those together with the archives put two copies of LLVM's global state
# into one process, which crashes. So neither package is used: the installation
# is located by its prefix and its archives are handed to the linker, which
# takes from them only what is referenced.

set(TAD_MLIR_VERSION 22)

if(MLIR_DIR)
  get_filename_component(_mlir_default "${MLIR_DIR}/../../.." ABSOLUTE)
else()
  set(_mlir_default /usr/lib/llvm-${TAD_MLIR_VERSION})
endif()
set(TAD_MLIR_PREFIX ${_mlir_default} CACHE PATH "Prefix of the MLIR installation")

find_program(TAD_MLIR_TBLGEN mlir-tblgen PATHS ${TAD_MLIR_PREFIX}/bin
  NO_DEFAULT_PATH)
if(NOT TAD_MLIR_TBLGEN OR NOT EXISTS ${TAD_MLIR_PREFIX}/lib/libMLIRIR.a)
  message(FATAL_ERROR "No static MLIR ${TAD_MLIR_VERSION} under "
    "${TAD_MLIR_PREFIX} (Debian: libmlir-22-dev mlir-22-tools); set MLIR_DIR")
endif()

file(STRINGS ${TAD_MLIR_PREFIX}/include/llvm/Config/llvm-config.h _version
  REGEX "#define LLVM_VERSION_MAJOR")
string(REGEX REPLACE ".* ([0-9]+)" "\\1" _version "${_version}")
if(NOT _version EQUAL TAD_MLIR_VERSION)
  message(FATAL_ERROR "MLIR ${TAD_MLIR_VERSION} is needed, "
    "${TAD_MLIR_PREFIX} has ${_version}")
endif()

file(GLOB _archives ${TAD_MLIR_PREFIX}/lib/libMLIR*.a ${TAD_MLIR_PREFIX}/lib/libLLVM*.a)
list(FILTER _archives EXCLUDE REGEX "Test|libMLIRCAPI")

# LLVM's compression libraries, static too: the result then needs nothing that
# a machine without MLIR might lack.
find_library(TAD_ZSTD NAMES libzstd.a REQUIRED)
find_library(TAD_ZLIB NAMES libz.a REQUIRED)

add_library(tad_mlir INTERFACE)
target_link_libraries(tad_mlir INTERFACE
  -Wl,--start-group ${_archives} -Wl,--end-group
  ${TAD_ZSTD} ${TAD_ZLIB} pthread dl m)

include_directories(SYSTEM ${TAD_MLIR_PREFIX}/include)

# tad_link_mlir(target): resolve MLIR and LLVM statically into a shared library
# or program. Call it for final link outputs, never for static libraries.
function(tad_link_mlir target)
  target_link_libraries(${target} PRIVATE tad_mlir)
  target_link_options(${target} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
endfunction()
