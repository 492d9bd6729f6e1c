# How a core library is installed, with its headers in include/<name of its directory>.
function(tt_install_core target)
  install(TARGETS ${target} EXPORT TinyTorchTargets COMPONENT core
    LIBRARY DESTINATION lib RUNTIME DESTINATION bin INCLUDES DESTINATION include)
  add_dependencies(core ${target})
endfunction()

function(tt_install_headers)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME name)
  install(FILES ${ARGN} DESTINATION include/${name} COMPONENT core)
endfunction()
