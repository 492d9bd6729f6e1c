add_library(torch INTERFACE)
target_include_directories(torch INTERFACE "${CMAKE_CURRENT_LIST_DIR}/../../../include")
set(TORCH_LIBRARIES torch)
