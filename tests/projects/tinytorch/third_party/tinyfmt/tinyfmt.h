#pragma once
#include <string>

namespace tinyfmt {

// Replace the first "{}" of a pattern.
std::string format(std::string pattern, const std::string& value);

}  // namespace tinyfmt
