# Writes FILE, the header with the hash of those that a pass plug-in is compiled against, below SOURCE_DIR: a build
# step, so that a plug-in and the program agree only if both saw the same headers.
set(hashes "")
foreach(folder support ir passes runtime/base)
  file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.def)
  foreach(header IN LISTS headers)
    file(SHA256 ${SOURCE_DIR}/${header} hash)
    string(APPEND hashes "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE ${FILE} "// Made by cmake/write_headers_hash.cmake.
#pragma once

#define CGC_HEADERS_HASH \"${hash}\"
")
