# Finds cuDNN in CUDNN_ROOT, in the CUDA toolkit, in the system's folders, or in NVIDIA's Python package, which carries
# libcudnn.so.9 without a link libcudnn.so. Sets CUDNN_FOUND, CUDNN_VERSION and the target CUDNN::cudnn.
set(_cudnn_places ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})

macro(_cudnn_search)
  find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${_cudnn_places} PATH_SUFFIXES include
            DOC "Folder of cudnn_version.h")
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 NAMES_PER_DIR HINTS ${_cudnn_places} PATH_SUFFIXES lib64 lib
               DOC "cuDNN's library")
endmacro()

_cudnn_search()
if(NOT CUDNN_LIBRARY OR NOT CUDNN_INCLUDE_DIR)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  foreach(_folder ${Python3_SITELIB} ${Python3_SITEARCH})
    list(APPEND _cudnn_places ${_folder}/nvidia/cudnn)
  endforeach()
  _cudnn_search()
endif()
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)

if(CUDNN_INCLUDE_DIR)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h _cudnn_lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  set(CUDNN_VERSION "")
  foreach(_part MAJOR MINOR PATCHLEVEL)
    if(_cudnn_lines MATCHES "CUDNN_${_part} +([0-9]+)")
      list(APPEND CUDNN_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN CUDNN_VERSION "." CUDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)

if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
