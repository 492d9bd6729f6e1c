#include "tinyfmt.h"

namespace tinyfmt {

std::string format(std::string pattern, const std::string& value) {
  const auto place = pattern.find("{}");
  if (place != std::string::npos) pattern.replace(place, 2, value);
  return pattern;
}

}  // namespace tinyfmt
