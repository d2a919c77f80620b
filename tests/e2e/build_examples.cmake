# Packs BUILD into a .tar.gz and unpacks it as FOLDER/prefix, then configures and builds each example against it, as a
# user would: cmake -D BUILD=... -D SOURCE=... -D FOLDER=... -D CUDA_COMPILER=... -P build_examples.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(build project)
  get_filename_component(name ${project} NAME)
  run(${CMAKE_COMMAND} -S ${SOURCE}/${project} -B ${FOLDER}/${name} -G Ninja -DCMAKE_PREFIX_PATH=${FOLDER}/prefix
    -DCMAKE_BUILD_TYPE=Release ${ARGN})
  run(${CMAKE_COMMAND} --build ${FOLDER}/${name})
endfunction()
foreach(name package prefix plugin public_headers run_plan serve_cpp serve_c)
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
