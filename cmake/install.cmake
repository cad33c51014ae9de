# What `cmake --install` installs: the library, its public headers, a package for find_package, a
# pkg-config file, and the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS penstock EXPORT penstockTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET penstock_command)
  install(TARGETS penstock_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION ${package_folder})
foreach(library DEFLATE WEBP SNDFILE SOXR HIGHWAY)
  set(PENSTOCK_USES_${library} OFF)
endforeach()
set(PENSTOCK_PC_MODULES "")
set(PENSTOCK_PC_LIBS "")
if(DEFLATE_FOUND)
  set(PENSTOCK_USES_DEFLATE ON)
  string(APPEND PENSTOCK_PC_MODULES " libdeflate")
endif()
if(WEBP_FOUND)
  set(PENSTOCK_USES_WEBP ON)
  string(APPEND PENSTOCK_PC_MODULES " ${PENSTOCK_WEBP_MODULES}")
endif()
if(SNDFILE_FOUND)
  set(PENSTOCK_USES_SNDFILE ON)
  # Not by its module: `pkg-config --static` would name libraries that Debian does not install.
  string(APPEND PENSTOCK_PC_LIBS " -lsndfile")
endif()
if(SOXR_FOUND)
  set(PENSTOCK_USES_SOXR ON)
  string(APPEND PENSTOCK_PC_LIBS " -lsoxr")
endif()
if(HWY_FOUND)
  set(PENSTOCK_USES_HIGHWAY ON)
  string(APPEND PENSTOCK_PC_LIBS " -lhwy")
endif()
configure_package_config_file(cmake/penstockConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/penstockConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/penstockConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(cmake/penstock.pc.in ${CMAKE_CURRENT_BINARY_DIR}/penstock.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/penstockConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/penstockConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/penstock.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
