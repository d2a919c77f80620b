# Packs BUILD into a .tar.gz and unpacks it as FOLDER/prefix, then configures and builds each example against it, as a
# user would: cmake -D BUILD=... -D SOURCE=... -D FOLDER=... -D CUDA_COMPILER=... -D C_COMPILER=... -P build_examples.cmake
# It also builds serve_c against the .deb, unpacked as FOLDER/deb, and by pkg-config.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(build project)
  get_filename_component(name ${project} NAME)
  build_as(${name} ${project} ${FOLDER}/prefix ${ARGN})
endfunction()
function(build_as name project prefix)
  run(${CMAKE_COMMAND} -S ${SOURCE}/${project} -B ${FOLDER}/${name} -G Ninja -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_BUILD_TYPE=Release ${ARGN})
  run(${CMAKE_COMMAND} --build ${FOLDER}/${name})
endfunction()
foreach(name package prefix deb plugin public_headers run_plan serve_cpp serve_c serve_c_of_deb serve_c_of_pkg_config)
  file(REMOVE_RECURSE ${FOLDER}/${name})
endforeach()

run(${CMAKE_CPACK_COMMAND} -G TGZ --config ${BUILD}/CPackConfig.cmake -B ${FOLDER}/package)
file(GLOB archive ${FOLDER}/package/*.tar.gz)
file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${FOLDER}/package/unpacked)
file(GLOB unpacked ${FOLDER}/package/unpacked/*)
file(RENAME ${unpacked} ${FOLDER}/prefix)

build(examples/plugin -DCMAKE_CUDA_COMPILER=${CUDA_COMPILER})
build(tests/public_headers)
# A program that runs plans must build without LLVM.
foreach(example run_plan serve_cpp serve_c)
  build(examples/${example} -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON)
endforeach()

run(${CMAKE_CPACK_COMMAND} -G DEB --config ${BUILD}/CPackConfig.cmake -B ${FOLDER}/package)
file(GLOB package ${FOLDER}/package/*.deb)
run(dpkg -x ${package} ${FOLDER}/deb)
build_as(serve_c_of_deb examples/serve_c ${FOLDER}/deb/usr)

set(ENV{PKG_CONFIG_PATH} ${FOLDER}/prefix/lib/pkgconfig)
execute_process(COMMAND pkg-config --cflags --libs cgc OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND ${flags})
file(MAKE_DIRECTORY ${FOLDER}/serve_c_of_pkg_config)
run(${C_COMPILER} ${SOURCE}/examples/serve_c/main.c ${flags} -pthread -Wl,-rpath,${FOLDER}/prefix/lib
  -o ${FOLDER}/serve_c_of_pkg_config/serve_c)
