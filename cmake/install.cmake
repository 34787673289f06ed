# `cmake --install`: the library, its headers below include/weft/, and the package that find_package(weft) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS weft weft_settings EXPORT weft_targets)
if(TARGET weft_cuda)
  install(TARGETS weft_cuda DESTINATION ${CMAKE_INSTALL_LIBDIR})  # beside libweft, where it is looked for
endif()
install(FILES weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
foreach(folder tensor autograd nn optim data models train)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "tensor/cuda" EXCLUDE)
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weft_targets NAMESPACE weft:: DESTINATION ${package_folder})
configure_package_config_file(cmake/weft-config.cmake.in weft-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(weft-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weft-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/weft-config-version.cmake
        DESTINATION ${package_folder})
