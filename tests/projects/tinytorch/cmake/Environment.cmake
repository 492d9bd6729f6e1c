# Switches come from the environment, whichever back-end runs CMake: what is not in the cache yet
# is taken from there.
set(_own BLAS TORCH_CUDA_ARCH_LIST PYTORCH_ROCM_ARCH)
set(_cmakes_own CMAKE_ARGS CMAKE_PREFIX_PATH CMAKE_GENERATOR CMAKE_BUILD_PARALLEL_LEVEL)

execute_process(COMMAND ${CMAKE_COMMAND} -E environment OUTPUT_VARIABLE _environment)
string(REGEX MATCHALL "(^|\n)(USE_|BUILD_|CMAKE_|TT_)[A-Za-z0-9_]+=" _names "${_environment}")
string(REGEX REPLACE "[\n=]" "" _names "${_names}")
list(REMOVE_ITEM _names ${_cmakes_own})
foreach(_name IN LISTS _names _own)
  if(DEFINED ENV{${_name}} AND NOT DEFINED CACHE{${_name}})
    set(${_name} "$ENV{${_name}}" CACHE STRING "From the environment")
  endif()
endforeach()
