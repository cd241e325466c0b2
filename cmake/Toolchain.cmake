# Language level, flags and linker shared by everything that is built here.

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# Debug builds are for the edit-compile-run loop: assertions on, line tables
# only, no time spent in the optimizer.
set(CMAKE_C_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# For fuzzing (scripts/fuzz_opt.py): our code is instrumented, MLIR's archives
# are not.
option(TAD_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
if(TAD_SANITIZE)
  add_compile_options(-O1 -fsanitize=address,undefined
    -fno-sanitize=vptr,function -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# With precompiled headers, ccache wants to be told that no macro of a file
# changes them, and that they say nothing of the time.
find_program(TAD_CCACHE ccache)
if(TAD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TAD_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_SLOPPINESS=pch_defines,time_macros ${TAD_CCACHE})
endif()

set(TAD_CXX_FLAGS
  -ffunction-sections -fdata-sections
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)

# lld reads several hundred archives in a second; GNU ld takes minutes.
find_program(TAD_LLD NAMES ld.lld-22 ld.lld PATHS /usr/lib/llvm-22/bin)
if(NOT TAD_LLD)
  message(FATAL_ERROR "lld is needed to link (Debian: lld-22)")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(--ld-path=${TAD_LLD})
else()
  # gcc has no way to name a linker by path: show it a folder where it is "ld.lld".
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/linker)
  file(CREATE_LINK ${TAD_LLD} ${PROJECT_BINARY_DIR}/linker/ld.lld SYMBOLIC)
  add_link_options(-fuse-ld=lld -B${PROJECT_BINARY_DIR}/linker)
endif()
add_link_options(-Wl,--gc-sections)
