# Installs BUILD into FOLDER/prefix, then configures and builds each example against it, as a user would:
# cmake -D BUILD=... -D SOURCE=... -D FOLDER=... -D CUDA_COMPILER=... -P build_examples.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(build example)
  run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${example} -B ${FOLDER}/${example} -G Ninja
    -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DCMAKE_BUILD_TYPE=Release ${ARGN})
  run(${CMAKE_COMMAND} --build ${FOLDER}/${example})
endfunction()
file(REMOVE_RECURSE ${FOLDER}/prefix ${FOLDER}/plugin ${FOLDER}/run_plan ${FOLDER}/serve_cpp ${FOLDER}/serve_c)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix)
build(plugin -DCMAKE_CUDA_COMPILER=${CUDA_COMPILER})
# A program that runs plans must build without LLVM.
foreach(example run_plan serve_cpp serve_c)
  build(${example} -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON)
endforeach()
