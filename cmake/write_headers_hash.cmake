# Writes FILE, a header that defines MACRO as the hash of all headers in FOLDERS below SOURCE_DIR and of the headers
# GENERATED. This is a build step (cgc_add_headers_hash), so that two libraries agree only if both were compiled from the same headers.
set(hashes "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.def)
  foreach(header IN LISTS headers)
    file(SHA256 ${SOURCE_DIR}/${header} hash)
    string(APPEND hashes "${header} ${hash}\n")
  endforeach()
endforeach()
foreach(header IN LISTS GENERATED)
  file(SHA256 ${header} hash)
  string(APPEND hashes "${hash}\n")
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE ${FILE} "// Made by cmake/write_headers_hash.cmake.
#pragma once

#define ${MACRO} \"${hash}\"
")
