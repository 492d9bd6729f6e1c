#include "c10/registry.h"

#include <map>

#include "c10/error.h"

namespace tt {
namespace {

std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

}  // namespace

Register::Register(const char* name, Kernel kernel) {
  if (!kernels().emplace(name, kernel).second) fail("the kernel {} is registered twice", name);
}

Kernel find_kernel(const std::string& name) {
  const auto found = kernels().find(name);
  if (found == kernels().end()) fail("there is no kernel {}", name);
  return found->second;
}

std::size_t kernel_count() { return kernels().size(); }

}  // namespace tt
