#include "aten/math.h"

#include "c10/error.h"

namespace tt {

Vector add(const Vector& left, const Vector& right) {
  if (left.size() != right.size()) fail("add: the lengths differ by {}",
      std::to_string(static_cast<long>(left.size()) - static_cast<long>(right.size())));
  Vector out(left.size());
  const long size = static_cast<long>(left.size());
#pragma omp parallel for
  for (long i = 0; i < size; ++i) out[i] = left[i] + right[i];
  return out;
}

}  // namespace tt
