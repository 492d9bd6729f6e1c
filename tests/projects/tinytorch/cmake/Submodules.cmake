foreach(_name tinyfmt magma)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/third_party/${_name}/CMakeLists.txt)
    message(FATAL_ERROR
      "third_party/${_name} is missing; run git submodule update --init --recursive")
  endif()
  add_subdirectory(third_party/${_name})
endforeach()
