# Writes FILE, a header with the hash of all headers below SOURCE_DIR that a pass plug-in includes. This is a build
# step, so that a plug-in and the program agree only if both were compiled with the same headers.
set(hashes "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.def)
  foreach(header IN LISTS headers)
    file(SHA256 ${SOURCE_DIR}/${header} hash)
    string(APPEND hashes "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE ${FILE} "// Made by cmake/write_headers_hash.cmake.
#pragma once

#define ${MACRO} \"${hash}\"
")
