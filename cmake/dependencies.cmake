# Libraries from the system's packages; `./weft setup` installs them.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)

# Debian's oneDNN ships a CMake package whose name changed between 2.x and 3.x; the library and header did not.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
add_library(weft_dnnl INTERFACE)
target_link_libraries(weft_dnnl INTERFACE ${DNNL_LIBRARY})
target_include_directories(weft_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
