#pragma once
#include <cstddef>
#include <string>

namespace tt {

using Kernel = double (*)(double);

// A static one of these puts a kernel in the registry when its library is loaded.
struct Register {
  Register(const char* name, Kernel kernel);
};

Kernel find_kernel(const std::string& name);
std::size_t kernel_count();

}  // namespace tt
