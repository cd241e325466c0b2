# tad_add_subdirectories(folder...): those of the folders that have a
# CMakeLists.txt, in the order given.
function(tad_add_subdirectories)
  foreach(folder ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

# tad_compile_options(target): how C++ that includes MLIR's headers is compiled.
function(tad_compile_options target)
  target_compile_options(${target} PRIVATE ${TAD_CXX_FLAGS}
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
  add_dependencies(${target} tad-headers)
endfunction()

# tad_add_library(name source... [DEPENDS target...] [LINK_LIBS target...])
#
# A static library of ours. LINK_LIBS names other libraries of ours; MLIR's own
# are resolved where the final output is linked (tad_link_mlir).
function(tad_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  set_property(GLOBAL APPEND PROPERTY TAD_LIBRARIES ${name})
  tad_compile_options(${name})
  tad_precompile(${name})
  if(ARG_LINK_LIBS)
    target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# tad_add_tool(name source... [LINK_LIBS target...]): a program of ours.
function(tad_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  tad_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  tad_link_mlir(${name})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()
