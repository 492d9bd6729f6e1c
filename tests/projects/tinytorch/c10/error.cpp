#include "c10/error.h"

#include <tinyfmt.h>

namespace tt {

Error::Error(const std::string& what) : std::runtime_error(what) {}
Error::~Error() = default;

void fail(const std::string& pattern, const std::string& value) {
  throw Error(tinyfmt::format(pattern, value));
}

}  // namespace tt
