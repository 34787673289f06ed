# The CUDA part: one plug-in, libweft_cuda.so, which the library opens at the first use of a CUDA device. Programs do not
# link it, so they start on machines without CUDA's libraries.
set(WEFT_CUDA "AUTO" CACHE STRING "CUDA devices: ON, OFF, or AUTO: where a toolkit is found")
set_property(CACHE WEFT_CUDA PROPERTY STRINGS AUTO ON OFF)

# Kernel sources, which the tests compile for their emulator as well.
set(WEFT_GPU_KERNELS
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/attention.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/conv.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/conv_max.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/copy.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/dropout.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/elementwise.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/elementwise_binary.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/embedding.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/group_norm.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/index.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/index_topk.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/layer_norm.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/loss.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/matmul.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/norm.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/optim.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/pool.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/random.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/reduce.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/reduce_dim.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/rnn.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/rotary.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/softmax.cu
)
# Host code of a backend; what stands behind blas.h and cudnn.h is each backend's own.
set(WEFT_GPU_RUNTIME
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/cudnn_key.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/runtime.cpp
)

if(NOT WEFT_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "WEFT_CUDA is AUTO, ON or OFF, not '${WEFT_CUDA}'")
endif()
if(WEFT_CUDA STREQUAL "OFF")
  return()
endif()

# What is missing is said once; AUTO goes on without CUDA.
function(weft_no_cuda why)
  if(WEFT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "WEFT_CUDA=ON, but ${why}")
  endif()
  message(STATUS "CUDA devices are left out: ${why}")
endfunction()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU generations; a release is built for 75-real;80-real;86-real;89-real;90")
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS $ENV{CUDACXX} ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  weft_no_cuda("no nvcc was found (on the PATH, in CUDA_HOME, or in /usr/local/cuda)")
  return()
endif()
if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
  weft_no_cuda("nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.4")
  return()
endif()
# CMake 3.25 does not know that nvcc has C++20.
foreach(option CMAKE_CUDA20_STANDARD_COMPILE_OPTION CMAKE_CUDA20_EXTENSION_COMPILE_OPTION)
  if(NOT ${option})
    set(${option} "-std=c++20")
  endif()
endforeach()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cublasLt)
  weft_no_cuda("the toolkit of ${CMAKE_CUDA_COMPILER} has no cuBLAS")
  return()
endif()
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_SOURCE_DIR}/cmake)
find_package(CUDNN 9.8 QUIET)
if(NOT TARGET CUDNN::cudnn)
  weft_no_cuda("no cuDNN of version 9.8 or newer was found (in the toolkit, CUDNN_ROOT, or NVIDIA's Python package)")
  return()
endif()

# What only the CUDA plug-in has, and its tests.
set(WEFT_CUDNN
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/cudnn_graph.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/tensor/cuda/cudnn_plan.cpp
)
add_library(weft_cuda MODULE ${WEFT_GPU_KERNELS} ${WEFT_GPU_RUNTIME} ${WEFT_CUDNN} tensor/cuda/cublas.cpp)
target_compile_definitions(weft_cuda PRIVATE WEFT_GPU=cuda_kernels)
target_compile_options(weft_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra -Xptxas=--warn-on-spills>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>)
if(WEFT_WERROR)
  target_compile_options(weft_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
target_link_libraries(weft_cuda PRIVATE weft CUDA::cudart_static CUDA::cublasLt CUDNN::cudnn)
set_target_properties(weft_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} BUILD_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}"
                                           INSTALL_RPATH "$ORIGIN" CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
target_compile_definitions(weft PRIVATE WEFT_HAS_CUDA)
set(WEFT_HAS_CUDA ON)
