# tad_tablegen(target source.td  output.inc -gen-flag [...] -- [options...])
#
# Runs mlir-tblgen once for each (output, flag) pair; what follows `--` goes to
# every run. Outputs land in the build folder at the path that mirrors the
# current source folder, so that `include/a/b/CMakeLists.txt` generating
# `Ops.h.inc` gives `#include "a/b/Ops.h.inc"`. All such headers exist before
# any library is compiled.

add_custom_target(tad-headers)

function(tad_tablegen target source)
  set(outputs)
  set(pairs ${ARGN})
  set(options)
  list(FIND pairs "--" separator)
  if(NOT separator EQUAL -1)
    math(EXPR first "${separator} + 1")
    list(SUBLIST pairs ${first} -1 options)
    list(SUBLIST pairs 0 ${separator} pairs)
  endif()
  while(pairs)
    list(POP_FRONT pairs output flag)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${output})
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${TAD_MLIR_TBLGEN} ${flag} ${options}
        -I ${CMAKE_CURRENT_SOURCE_DIR}
        -I ${PROJECT_SOURCE_DIR}/include
        -I ${PROJECT_SOURCE_DIR}/third_party/autodiff/include
        -I ${TAD_MLIR_PREFIX}/include
        ${CMAKE_CURRENT_SOURCE_DIR}/${source}
        --write-if-changed -o ${out} -d ${out}.d
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${TAD_MLIR_TBLGEN}
      DEPFILE ${out}.d
      COMMENT "TableGen ${output}"
      VERBATIM)
    list(APPEND outputs ${out})
  endwhile()
  add_custom_target(${target} DEPENDS ${outputs})
  add_dependencies(tad-headers ${target})
endfunction()
