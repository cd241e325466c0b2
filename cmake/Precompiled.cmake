# tad_precompile(target): compile with the headers of Precompiled.h, which are
# parsed once for all libraries. They are nine tenths of the time of a file
# without that.
#
# A file still includes what it uses: `make self-contained` shows where one does not.

option(TAD_PRECOMPILE "Parse MLIR's headers once for all files" ON)

if(TAD_PRECOMPILE)
  # For ccache: the same headers give the same file, and a file says what it uses.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  else()
    add_compile_options(-fpch-preprocess)
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(tad-precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  tad_compile_options(tad-precompiled)
  target_precompile_headers(tad-precompiled PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/Precompiled.h)
endif()

function(tad_precompile target)
  if(TAD_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM tad-precompiled)
  endif()
endfunction()
