# cmake --install: the program and its libraries, the headers that plug-ins and deployments include, and what
# find_package(cgc) reads. The targets are cgc::pass_plugin, cgc::op_library and cgc::runtime (docs/plugins.md).
include(CMakePackageConfigHelpers)
# The program looks for its libraries in ../lib.
set(CGC_INSTALL_INCLUDE include/cgc)
set(CGC_INSTALL_CMAKE lib/cmake/cgc)

# What a pass plug-in compiles against. It links nothing: it finds ir, passes and LLVM Support in the program.
add_library(cgc_pass_plugin INTERFACE)
target_include_directories(cgc_pass_plugin INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CGC_INSTALL_INCLUDE}>)
target_include_directories(cgc_pass_plugin SYSTEM INTERFACE $<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>)
target_compile_features(cgc_pass_plugin INTERFACE cxx_std_20)
add_dependencies(cgc_pass_plugin cgc_headers_hash)
target_include_directories(cgc_pass_plugin INTERFACE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
install(FILES ${CMAKE_BINARY_DIR}/generated/passes/headers_hash.h DESTINATION ${CGC_INSTALL_INCLUDE}/passes)
# What an op library compiles against: one C header.
add_library(cgc_op_library INTERFACE)
target_include_directories(cgc_op_library INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CGC_INSTALL_INCLUDE}>)

set_target_properties(cgc_pass_plugin PROPERTIES EXPORT_NAME pass_plugin)
set_target_properties(cgc_op_library PROPERTIES EXPORT_NAME op_library)
set_target_properties(cgc_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(cgc cgc_runtime PROPERTIES INSTALL_RPATH $ORIGIN/../lib)
set_target_properties(cgc_frontend cgc_aten PROPERTIES INSTALL_RPATH ${CGC_TORCH_DIR}/lib) # LibTorch stays where it is.

install(TARGETS cgc_runtime cgc_pass_plugin cgc_op_library EXPORT cgcTargets LIBRARY DESTINATION lib)
install(TARGETS cgc RUNTIME DESTINATION bin)
install(TARGETS cgc_frontend cgc_aten LIBRARY DESTINATION lib)
foreach(folder ir passes runtime/base runtime/plan)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}/ DESTINATION ${CGC_INSTALL_INCLUDE}/${folder}
    FILES_MATCHING PATTERN *.h PATTERN *.def)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/runtime/exec/engine.h DESTINATION ${CGC_INSTALL_INCLUDE}/runtime/exec)

install(EXPORT cgcTargets NAMESPACE cgc:: DESTINATION ${CGC_INSTALL_CMAKE})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/cgcConfig.cmake.in ${CMAKE_BINARY_DIR}/cgcConfig.cmake
  INSTALL_DESTINATION ${CGC_INSTALL_CMAKE} NO_SET_AND_CHECK_MACRO)
# Plug-ins are built for one version.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cgcConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/cgcConfig.cmake ${CMAKE_BINARY_DIR}/cgcConfigVersion.cmake
  DESTINATION ${CGC_INSTALL_CMAKE})
