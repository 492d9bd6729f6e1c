# What C++ users find: find_package(TinyTorch).
include(CMakePackageConfigHelpers)
set(_where share/cmake/TinyTorch)
configure_package_config_file(cmake/TinyTorchConfig.cmake.in
  ${PROJECT_BINARY_DIR}/TinyTorchConfig.cmake INSTALL_DESTINATION ${_where}
  INSTALL_PREFIX ${PROJECT_BINARY_DIR}/prefix)  # any: only how far it is from _where matters
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TinyTorchConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(EXPORT TinyTorchTargets NAMESPACE tinytorch:: DESTINATION ${_where} COMPONENT core)
install(FILES ${PROJECT_BINARY_DIR}/TinyTorchConfig.cmake
  ${PROJECT_BINARY_DIR}/TinyTorchConfigVersion.cmake DESTINATION ${_where} COMPONENT core)
