# Fails unless the program WITHOUT has no device code and the program WITH has some. nvcc puts device code into sections
# called .nv_fatbin.
foreach(program WITHOUT WITH)
  execute_process(COMMAND ${OBJDUMP} --section-headers ${${program}} OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${sections}" " .nv_fatbin " ${program}_at)
endforeach()
if(NOT WITHOUT_at EQUAL -1)
  message(FATAL_ERROR "${WITHOUT} has device code: its targets may link cgc_kernel_table, but not cgc_kernels")
endif()
if(WITH_at EQUAL -1)
  message(FATAL_ERROR "${WITH} has no device code, so this test does not recognize any")
endif()
