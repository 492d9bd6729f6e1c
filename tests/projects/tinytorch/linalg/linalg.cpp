// A plugin: libtt_cuda loads it when it is first asked for linear algebra.
#include "c10/error.h"

#ifdef TT_WITH_MAGMA
#include <magma.h>
#endif

extern "C" const char* tt_linalg_backend() {
#ifdef TT_WITH_MAGMA
  static const std::string name = std::string("magma ") + magma_version();
  return name.c_str();
#else
  return "none";
#endif
}

extern "C" int tt_linalg_solve2(const double* matrix, const double* right, double* out) {
#ifdef TT_WITH_MAGMA
  return magma_solve2(matrix, right, out);
#else
  throw tt::Error("libtt_linalg was built without MAGMA");
#endif
}
