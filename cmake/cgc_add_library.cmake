# cgc_add_library(name [DIRS dir...] [SUBDIRS dir...] [EXCLUDE regex] [LINK target...] [PRIVATE_LINK target...]): a
# static library.
#
# Takes every .cpp and .h of the folder, or of DIRS instead, and of SUBDIRS, except the .cpp whose paths match EXCLUDE.
# Headers sit beside sources, are included from the repository root, and must each compile alone: the target
# all_verify_interface_header_sets checks it.
function(cgc_add_library name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "DIRS;SUBDIRS;LINK;PRIVATE_LINK" ${ARGN})
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
  add_library(${name} STATIC ${sources})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()
