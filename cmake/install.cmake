# cmake --install: installs the program and its libraries, the headers for plug-ins and deployments, and the package
# for find_package(cgc). Its components are pass_plugin, op_library (docs/plugins.md) and runtime
# (docs/deployment.md).
include(CMakePackageConfigHelpers)
include(public_headers)
# The program looks for its libraries in ../lib.
set(CGC_INSTALL_INCLUDE include/cgc)
set(CGC_INSTALL_CMAKE lib/cmake/cgc)

# The headers that a pass plug-in compiles against. A plug-in links no library: its symbols of ir, passes and LLVM
# Support resolve in the program.
add_library(cgc_pass_plugin INTERFACE)
target_include_directories(cgc_pass_plugin INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CGC_INSTALL_INCLUDE}>)
target_include_directories(cgc_pass_plugin SYSTEM INTERFACE $<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>)
target_compile_features(cgc_pass_plugin INTERFACE cxx_std_20)
add_dependencies(cgc_pass_plugin cgc_passes_headers_hash cgc_op_views_header)
target_include_directories(cgc_pass_plugin INTERFACE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
install(FILES ${CMAKE_BINARY_DIR}/generated/passes/headers_hash.h DESTINATION ${CGC_INSTALL_INCLUDE}/passes)
install(FILES ${CMAKE_BINARY_DIR}/generated/ir/op_views.h DESTINATION ${CGC_INSTALL_INCLUDE}/ir)
# The C header that an op library compiles against.
add_library(cgc_op_library INTERFACE)
target_include_directories(cgc_op_library INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CGC_INSTALL_INCLUDE}>)

set_target_properties(cgc cgc_runtime PROPERTIES INSTALL_RPATH $ORIGIN/../lib)
# These libraries find LibTorch by CGC_LIBTORCH, else beside themselves, else by LD_LIBRARY_PATH (docs/deployment.md).
# They have an RPATH, not a RUNPATH, so that a LibTorch installed with cgc precedes LD_LIBRARY_PATH.
set_target_properties(cgc_frontend cgc_aten PROPERTIES INSTALL_RPATH $ORIGIN)
# A server finds this library and those beside it in any folder, such as backends/cgc of Triton.
set_target_properties(cgc_triton PROPERTIES INSTALL_RPATH $ORIGIN)
target_link_options(cgc_frontend PRIVATE LINKER:--disable-new-dtags)
target_link_options(cgc_aten PRIVATE LINKER:--disable-new-dtags)

foreach(component runtime pass_plugin op_library)
  set_target_properties(cgc_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS cgc_${component} EXPORT cgc_${component} LIBRARY DESTINATION lib)
  install(EXPORT cgc_${component} NAMESPACE cgc:: DESTINATION ${CGC_INSTALL_CMAKE})
endforeach()
install(TARGETS cgc RUNTIME DESTINATION bin)
install(TARGETS cgc_frontend cgc_aten cgc_reference cgc_triton LIBRARY DESTINATION lib)
foreach(header ${CGC_RUNTIME_HEADERS} ${CGC_OP_LIBRARY_HEADERS} ${CGC_PASS_PLUGIN_HEADERS})
  cmake_path(GET header PARENT_PATH folder)
  if(header STREQUAL runtime/cgc.h)
    set(folder "") # A C program includes <cgc.h>.
  endif()
  install(FILES ${CMAKE_SOURCE_DIR}/${header} DESTINATION ${CGC_INSTALL_INCLUDE}/${folder})
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/cgcConfig.cmake.in ${CMAKE_BINARY_DIR}/cgcConfig.cmake
  INSTALL_DESTINATION ${CGC_INSTALL_CMAKE} NO_SET_AND_CHECK_MACRO)
# A plug-in works only with the version that it was built for.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cgcConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/cgcConfig.cmake ${CMAKE_BINARY_DIR}/cgcConfigVersion.cmake
  DESTINATION ${CGC_INSTALL_CMAKE})

# pkg-config, for C programs that are not built with CMake.
configure_file(${CMAKE_SOURCE_DIR}/cmake/cgc.pc.in ${CMAKE_BINARY_DIR}/cgc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cgc.pc DESTINATION lib/pkgconfig)

# cpack: a .tar.gz and a .deb with what `cmake --install` installs.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_CONTACT "the developers of cgc")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiles TorchScript OpenCLIP modules and replays them as CUDA graphs")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12)")
include(CPack)
