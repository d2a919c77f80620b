# cgc_add_headers_hash(target FILE name MACRO macro FOLDERS folder... [GENERATED header...]): generates the header
# `name`, which defines `macro` as the hash of all headers in the folders and of the generated ones, whenever one of
# them changes. `target` and what links it may include it.
function(cgc_add_headers_hash target)
  cmake_parse_arguments(ARG "" "FILE;MACRO" "FOLDERS;GENERATED" ${ARGN})
  set(generated ${CMAKE_BINARY_DIR}/generated)
  set(patterns ${ARG_FOLDERS})
  list(TRANSFORM patterns PREPEND ${CMAKE_SOURCE_DIR}/)
  set(definitions ${patterns})
  list(TRANSFORM patterns APPEND /*.h)
  list(TRANSFORM definitions APPEND /*.def)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${patterns} ${definitions})
  list(TRANSFORM ARG_GENERATED PREPEND ${generated}/)
  set(script ${CMAKE_SOURCE_DIR}/cmake/write_headers_hash.cmake)
  add_custom_command(OUTPUT ${generated}/${ARG_FILE}
    COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${CMAKE_SOURCE_DIR} -D FILE=${generated}/${ARG_FILE} -D MACRO=${ARG_MACRO}
      "-DFOLDERS=${ARG_FOLDERS}" "-DGENERATED=${ARG_GENERATED}" -P ${script}
    DEPENDS ${headers} ${ARG_GENERATED} ${script} VERBATIM)
  add_custom_target(${target}_headers_hash DEPENDS ${generated}/${ARG_FILE})
  add_dependencies(${target} ${target}_headers_hash)
  target_include_directories(${target} PUBLIC ${generated})
endfunction()
