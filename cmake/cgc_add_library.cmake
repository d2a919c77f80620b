# cgc_add_library(name [DIRS dir...] [SUBDIRS dir...] [EXCLUDE regex] [LINK target...] [PRIVATE_LINK target...]
# [PRECOMPILE header... | PRECOMPILED_OF target]): a static library, whose sources are compiled in batches and with
# precompiled headers.
#
# Takes every .cpp and .h of the folder, or of DIRS instead, and of SUBDIRS, except the .cpp whose paths match EXCLUDE.
# Headers sit beside sources, are included from the repository root, and must each compile alone: the target
# all_verify_interface_header_sets checks it, without precompiled headers. Those of libraries that link LibTorch take too
# long.
function(cgc_add_library name)
  cmake_parse_arguments(ARG "" "EXCLUDE;PRECOMPILED_OF" "DIRS;SUBDIRS;LINK;PRIVATE_LINK;PRECOMPILE" ${ARGN})
  set(sources "")
  set(headers "")
  if(NOT ARG_DIRS)
    set(ARG_DIRS .)
  endif()
  foreach(dir ${ARG_DIRS} ${ARG_SUBDIRS})
    file(GLOB dir_sources CONFIGURE_DEPENDS ${dir}/*.cpp)
    file(GLOB dir_headers CONFIGURE_DEPENDS ${dir}/*.h)
    list(APPEND sources ${dir_sources})
    list(APPEND headers ${dir_headers})
  endforeach()
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  cgc_batch_sources(${name} sources)
  add_library(${name} STATIC ${sources})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  if(ARG_PRECOMPILED_OF)
    cgc_precompile_headers(${name} REUSE_FROM ${ARG_PRECOMPILED_OF})
  elseif(ARG_PRECOMPILE)
    cgc_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  endif()
  if(NOT cgc_torch IN_LIST ARG_PRIVATE_LINK)
    set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
  if(CGC_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# cgc_batch_sources(name variable): with CGC_UNITY, replaces sources of the target, which `variable` lists, by
# files that include up to eight of them each. The compiler then reads headers and instantiates templates once for all.
# CMake's own unity builds would write paths of this clone, which ccache would hash.
function(cgc_batch_sources name variable)
  if(NOT CGC_UNITY)
    return()
  endif()
  set(batches "")
  list(LENGTH ${variable} count)
  set(begin 0)
  while(begin LESS count)
    list(SUBLIST ${variable} ${begin} 8 batch)
    set(text "")
    foreach(source ${batch})
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    math(EXPR number "${begin} / 8")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_unity_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND batches ${file})
    math(EXPR begin "${begin} + 8")
  endwhile()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()

# cgc_precompile_headers(name PRIVATE header... | REUSE_FROM target): as target_precompile_headers().
function(cgc_precompile_headers name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    # ccache may return a PCH built in another clone. Clang then sees each repository header under two paths, and
    # `#pragma once` does not help. So Clang precompiles neither the repository's headers, in the source or the build
    # tree, nor those of LibTorch in .venv.
    list(FILTER ARGN EXCLUDE REGEX "^<(ATen|torch)/")
    foreach(header ${ARGN})
      string(REGEX REPLACE "^<([^/]*)/.*" "\\1" folder "${header}")
      if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/${folder}")
        list(REMOVE_ITEM ARGN ${header})
      endif()
    endforeach()
    if(ARGN STREQUAL PRIVATE)
      return()
    endif()
    if(ARGV1 STREQUAL REUSE_FROM)
      get_target_property(headers ${ARGV2} PRECOMPILE_HEADERS)
      if(NOT headers)
        return()
      endif()
    endif()
  endif()
  target_precompile_headers(${name} ${ARGN})
  # GCC 12 gives false -Wstringop-overflow and -Warray-bounds warnings for `"x" + string`. Precompiled headers hide that
  # the code is a system header.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds>)
endfunction()
