# cmake/write_headers_hash.cmake: the hash changes with a header that plug-ins include, and with nothing else.
function(hash_of result)
  execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${FOLDER} -D FILE=${FOLDER}/hash.h
    -D MACRO=CGC_HEADERS_HASH "-DFOLDERS=ir;passes"
    -P ${CMAKE_CURRENT_LIST_DIR}/../cmake/write_headers_hash.cmake COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${FOLDER}/hash.h text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/passes/select/pass.h "int before;")
file(WRITE ${FOLDER}/passes/pass.cpp "int before;")
hash_of(first)
file(WRITE ${FOLDER}/passes/pass.cpp "int after;")
hash_of(source)
file(WRITE ${FOLDER}/passes/select/pass.h "int after;")
hash_of(header)
if(NOT first MATCHES "CGC_HEADERS_HASH \"[0-9a-f]+\"" OR NOT first STREQUAL source OR first STREQUAL header)
  message(FATAL_ERROR "expected another hash for another header alone:\n${first}${source}${header}")
endif()
