# Language, warnings, sanitizers and instruction set, as interface targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source folder count as relative, so that several checkouts share what they compile.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

# Options that users of the library need as well.
add_library(weft_settings INTERFACE)
target_compile_features(weft_settings INTERFACE cxx_std_20)

# "native" is resolved here to a named level: two machines that share a compiler cache must not share the word.
if(WEFT_ARCH STREQUAL "native" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null
                  OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "__AVX512VL__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512BW__")
    set(arch_flags -march=x86-64-v4 -mprefer-vector-width=512)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__")
    set(arch_flags -march=x86-64-v3)
  else()
    set(arch_flags -march=x86-64-v2)
  endif()
elseif(NOT WEFT_ARCH STREQUAL "")
  set(arch_flags -march=${WEFT_ARCH})
endif()

# For the library's own files. No errno, no traps: math functions may become vector code, values stay IEEE.
add_library(weft_kernel_settings INTERFACE)
target_compile_options(weft_kernel_settings INTERFACE -Wall -Wextra -Wshadow=local ${arch_flags} -fno-math-errno
                                                      -fno-trapping-math -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weft_kernel_settings INTERFACE $<$<CONFIG:Release>:-O3>)
endif()
if(WEFT_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(WEFT_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(weft_kernel_settings INTERFACE OpenMP::OpenMP_CXX)
endif()
if(WEFT_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${WEFT_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${WEFT_SANITIZE})
endif()
