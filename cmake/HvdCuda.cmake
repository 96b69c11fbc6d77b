# hvd_cuda_program(NAME SOURCE LINKS lib...): a program with kernels of its own, where there is an nvcc that
# works; otherwise nothing, and HVD_CUDA_LACKS says why. nvcc compiles the source and nothing else: the
# build's own compilers and flags are as they are without it.
find_program(HVD_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(HVD_NVCC)

# Code of two generations, and for later ones something that the driver compiles when it is loaded.
set(HVD_CUDA_CODE "-gencode=arch=compute_80,code=[compute_80,sm_80];-gencode=arch=compute_90,code=sm_90"
  CACHE STRING "For which GPUs nvcc makes code")

# Once, as it takes a second; it may have been tried with another one.
function(hvd_try_nvcc)
  if("${HVD_NVCC_TRIED}" STREQUAL "${HVD_NVCC} ${HVD_CUDA_CODE}")
    return()
  endif()
  set(lacks "")
  set(try ${CMAKE_BINARY_DIR}/CMakeFiles/try.cu)
  file(WRITE ${try} "#include <cstdlib>\n__global__ void nothing(int *at) { *at = 0; }\n")
  execute_process(COMMAND ${HVD_NVCC} -std=c++17 ${HVD_CUDA_CODE} -c ${try} -o ${try}.o
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  get_filename_component(bin ${HVD_NVCC} DIRECTORY)
  find_library(HVD_CUDART cudart_static HINTS ${bin}/../lib64 ${bin}/../lib
    ${bin}/../targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
  mark_as_advanced(HVD_CUDART)
  if(failed)
    string(REGEX REPLACE "\n.*" "" said "${said}")
    set(lacks "${HVD_NVCC} does not work here: ${said}")
  elseif(NOT HVD_CUDART)
    set(lacks "no libcudart_static.a beside ${HVD_NVCC}")
  endif()
  set(HVD_CUDA_LACKS "${lacks}" CACHE INTERNAL "")
  set(HVD_NVCC_TRIED "${HVD_NVCC} ${HVD_CUDA_CODE}" CACHE INTERNAL "")
endfunction()

if(HVD_NVCC)
  hvd_try_nvcc()
else()
  set(HVD_CUDA_LACKS "no nvcc in the path, in CUDA_HOME, or in /usr/local/cuda/bin")
endif()

function(hvd_cuda_program name)
  cmake_parse_arguments(ARG "" "SOURCE" "LINKS;DEPENDS" ${ARGN})
  if(HVD_CUDA_LACKS)
    message(STATUS "${name} is not built: ${HVD_CUDA_LACKS}")
    return()
  endif()
  find_package(Threads REQUIRED)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${HVD_NVCC} -std=c++17 -O3 -Xcompiler -fPIC,-Wall,-Wextra ${HVD_CUDA_CODE}
      -I${CMAKE_SOURCE_DIR}/include -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Building CUDA object ${name}.o" VERBATIM)
  add_executable(${name} ${object})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE hvd_compile ${ARG_LINKS} ${HVD_CUDART} Threads::Threads
    ${CMAKE_DL_LIBS} rt)
endfunction()
