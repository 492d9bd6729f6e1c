#pragma once
#include <stdexcept>
#include <string>

namespace tt {

// Thrown by every library, caught in the bindings: its type must be one and the same in all.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what);
  ~Error() override;
};

// Throw an Error; "{}" in the pattern is replaced by the value.
[[noreturn]] void fail(const std::string& pattern, const std::string& value);

}  // namespace tt
