# Build options: language level, warnings, sanitizers and output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(CGC_WERROR "Treat warnings as errors" OFF)
option(CGC_ASAN "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(CGC_TSAN "Build with ThreadSanitizer" OFF)
option(CGC_FUZZ "Build the fuzz targets, and instrument the libraries for libFuzzer; needs Clang" OFF)
option(CGC_UNITY "Compile sources in batches: faster from nothing, slower after a change of one file" OFF)
set(CGC_PLAIN_BUILD "" CACHE PATH
  "Build tree without sanitizers, which lends what they cannot instrument: device code, the LibTorch provider")

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)
# CGC_CHECK and debug information name a source by its path in the repository. Ccache gives the compiler relative paths.
file(RELATIVE_PATH root ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
foreach(prefix ${CMAKE_SOURCE_DIR}/ ${root})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${prefix}=>)
endforeach()
if(CGC_WERROR)
  # GCC 12 at -O3 falsely warns of overlapping copies in `"x" + string` and of uninitialized variants.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(CGC_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC treats a source included by a batch as a header. It then warns if a type has a member from an unnamed namespace.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CGC_ASAN)
  # Undefined behavior ends the test, as an invalid access does.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fsanitize=address,undefined>)
endif()
if(CGC_TSAN)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=thread)
endif()
