#include "aten/math.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace tt {

int get_num_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace tt
