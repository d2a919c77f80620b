# Finds all external dependencies. scripts/dependencies.txt lists their versions and purposes.

# CUDA 13.0: an installed toolkit if there is one, else the wheels in the Python environment.
file(GLOB CGC_SITE_PACKAGES ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages)
function(cgc_is_cuda_13_0 result path)
  execute_process(COMMAND ${path} --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(NOT version MATCHES "release 13\\.0")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CGC_NVCC nvcc
    PATHS /usr/local/cuda-13.0/bin /usr/local/cuda/bin ${CGC_SITE_PACKAGES}/nvidia/cu13/bin
    NO_DEFAULT_PATH VALIDATOR cgc_is_cuda_13_0 REQUIRED)
  set(CMAKE_CUDA_COMPILER ${CGC_NVCC})
endif()
set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 80-virtual)
enable_language(CUDA)
# CMake 3.25 does not know the C++20 flag of nvcc 13.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_STANDARD 20)
find_package(CUDAToolkit 13.0 REQUIRED)

# cuBLASLt: only its header is needed here; the library is opened at run time. Programs of the build tree find it,
# and NCCL, by their RUNPATH.
find_path(CGC_CUBLASLT_INCLUDE cublasLt.h
  PATHS ${CUDAToolkit_INCLUDE_DIRS} ${CGC_SITE_PACKAGES}/nvidia/cu13/include NO_DEFAULT_PATH REQUIRED)
set(CMAKE_BUILD_RPATH ${CGC_CUBLASLT_INCLUDE}/../lib ${CGC_SITE_PACKAGES}/nvidia/cu13/lib
  ${CGC_SITE_PACKAGES}/nvidia/nccl/lib)

find_package(LLVM 19.1 REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(GTest REQUIRED CONFIG)
find_package(Threads REQUIRED)
find_path(CGC_XXHASH_INCLUDE xxhash.h REQUIRED)
find_program(CGC_FLATC flatc REQUIRED)

# LLVM Support and ADT, linked statically; their symbols stay private to each library or program.
llvm_map_components_to_libnames(CGC_LLVM_LIBS support)
add_library(cgc_llvm INTERFACE)
target_include_directories(cgc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(cgc_llvm INTERFACE ${LLVM_DEFINITIONS_LIST})
target_link_libraries(cgc_llvm INTERFACE ${CGC_LLVM_LIBS})

# LibTorch without find_package(Torch), which probes for a GPU and requests a CUDA dialect that CMake 3.25 does not
# know. The CPU part needs only two imported libraries.
set(CGC_TORCH_DIR ${CGC_SITE_PACKAGES}/torch CACHE PATH "LibTorch: the folder with include/ and lib/")
if(NOT EXISTS ${CGC_TORCH_DIR}/include/torch/csrc/api/include/torch/version.h)
  message(FATAL_ERROR "LibTorch is not in '${CGC_TORCH_DIR}': run scripts/setup.sh or set CGC_TORCH_DIR")
endif()
add_library(cgc_torch INTERFACE)
target_include_directories(cgc_torch SYSTEM INTERFACE
  ${CGC_TORCH_DIR}/include ${CGC_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(cgc_torch INTERFACE ${CGC_TORCH_DIR}/lib/libc10.so ${CGC_TORCH_DIR}/lib/libtorch_cpu.so)
