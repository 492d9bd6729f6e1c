#include "aten/config.h"

#include <string>

#include "aten/math.h"
#include "c10/version.h"

namespace tt {

std::string show_config() {
  return std::string("TinyTorch ") + TINYTORCH_VERSION + " built with:\n  - GCC " + __VERSION__ +
         "\n  - C++ " + std::to_string(__cplusplus) + "\n  - Build settings: " +
         TT_BUILD_SETTINGS + "\n";
}

}  // namespace tt
