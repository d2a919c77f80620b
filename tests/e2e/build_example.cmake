# Installs BUILD into FOLDER/prefix, then configures and builds examples/plugin against it, as a user would:
# cmake -D BUILD=... -D SOURCE=... -D FOLDER=... -D CUDA_COMPILER=... -P build_example.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(REMOVE_RECURSE ${FOLDER}/prefix ${FOLDER}/build)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/plugin -B ${FOLDER}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DCMAKE_CUDA_COMPILER=${CUDA_COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
