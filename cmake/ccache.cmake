# ccache for all compilers, and precompiled headers of Clang that it can share between clones.
find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the repository are hashed relative to the build tree, so that all clones of one machine share objects.
  # In depend mode, ccache hashes the source, its headers and the flags. Preprocessing, its other mode, costs seconds for
  # a file with LibTorch's headers and misses device code, because nvcc's preprocessor does not define __CUDA_ARCH__.
  set(ccache ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_MAXSIZE=20G)
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache} ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache} ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    # Precompiled headers that all clones share. Clang compares neither the times nor the files of the clone that made
    # them. Ccache makes the path of -include relative, but not that of -Xclang -include. Clang looks for a precompiled
    # form of the first -include alone: without stddef.h it would take the .pch file of an earlier build.
    set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -emit-pch -Xclang -fno-pch-timestamp -Xclang -fmodules-embed-all-files
      -include stddef.h -include <PCH_HEADER> -x c++-header)
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -fno-validate-pch -Xclang -include-pch -Xclang <PCH_FILE>)
  endif()
  # nvcc may be a file of .venv, with another time in each clone.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache} "CCACHE_COMPILERCHECK=%compiler% --version" ${CCACHE})
endif()
